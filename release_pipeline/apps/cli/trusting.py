"""Commands about people and keys: trust, key, and officer for lost and stolen keys, successors and wrong clocks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import AGAIN, print_lines, table_drawer
from release_pipeline.errors import WrongUsage
from release_pipeline.ledger.office import OFFICERS
from release_pipeline.policy.loading.load import read_text
from release_pipeline.store.files import check_output, write_text
from release_pipeline.store.site import Site
from release_pipeline.trust import revocation
from release_pipeline.trust.keys import PublicKey, check_person, read_key, read_public_key, write_statement
from release_pipeline.trust.members import Trust, distrust, trust_key
from release_pipeline.trust.revocation import REVOKED_FILE, Proposal, describe_proposal

_WRITTEN = "a file is written whole or not at all: look whether it exists"


@cli.command("trust eva --role reviewer --public eva.pub --key officer", stopped=AGAIN)
@click.argument("name", metavar="NAME", help="Whose key it is.")
@click.option("--role", type=click.Choice(("officer", "steward", "reviewer", "service")), help="What they may sign.")
@cli.path("--public", "FILE.pub", "Their public OpenSSH key.")
@cli.flag("--remove", "Remove them from the list.")
@cli.key("The officer's key")
@cli.home
def trust(name: str, role: str | None, public: Path | None, remove: bool, key: Path, site: Site) -> None:
    """The privacy officer signs the list, trusted-keys.yaml. The first person is the officer: trust
    NAME --role officer --public NAME.pub --key NAME. site.yaml then pins their fingerprint."""
    if remove and (role or public):
        raise WrongUsage("--remove takes neither --role nor --public.", where=name)
    if remove:
        trusted = distrust(site, name, key=read_key(key))
    elif role is None or public is None:
        raise WrongUsage("whose key is it, and in which role?", remedy="Name --role and --public, or --remove.")
    else:
        trusted = trust_key(site, name, role, read_public_key(public), key=read_key(key))
    _print_members(trusted)


@cli.command("key eva.pub", stopped=AGAIN)
@click.argument("public", type=cli.PATH, metavar="FILE.pub", help="A public OpenSSH key.")
def key(public: Path) -> None:
    """Lists and statements show this fingerprint; compare it over the telephone. OpenSSH makes keys:
    ssh-keygen -t ed25519 -f NAME, or -t ed25519-sk for a FIDO token."""
    print(read_public_key(public).fingerprint)


@cli.actions("officer revoke eva --from 2026-11-01 --why stolen --key officer")
def officer() -> None:
    """Use it when the officer leaves, a key is lost or stolen, or a clock was wrong. docs/roots.md
    explains each case."""


def _moment(text: str) -> datetime:
    """A date, or a moment, in UTC where no zone is named."""
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a date like 2026-11-01.") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


_successor = click.argument("name", metavar="NAME", help="Who is to be the officer.")
_public = cli.path("--public", "FILE.pub", "Their new public key.", required=True)
_proposal = click.argument("proposal", type=cli.PATH, metavar="PROPOSAL", help="What `hand-over`, `recover` or `recovery` wrote.")
_statements = cli.path("--statement", "FILE.json", "What `recovery-sign` wrote. Repeatable, for each person.", multiple=True)
_STOLEN = "Since when somebody else may have had the officer's key: what it signed from then on does not count."


@officer.command("hand-over", example="officer hand-over eva --public eva.pub -o next.json --key officer", stopped=_WRITTEN)
@_successor
@_public
@cli.output("FILE.json", "The proposal, for the new officer.")
@cli.key("The officer's key")
@cli.home
def hand_over(name: str, public: Path, output: Path, key: Path, site: Site) -> None:
    """Sign who follows the officer; changes nothing yet."""
    _write_proposal(output, revocation.hand_over(site, name, read_public_key(public), key=read_key(key)))


@officer.command("recover", example="officer recover eva --public eva.pub -o next.json", stopped=_WRITTEN)
@_successor
@_public
@click.option("--stolen-from", type=_moment, metavar="DATE", help=_STOLEN)
@cli.output("FILE.json", "The proposal, for those with recovery keys.")
@cli.home
def recover(name: str, public: Path, stolen_from: datetime | None, output: Path, site: Site) -> None:
    """Propose an officer to recovery keys; changes nothing yet."""
    _write_proposal(output, revocation.recover(site, name, read_public_key(public), stolen=stolen_from))


@officer.command("accept", example="officer accept next.json --key eva", stopped=AGAIN)
@_proposal
@_statements
@cli.key("The new officer's key")
@cli.home
def accept(proposal: Path, statement: tuple[Path, ...], key: Path, site: Site) -> None:
    """Become the officer, by your own signature."""
    proposed = _read_proposal(proposal)
    print_lines(describe_proposal(proposed))
    _print_members(revocation.accept(site, proposed, _read_statements(statement), key=read_key(key)))
    former, revoked = proposed.document["from"], {each["key"]: each["from"] for each in proposed.document["revoked"]}
    counts = "what it signed until now stands"
    if former in revoked:
        counts = f"what it signed from {revoked[former]} on counts for nothing"
    print(f"{former}: the key of the officer before is revoked; {counts}. Destroy it.")
    print(f"{site.releases}: put {REVOKED_FILE} and {OFFICERS} where your packages are")
    print("Strangers who know an earlier officer's fingerprint are led to the new one; publish the new one all the same.")


@officer.command("recovery", example="officer recovery --threshold 1 --public eva.pub --key officer", stopped=AGAIN)
@click.option("--threshold", type=int, required=True, metavar="K", help="How many of them must sign.")
@cli.path("--public", "NAME.pub", "A recovery key. Repeatable.", multiple=True, required=True)
@cli.output("FILE.json", "The proposal, without --key.", required=False)
@_statements
@cli.key("The officer's key", required=False)
@cli.home
def recovery(
    threshold: int, public: tuple[Path, ...], output: Path | None, statement: tuple[Path, ...], key: Path | None, site: Site
) -> None:
    """Name the recovery keys that can replace the officer.

    Any K of them can. Keep them where the officer's key is not. Without --key, write a proposal
    (-o) for the holders of today's recovery keys: K of them must sign other ones too."""
    holders = _read_holders(public)
    if key is None and output is not None:
        _write_proposal(output, revocation.propose_recovery(site, threshold, holders))
        return
    if key is None or output is not None:
        what = "the officer names --key; a proposal for the holders of today's recovery keys is written to -o FILE.json."
        raise WrongUsage(what)
    revocation.name_recovery(site, threshold, holders, _read_statements(statement), key=read_key(key))
    for name, public_key in sorted(holders.items()):
        print(f"{name:<20} recovery  {public_key.fingerprint}")
    print(f"any {threshold} of these {len(holders)} can replace the officer")


