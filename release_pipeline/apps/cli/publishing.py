"""Commands that publish a release or withdraw it: publish, deliver, retract, supersede; and papers and dossiers about it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import AGAIN, describe_release
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.pipeline.opening import find_release
from release_pipeline.publish.delivery import deliver as deliver_outstanding
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.papers import ENTRY, write_papers
from release_pipeline.publish.publish import publish as publish_release
from release_pipeline.publish.publish import retract as retract_release
from release_pipeline.publish.publish import supersede as supersede_release
from release_pipeline.store.files import hash_of
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import read_key


@cli.command("publish people/1 --key service", stopped=describe_release)
@cli.target
@cli.key("The key of the service, or of the officer")
@cli.home
def publish(target: str, key: Path, site: Site) -> None:
    """It verifies hashes, gates, approvals, cap and embargo again, and writes the whole package to
    releases/POLICY/RELEASE/rN. Then it delivers the package to the targets in site.yaml."""
    release = find_release(site, target)
    folder = publish_release(site, release, key=read_key(key))
    print(f"{folder}\npackage {hash_of(folder)}")
    _announce(site, release)


@cli.command("deliver people/1 --target archive", stopped=AGAIN)
@click.argument("release", required=False, metavar="[RELEASE]", help="Default: all that are published.")
@click.option("--target", metavar="NAME", help="Only this target of site.yaml.")
@cli.home
def deliver(release: str | None, target: str | None, site: Site) -> None:
    """It also tells targets which releases were retracted or superseded. `status` lists what is
    outstanding; `publish`, `retract` and `supersede` deliver by themselves. If it is stopped or
    fails, the same command finishes; nothing is sent twice."""
    if not _deliver(site, None if release is None else find_release(site, release), only=target):
        print("nothing is outstanding")


@cli.command('retract people/1 --why "the source was wrong" --key officer', stopped=describe_release)
@cli.target
@cli.why
@cli.key("The officer's key")
@cli.home
def retract(target: str, why: str, key: Path, site: Site) -> None:
    """The data leave the package, and a signed notice with the reason takes their place."""
    release = find_release(site, target)
    folder = retract_release(site, release, key=read_key(key), why=why)
    print(f"{folder}: retracted; its data are gone, and RETRACTED.md says why, as it was signed first")
    _announce(site, release, f"{release} was retracted: {why}")


@cli.command("supersede people/1/r1 --by people/1/r2 --key officer", stopped=describe_release)
@cli.target
@click.option("--by", required=True, metavar="RELEASE", help="The later revision, published.")
@click.option("--why", default="", help="A remark, signed with it and published.")
@cli.key("The officer's key")
@cli.home
def supersede(target: str, by: str, why: str, key: Path, site: Site) -> None:
    """The package stays, and a signed notice in it names the later revision, for good."""
    release = find_release(site, target)
    later = find_release(site, by)
    folder = supersede_release(site, release, later, key=read_key(key), why=why)
    print(f"{folder}: superseded by {later}; SUPERSEDED.md says so")
    _announce(site, release, f"{release} was superseded by {later}.")


@cli.command("papers people/1 -o papers")
@cli.target
@cli.output("FOLDER", "A new folder, or an empty one.")
@cli.home
def papers(target: str, output: Path, site: Site) -> None:
    """The papers are the NIST SP 800-226 evaluation, the DPIA annex and the entry for a registry of
    deployments. The release needs a candidate; it need not be published. The papers are
    confidential, except files that are also in the public package. People's own statements come
    from the policy's `assessment`; docs/papers.md describes them."""
    release = find_release(site, target)
    files = write_papers(site, release, output)
    for file in files:
        print(file)
    if output / ENTRY not in files:
        print(f"no {ENTRY}: it needs a published release that was not retracted, and a claim of DP or iDP")
    print(f"{output}: confidential: figures in it were measured against the records")


@cli.command("dossier people/1 -o people.zip")
@cli.target
@cli.output("FILE.zip", "The zip file to write.")
@cli.overwrite
@cli.home
def dossier(target: str, output: Path, overwrite: bool, site: Site) -> None:
    """The dossier is confidential: its evidence describes the data. `verify` checks it, and so does
    the verify.py inside."""
    release = find_release(site, target)
    file = write_dossier(site, release, output, overwrite=overwrite)
    print(f"{file}: confidential; check it with: release-pipeline verify {file} --officer {site.officer}")


def _deliver(site: Site, release: ReleaseId | None, *, only: str | None = None) -> bool:
    """Deliver what is outstanding at targets, and print the results; returns whether anything was delivered."""
    outcomes = list[str]()

    def show(outcome: str) -> None:
        outcomes.append(outcome)
        print(outcome, flush=True)

    def wait() -> None:
        print("another command is delivering: waiting", file=sys.stderr)

    deliver_outstanding(site, release, only=only, tell=show, waiting=wait)
    return bool(outcomes)


def _announce(site: Site, release: ReleaseId, withdrawn: str = "") -> None:
    """Report to Dagster and the targets what was done. If Dagster's own records cannot be written, a note says so."""
    from release_pipeline.apps.dagster import launch

    try:
        if withdrawn:
            launch.record_withdrawn(site, release, withdrawn)
        else:
            launch.record_published(site, release)
    except ReleasePipelineError as error:
        print(f"note: {error} So the UI does not show it.", file=sys.stderr)
    _deliver(site, release)
