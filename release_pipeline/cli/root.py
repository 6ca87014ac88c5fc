"""The root of trust: how the privacy officer is followed by another, lost and stolen keys, wrong clocks."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import add_home, add_key, read_key_of
from release_pipeline.cli.stopping import AGAIN
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.trust.keys import PublicKey
    from release_pipeline.flow.trust.members import Trust
    from release_pipeline.flow.trust.succession import Proposal

_WRITTEN = "a file is written whole or not at all: look whether it is there"


def add_commands(commands: Any) -> None:
    """Add these commands."""
    officer = commands.add_parser(
        "officer",
        help="replace the privacy officer, revoke keys that were stolen, repair what a wrong clock noted",
        description="When the officer leaves, a key is lost or stolen, or a clock was wrong. docs/roots.md goes through it.",
    )
    actions = officer.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_succession(actions)
    _add_recovery(actions)

    revoke = actions.add_parser("revoke", help="from a date on, a key counts no more; what it signed before stands")
    revoke.add_argument("name", metavar="NAME|FINGERPRINT", help="whose key; the fingerprint, if they have another one by now")
    revoke.add_argument(
        "--from", dest="since", required=True, type=_moment, metavar="DATE", help="2026-11-01, or with a time (UTC)"
    )
    revoke.add_argument("--why", required=True, help="the reason, signed with it, and published")
    add_key(revoke, "the officer's key")
    add_home(revoke)
    revoke.set_defaults(run=_revoke, stopped=AGAIN)

    clock = actions.add_parser(
        "repair-clock", help="say of every event that is dated later than now that a wrong clock noted it; set the clock first"
    )
    add_key(clock, "the officer's key")
    add_home(clock)
    clock.set_defaults(run=_repair_clock, stopped=AGAIN)


def _add_succession(actions: Any) -> None:
    hand_over = actions.add_parser("hand-over", help="the officer signs who follows; nothing changes until `accept`")
    hand_over.add_argument("name", metavar="NAME", help="who is to be the officer")
    hand_over.add_argument("--public", type=Path, required=True, metavar="FILE.pub", help="their new public key")
    _add_output(hand_over, "the proposal, for the new officer")
    add_key(hand_over, "the officer's key")
    add_home(hand_over)
    hand_over.set_defaults(run=_hand_over, stopped=_WRITTEN)

    recover = actions.add_parser("recover", help="propose an officer whom those with recovery keys are to sign; changes nothing")
    recover.add_argument("name", metavar="NAME", help="who is to be the officer")
    recover.add_argument("--public", type=Path, required=True, metavar="FILE.pub", help="their new public key")
    recover.add_argument(
        "--stolen-from",
        type=_moment,
        metavar="DATE",
        help="since when somebody else may have had the officer's key: what it signed from then on counts for nothing",
    )
    _add_output(recover, "the proposal, for those with recovery keys")
    add_home(recover)
    recover.set_defaults(run=_recover, stopped=_WRITTEN)

    accept = actions.add_parser("accept", help="the new officer signs too, and is the officer")
    accept.add_argument("proposal", type=Path, metavar="PROPOSAL", help="what `hand-over` or `recover` wrote")
    _add_statements(accept)
    add_key(accept, "the new officer's key")
    add_home(accept)
    accept.set_defaults(run=_accept, stopped=AGAIN)


def _add_recovery(actions: Any) -> None:
    recovery = actions.add_parser(
        "recovery",
        help="name the keys that can replace the officer: any K of them, kept where the officer's is not",
        description="Without --key a proposal is written (-o) for those who hold the recovery keys of today: once there are "
        "some, other ones need K of them too.",
    )
    recovery.add_argument("--threshold", type=int, required=True, metavar="K", help="how many of them must sign")
    recovery.add_argument(
        "--public", type=Path, action="append", required=True, metavar="NAME.pub", help="a recovery key; again for each person"
    )
    _add_output(recovery, "the proposal, without --key", required=False)
    _add_statements(recovery)
    add_key(recovery, "the officer's key", required=False)
    add_home(recovery)
    recovery.set_defaults(run=_recovery, stopped=AGAIN)

    sign = actions.add_parser("recovery-sign", help="sign a proposal with a recovery key; needs no site")
    sign.add_argument("proposal", type=Path, metavar="PROPOSAL")
    sign.add_argument("--name", help="your name, as the officer named you (default: that of the key's file)")
    _add_output(sign, "your statement, for the new officer")
    add_key(sign, "your recovery key")
    sign.set_defaults(run=_recovery_sign, stopped=_WRITTEN)


def _add_output(command: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    command.add_argument("-o", "--output", type=Path, required=required, metavar="FILE.json", help=what)


def _add_statements(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--statement",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.json",
        help="of `recovery-sign`; again for each person",
    )


def _moment(text: str) -> datetime:
    """A date, or a moment, in UTC where no zone is named."""
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a date like 2026-11-01") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _hand_over(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.keys import read_public_key
    from release_pipeline.flow.trust.succession import hand_over

    site, public = find_site(options.home), read_public_key(options.public)
    return _write_proposal(options, hand_over(site, options.name, public, key=read_key_of(options)))


def _recover(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.keys import read_public_key
    from release_pipeline.flow.trust.succession import recover

    site, public = find_site(options.home), read_public_key(options.public)
    return _write_proposal(options, recover(site, options.name, public, stolen=options.stolen_from))


def _accept(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.office import OFFICERS
    from release_pipeline.flow.trust.revocation import REVOKED_FILE
    from release_pipeline.flow.trust.succession import accept, describe_proposal

    site, proposal = find_site(options.home), _read_proposal(options.proposal)
    print_lines(describe_proposal(proposal))
    trust = accept(site, proposal, _read_statements(options), key=read_key_of(options))
    _print_list(trust)
    former, revoked = proposal.document["from"], {each["key"]: each["from"] for each in proposal.document["revoked"]}
    counts = "what it signed until now stands"
    if former in revoked:
        counts = f"what it signed from {revoked[former]} on counts for nothing"
    print(f"{former}: the key of the officer before is revoked; {counts}. Destroy it.")
    print(f"{site.releases}: put {REVOKED_FILE} and {OFFICERS} where your packages are")
    print("Strangers who know an earlier officer's fingerprint are led to the new one; publish the new one all the same.")
    return 0


def _recovery(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.succession import name_recovery, propose_recovery

    site, holders = find_site(options.home), _read_holders(options.public)
    if (options.key is None) == (options.output is None):
        raise WrongUsage(
            "the officer names --key; a proposal for the holders of today's recovery keys is written to -o FILE.json."
        )
    if options.key is None:
        return _write_proposal(options, propose_recovery(site, options.threshold, holders))
    statements = _read_statements(options)
    name_recovery(site, options.threshold, holders, statements, key=read_key_of(options))
    for name, public in sorted(holders.items()):
        print(f"{name:<20} recovery  {public.fingerprint}")
    print(f"any {options.threshold} of these {len(holders)} can replace the officer")
    return 0


def _recovery_sign(options: argparse.Namespace) -> int:
    from release_pipeline.flow.files import check_output, write_text
    from release_pipeline.flow.trust.keys import write_statement
    from release_pipeline.flow.trust.succession import describe_proposal, sign_proposal

    check_output(options.output, endings=(".json",), overwrite=False, hint=False)
    proposal = _read_proposal(options.proposal)
    print_lines(describe_proposal(proposal))
    signed = sign_proposal(proposal, options.name or options.key.stem, key=read_key_of(options))
    write_text(options.output, write_statement(signed))
    print(f"{options.output}: signed; for whoever asked you, if that above is what they told you")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.revocation import REVOKED_FILE, revoke

    site = find_site(options.home)
    fingerprint = revoke(site, options.name, since=options.since, why=options.why, key=read_key_of(options))
    print(f"{fingerprint}: revoked from {options.since:%Y-%m-%d %H:%M} UTC on; what it signed before stands")
    print(f"{site.releases / REVOKED_FILE}: for the public: put it where your packages are")
    return 0


def _repair_clock(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.revocation import repair_clock

    repaired = repair_clock(find_site(options.home), key=read_key_of(options))
    for event in repaired:
        print(f"event {event.number} ({event.kind}): dated {event.noted}, and that is not believed")
    if not repaired:
        print("no event is dated later than now")
    return 0


def _write_proposal(options: argparse.Namespace, proposal: Proposal) -> int:
    from release_pipeline.flow.files import check_output, write_text
    from release_pipeline.flow.trust.succession import describe_proposal

    check_output(options.output, endings=(".json",), overwrite=False, hint=False)
    write_text(options.output, proposal.text)
    print_lines(describe_proposal(proposal))
    print(f"{options.output}: nothing is changed by it yet")
    return 0


def _read_proposal(file: Path) -> Proposal:
    from release_pipeline.flow.trust.succession import parse_proposal
    from release_pipeline.policy.load import read_text

    return parse_proposal(read_text(file), where=str(file))


def _read_statements(options: argparse.Namespace) -> list[Any]:
    from release_pipeline.policy.load import read_text

    found: list[Any] = []
    for file in options.statement:
        try:
            found.append(json.loads(read_text(file)))
        except (ValueError, RecursionError):
            raise WrongUsage("this is no statement.", where=str(file), remedy="`officer recovery-sign` makes one.") from None
    return found


def _read_holders(files: list[Path]) -> dict[str, PublicKey]:
    from release_pipeline.flow.trust.keys import check_person, read_public_key

    if len({file.stem for file in files}) < len(files):
        raise WrongUsage("two of the files have one name, and it is the person's.", remedy="Name them NAME.pub.")
    return {check_person(file.stem): read_public_key(file) for file in files}


def _print_list(trust: Trust) -> None:
    for member in trust.members:
        revoked = " (revoked)" if member.key.fingerprint in trust.revoked else ""
        print(f"{member.name:<20} {member.role:<9} {member.key.fingerprint}{revoked}")