@officer.command("recovery-sign", example="officer recovery-sign next.json -o mine.json --key spare", stopped=_WRITTEN)
@_proposal
@click.option("--name", help="Your name, as the officer named you (default: that of the key's file).")
@cli.output("FILE.json", "Your statement, for the new officer.")
@cli.key("Your recovery key")
def recovery_sign(proposal: Path, name: str | None, output: Path, key: Path) -> None:
    """Sign a proposal with a recovery key; needs no site."""
    check_output(output, endings=(".json",), overwrite=False, hint=False)
    proposed = _read_proposal(proposal)
    print_lines(describe_proposal(proposed))
    signed = revocation.sign_proposal(proposed, name or key.stem, key=read_key(key))
    write_text(output, write_statement(signed))
    print(f"{output}: signed; for whoever asked you, if that above is what they told you")


@officer.command("revoke", example="officer revoke eva --from 2026-11-01 --why stolen --key officer", stopped=AGAIN)
@click.argument("name", metavar="NAME|FINGERPRINT", help="Whose key; the fingerprint, if they have another key by now.")
@click.option("--from", "since", required=True, type=_moment, metavar="DATE", help="2026-11-01, or with a time (UTC).")
@click.option("--why", required=True, metavar="REASON", help="The reason, signed and published.")
@cli.key("The officer's key")
@cli.home
def revoke(name: str, since: datetime, why: str, key: Path, site: Site) -> None:
    """Revoke a key from a date on; earlier signatures stand."""
    fingerprint = revocation.revoke(site, name, since=since, why=why, key=read_key(key))
    print(f"{fingerprint}: revoked from {since:%Y-%m-%d %H:%M} UTC on; what it signed before stands")
    print(f"{site.releases / REVOKED_FILE}: for the public: put it where your packages are")


@officer.command("repair-clock", example="officer repair-clock --key officer", stopped=AGAIN)
@cli.key("The officer's key")
@cli.home
def repair_clock(key: Path, site: Site) -> None:
    """Mark future events as wrongly dated, after a clock repair."""
    repaired = revocation.repair_clock(site, key=read_key(key))
    for event in repaired:
        print(f"event {event.number} ({event.kind}): dated {event.noted}, and that is not believed")
    if not repaired:
        print("no event is dated later than now")


def _write_proposal(file: Path, proposal: Proposal) -> None:
    check_output(file, endings=(".json",), overwrite=False, hint=False)
    write_text(file, proposal.text)
    print_lines(describe_proposal(proposal))
    print(f"{file}: nothing is changed by it yet")


def _read_proposal(file: Path) -> Proposal:
    return revocation.parse_proposal(read_text(file), where=str(file))


def _read_statements(files: tuple[Path, ...]) -> list[Any]:
    statements: list[Any] = []
    for file in files:
        try:
            statements.append(json.loads(read_text(file)))
        except (ValueError, RecursionError):
            raise WrongUsage("this is no statement.", where=str(file), remedy="`officer recovery-sign` makes one.") from None
    return statements


def _read_holders(files: tuple[Path, ...]) -> dict[str, PublicKey]:
    if len({file.stem for file in files}) < len(files):
        raise WrongUsage("two of the files have one name, and it is the person's.", remedy="Name them NAME.pub.")
    return {check_person(file.stem): read_public_key(file) for file in files}


def _print_members(trusted: Trust) -> None:
    rows = [
        (member.name, member.role, f"{member.key.fingerprint}{' (revoked)' * (member.key.fingerprint in trusted.revoked)}")
        for member in trusted.members
    ]
    draw = table_drawer()
    print_lines(draw([("name", "role", "fingerprint"), *rows]) if draw else (f"{a:<20} {b:<9} {c}" for a, b, c in rows))
