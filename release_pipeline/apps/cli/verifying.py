"""The commands that test claims: verify, audit-claims."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import Progress, print_lines, table_drawer
from release_pipeline.apps.cli.options import print_document
from release_pipeline.ledger.office import load_head
from release_pipeline.pipeline.claims import audit_policies, describe_audit, keep_audit, view_audit
from release_pipeline.policy import load_policy
from release_pipeline.publish.verification import examine
from release_pipeline.store.site import find_site


@cli.command("verify releases/people/1/r1 --officer FINGERPRINT")
@click.argument("path", type=cli.PATH, metavar="PATH", help="A package (folder or zip), a dossier, or a site.")
@cli.value("--officer", "FINGERPRINT", "The officer's fingerprint, as you got it from elsewhere. Repeatable.", multiple=True)
@cli.value("--revocations", "FILE|URL", "The publisher's list of revoked keys (releases/revoked.json).", default="")
@cli.value("--officers", "FILE|URL", "How the office changed hands since (releases/officers.json).", default="")
@cli.flag("--deep", "For a site: hash every table of the vault again.")
@cli.path("--since", "FILE", "For a site or dossier: the event from `head export` that it must have.")
@cli.value("--beside", "OTHER", "Fail if copies of one site made PATH and OTHER, under one cap each.", default="")
@cli.as_json("the findings")
def verify(
    path: Path, officer: tuple[str, ...], revocations: str, officers: str, since: Path | None, json: bool, **more: Any
) -> int:
    """It lists what was checked. It uses the network only for --revocations and --officers. The latter
    leads from the officer whom you know to the package's, before or after."""
    head = None if since is None else load_head(since)
    verified = examine(path, officer, revocations, officers, since=head, **more)
    if json:
        print_document(verified.to_json())
        return int(verified.failed > 0)
    draw, rows = table_drawer(), [("", "checked"), *((finding.level, finding.words) for finding in verified.findings)]
    print_lines(draw(rows) if draw else map(str, verified.findings))
    print(verified.verdict)
    return int(verified.failed > 0)


@cli.command("audit-claims policies/people.yaml --quick", name="audit-claims")
@click.argument("policy", type=cli.PATH, metavar="POLICY.yaml", help="The policy file.")
@cli.flag("--quick", "Draw less, for an answer in under a minute.")
@cli.as_json("the findings")
@cli.policy_home
def audit_claims(policy: Path, quick: bool, json: bool, home: Path | None) -> int:
    """It builds hostile neighbouring tables from the declared domains, releases them thousands of
    times through the real stages, and tells them apart by the best event it finds. Next to the
    claimed epsilon it prints a lower bound on the true one, with 99.9% confidence. It reads no
    data. The exit code is 1 if a claim is broken. A site keeps the findings for its dossiers."""
    loaded = load_policy(policy)
    with Progress() as progress:
        audited = audit_policies({loaded.policy: loaded}, quick=quick, progress=progress)
    folder = home or policy.resolve().parent.parent
    if (folder / "populations.yaml").is_file():
        file = keep_audit(find_site(folder), loaded, audited)
        print(f"{cli.PROGRAM}: kept for the dossiers of this policy: {file}", file=sys.stderr)
    if json:
        print_document(view_audit(audited))
    else:
        print_lines(describe_audit(audited, draw=table_drawer()))
        count = sum(map(len, audited.findings.values()))
        broken = f"{len(audited.broken)} of {count} claims are BROKEN" if audited.broken else f"None of {count} claims is broken"
        print(f"\n{broken}.")
    return int(bool(audited.broken))
