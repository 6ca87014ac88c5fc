"""The auditor's part: papers, dossier, verify and audit-claims."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import PROGRAM, Progress, add_home, add_json, print_json, read_release_of
from release_pipeline.errors import WrongUsage


def add_commands(commands: Any) -> None:
    """Add these commands."""
    papers = commands.add_parser(
        "papers",
        help="the papers that an officer files: NIST SP 800-226, DPIA annex, registry of deployments",
        description="Of a release that has a candidate, published or not. Confidential, except files also in the public package. "
        "What only people can say comes from the policy's `assessment`; what nobody stated says so. docs/papers.md.",
    )
    papers.add_argument("target", metavar="RELEASE")
    papers.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="a new folder, or an empty one")
    add_home(papers)
    papers.set_defaults(run=_papers)

    dossier = commands.add_parser(
        "dossier",
        help="everything about a published release and its series in one zip, for an auditor",
        description="Confidential: the evidence in it describes the data. `verify` checks it, and so does the verify.py inside.",
    )
    dossier.add_argument("target", metavar="RELEASE")
    dossier.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip")
    dossier.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    add_home(dossier)
    dossier.set_defaults(run=_dossier)

    verify = commands.add_parser(
        "verify",
        help="check a package, a dossier or a whole site, offline, and say in words what was checked",
        description="PATH is a package (a folder or a zip of it), a dossier, or a site (its folder or its registry.duckdb).",
    )
    verify.add_argument("path", type=Path, metavar="PATH")
    verify.add_argument(
        "--officer",
        action="append",
        default=[],
        metavar="FINGERPRINT",
        help="the officer's fingerprint, as you got it in another way; again for an earlier officer's",
    )
    verify.add_argument(
        "--revocations",
        default="",
        metavar="FILE|URL",
        help="the publisher's list of revoked keys (releases/revoked.json); the network is asked for this and --officers alone",
    )
    verify.add_argument(
        "--officers",
        default="",
        metavar="FILE|URL",
        help="how the office changed hands since (releases/officers.json, or that of a newer package): from the officer whom you "
        "know it leads to the package's, before or after",
    )
    verify.add_argument("--deep", action="store_true", help="of a site: hash every table of the vault again")
    verify.add_argument(
        "--since",
        type=Path,
        metavar="FILE",
        help="of a site or a dossier: what `head export` wrote, which it must have",
    )
    verify.add_argument(
        "--beside",
        default="",
        metavar="OTHER",
        help="another package or dossier of the publisher: fails if two copies of one site made the two, under one cap each",
    )
    add_json(verify, "the findings")
    verify.set_defaults(run=_verify)

    claims = commands.add_parser(
        "audit-claims",
        help="attack every claim of a policy, or of every method, and say what that proves; touches no data",
        description="Every claim is attacked: hostile neighbouring tables are made from the declared domains, released thousands "
        "of times by the real stages, and told apart by the best event that can be found. What is printed beside the claimed "
        "epsilon is one that the release has at the least, with a confidence of 99.9%. Touches no data.",
        epilog="Exit code 1 if a claim is broken. Of a policy of a site the findings are kept for its dossiers.",
    )
    claims.add_argument("policy", type=Path, nargs="?", metavar="POLICY", help="the policy file")
    claims.add_argument(
        "--all-methods",
        action="store_true",
        help="every method and scope, and what is most often chosen with them, with made-up policies",
    )
    claims.add_argument("--quick", action="store_true", help="fewer draws, under a minute")
    add_json(claims, "the findings")
    claims.add_argument("--home", type=Path, help="the site that keeps the findings (default: the one that the policy lies in)")
    claims.set_defaults(run=_audit_claims)


def _papers(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.papers import ENTRY, write_papers

    site, release = read_release_of(options)
    files = write_papers(site, release, options.output)
    for file in files:
        print(file)
    if options.output / ENTRY not in files:
        print(f"no {ENTRY}: it needs a published release that was not retracted, and a claim of DP or iDP")
    print(f"{options.output}: confidential: figures in it were measured against the records")
    return 0


def _dossier(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.dossier import write_dossier

    site, release = read_release_of(options)
    file = write_dossier(site, release, options.output, overwrite=options.overwrite)
    print(f"{file}: confidential; check it with: release-pipeline verify {file} --officer {site.officer}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.verification import examine
    from release_pipeline.flow.witness import load_head

    since = None if options.since is None else load_head(options.since)
    found = examine(
        options.path,
        options.officer,
        options.revocations,
        options.officers,
        deep=options.deep,
        since=since,
        beside=options.beside,
    )
    if options.json:
        print_json(found.to_json())
    else:
        for finding in found.findings:
            print(finding)
        print(found.verdict)
    return int(found.failed > 0)


def _audit_claims(options: argparse.Namespace) -> int:
    if (options.policy is None) != options.all_methods:
        raise WrongUsage("audit-claims is of one policy, or of every method.", remedy="Name POLICY, or --all-methods.")
    from release_pipeline.flow.claims import audit_all_methods, audit_policies, describe_audit, keep_audit, view_audit
    from release_pipeline.flow.site import find_site
    from release_pipeline.policy import load_policy
    from release_pipeline.policy.documents import to_json

    progress = Progress()
    if options.all_methods:
        audited = audit_all_methods(quick=options.quick, progress=progress)
    else:
        policy = load_policy(options.policy)
        audited = audit_policies({policy.policy: policy}, quick=options.quick, progress=progress)
        home = options.home or options.policy.resolve().parent.parent
        if (home / "populations.yaml").is_file():
            file = keep_audit(find_site(home), policy, audited)
            print(f"{PROGRAM}: kept for the dossiers of this policy: {file}", file=sys.stderr)
    if options.json:
        print_json(to_json(view_audit(audited)))
    else:
        print(describe_audit(audited))
        count = sum(map(len, audited.findings.values()))
        print(
            f"\n{len(audited.broken)} of {count} claims are BROKEN." if audited.broken else f"\nNone of {count} claims is broken."
        )
    return int(bool(audited.broken))
