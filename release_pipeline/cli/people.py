"""The people's part: keys, trust, approvals, publication, and taking back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.delivering import deliver_release
from release_pipeline.cli.options import add_home, add_key, read_key_of, read_release_of
from release_pipeline.cli.stopping import AGAIN, describe_release
from release_pipeline.errors import ReleasePipelineError, WrongUsage

if TYPE_CHECKING:  # what is heavy is imported where it is used
    from release_pipeline.flow.site import Site

_NOT_SEEN = "note: signed as it was at this moment on this machine; `review export` and `sign` show what is signed."


def add_commands(commands: Any) -> None:
    """Add these commands."""
    key = commands.add_parser(
        "key",
        help="print the fingerprint of a public key",
        description="Prints the fingerprint that lists and statements have, to compare over the telephone. OpenSSH makes keys: "
        "ssh-keygen -t ed25519 -f NAME, or -t ed25519-sk for a FIDO token. Example: release-pipeline key NAME.pub",
    )
    key.add_argument("public", type=Path, metavar="FILE.pub", help="a public key of OpenSSH")
    key.set_defaults(run=_key, stopped=AGAIN)

    trust = commands.add_parser(
        "trust",
        help="whose signatures count: the officer maintains the list",
        description="Add somebody to trusted-keys.yaml, or take them off, signed by the privacy officer. The first is the "
        "officer: trust NAME --role officer --public NAME.pub --key NAME. site.yaml then pins their fingerprint.",
    )
    trust.add_argument("name", metavar="NAME", help="whose key it is")
    trust.add_argument("--role", choices=("officer", "steward", "reviewer", "service"))
    trust.add_argument("--public", type=Path, metavar="FILE.pub", help="their public key of OpenSSH")
    trust.add_argument("--remove", action="store_true", help="take them off the list")
    add_key(trust, "the officer's key")
    add_home(trust)
    trust.set_defaults(run=_trust, stopped=AGAIN)

    approve = commands.add_parser(
        "approve",
        help="sign a candidate as its reviewer, or a policy or populations.yaml as the privacy officer",
        description="TARGET is a candidate (POLICY/RELEASE or POLICY/RELEASE/rN), policies/NAME.yaml, or populations.yaml. It is "
        "signed as it is at this moment, on this machine: nothing here promises that this is what you saw, where somebody else "
        "can change the account or the files. `review export`, and `sign` on a machine of your own, do.",
    )
    approve.add_argument("target", metavar="TARGET")
    approve.add_argument("--why", default="", help="a remark, signed with it")
    add_key(approve, "your key")
    add_home(approve)
    approve.set_defaults(run=_approve, stopped=_describe_approval)

    reject = commands.add_parser("reject", help="reject a candidate, with the reason")
    reject.add_argument("target", metavar="RELEASE")
    reject.add_argument("--why", required=True, help="the reason, signed with it")
    add_key(reject, "your key")
    add_home(reject)
    reject.set_defaults(run=_reject, stopped=describe_release)

    give_back = commands.add_parser(
        "return",
        help="return a candidate with reasons: it waits for an answer or a revision",
        description="As long as your last vote returns it, the candidate is neither approved nor published. It is no end: who "
        "returned it may approve it later. Nobody is told of your vote before all votes are in.",
    )
    give_back.add_argument("target", metavar="RELEASE")
    give_back.add_argument("--why", required=True, help="the reasons, signed with it, in one line; `remark` has room for more")
    add_key(give_back, "your key")
    add_home(give_back)
    give_back.set_defaults(run=_return, stopped=describe_release)

    remark = commands.add_parser(
        "remark",
        help="remark on a passage of a candidate, or of a policy, as reviewer, officer or its steward",
        description="TARGET is a candidate or policies/NAME.yaml, as it is now. What a reviewer remarks on a candidate is told "
        "to others once all votes are in. `review show` tells the remarks that everybody may see.",
    )
    remark.add_argument("target", metavar="TARGET")
    remark.add_argument(
        "--at", default="", metavar="PASSAGE", help="a section of the page, or a path like columns.income (default: the whole)"
    )
    remark.add_argument("--text", required=True, help="what you remark, signed; lines are kept")
    add_key(remark, "your key")
    add_home(remark)
    remark.set_defaults(run=_remark, stopped=AGAIN)

    publish = commands.add_parser(
        "publish",
        help="verify everything about an approved candidate anew, and write its public package",
        description="Verifies hashes, gates, approvals, cap and embargo, and writes releases/POLICY/RELEASE/rN, whole; then "
        "brings it to the targets of site.yaml, if there are any.",
    )
    publish.add_argument("target", metavar="RELEASE")
    add_key(publish, "the key of the service, or of the officer")
    add_home(publish)
    publish.set_defaults(run=_publish, stopped=describe_release)

    retract = commands.add_parser(
        "retract",
        help="take a published release back, for good: its data leave the package, and a tombstone tells why",
    )
    retract.add_argument("target", metavar="RELEASE")
    retract.add_argument("--why", required=True, help="the reason, signed with it, and published")
    add_key(retract, "the officer's key")
    add_home(retract)
    retract.set_defaults(run=_retract, stopped=describe_release)

    supersede = commands.add_parser(
        "supersede", help="refer the readers of a published release to a later revision of it, for good"
    )
    supersede.add_argument("target", metavar="RELEASE", help="the one that is superseded")
    supersede.add_argument("--by", required=True, metavar="RELEASE", help="the later revision, published")
    supersede.add_argument("--why", default="", help="a remark, signed with it, and published")
    add_key(supersede, "the officer's key")
    add_home(supersede)
    supersede.set_defaults(run=_supersede, stopped=describe_release)


def _describe_approval(options: argparse.Namespace) -> str:
    return AGAIN if Path(options.target).suffix == ".yaml" else describe_release(options)


def _key(options: argparse.Namespace) -> int:
    from release_pipeline.flow.trust.keys import read_public_key

    print(read_public_key(options.public).fingerprint)
    return 0


def _trust(options: argparse.Namespace) -> int:
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.keys import read_public_key
    from release_pipeline.flow.trust.members import distrust, trust_key

    site = find_site(options.home)
    if options.remove and (options.role or options.public):
        raise WrongUsage("--remove takes neither --role nor --public.", where=options.name)
    if options.remove:
        trust = distrust(site, options.name, key=read_key_of(options))
    elif options.role is None or options.public is None:
        raise WrongUsage("whose key is it, and in which role?", remedy="Name --role and --public, or --remove.")
    else:
        trust = trust_key(site, options.name, options.role, read_public_key(options.public), key=read_key_of(options))
    for member in trust.members:
        print(f"{member.name:<20} {member.role:<9} {member.key.fingerprint}")
    return 0


def _approve(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.approvals import approve_candidate, approve_policy, approve_populations, find_approvable

    site = find_site(options.home)
    target = Path(options.target)
    if target.suffix == ".yaml":
        file = find_approvable(site, target)
        if file == site.populations_file:
            decision = approve_populations(site, key=read_key_of(options))
        else:
            _warn_of_same_people(site, file.stem)
            decision = approve_policy(site, file.stem, key=read_key_of(options))
        print(f"{file}: approved by {decision.name} (hash {decision.digest[:12]})")
        print(_NOT_SEEN, file=sys.stderr)
        return 0
    release = find_release(site, options.target)
    _warn_of_same_people(site, release.policy)
    decision = approve_candidate(site, release, key=read_key_of(options), why=options.why)
    deed = "approved" if decision.new else "was approved before"
    print(f"{decision.subject}: {deed} by {decision.name}, {decision.count} of {decision.needed} (hash {decision.digest[:12]})")
    print(_NOT_SEEN, file=sys.stderr)
    return 0


def _warn_of_same_people(site: Site, name: str) -> None:
    """Before anybody signs. A policy that cannot be read is refused by what comes next."""
    from release_pipeline.flow.same_people import warn_by_name

    for words in warn_by_name(site, name):
        print(f"warning: {words}", file=sys.stderr)


def _return(options: argparse.Namespace) -> int:
    from release_pipeline.flow.trust.approvals import return_candidate

    site, release = read_release_of(options)
    decision = return_candidate(site, release, key=read_key_of(options), why=options.why)
    print(f"{decision.subject}: {'returned' if decision.new else 'was returned before'} by {decision.name}")
    print(_NOT_SEEN, file=sys.stderr)
    return 0


def _remark(options: argparse.Namespace) -> int:
    from release_pipeline.flow.reviewing.subjects import find_subject
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust.approvals import remark

    site = find_site(options.home)
    remarks = find_subject(site, options.target).remark_on([(options.at, options.text)])
    decision = remark(site, remarks, key=read_key_of(options))
    print(f"{decision.subject}: {'remarked on' if decision.new else 'was remarked on before'} by {decision.name}")
    return 0


def _reject(options: argparse.Namespace) -> int:
    from release_pipeline.flow.trust.approvals import reject_candidate

    site, release = read_release_of(options)
    decision = reject_candidate(site, release, key=read_key_of(options), why=options.why)
    print(f"{decision.subject}: rejected by {decision.name}")
    return 0


def _publish(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.publish import publish
    from release_pipeline.flow.sums import hash_of

    site, release = read_release_of(options)
    folder = publish(site, release, key=read_key_of(options))
    print(f"{folder}\npackage {hash_of(folder)}")
    with _reporting_to_dagster() as launch:
        launch.record_published(site, release)
    deliver_release(site, release)
    return 0


@contextmanager
def _reporting_to_dagster() -> Iterator[Any]:
    """What is done is done: when Dagster's own records cannot be written, that is said and no more."""
    from release_pipeline.dagster_app import launch

    try:
        yield launch
    except ReleasePipelineError as error:
        print(f"note: {error} So the UI does not show it.", file=sys.stderr)


def _retract(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.withdrawal import retract

    site, release = read_release_of(options)
    folder = retract(site, release, key=read_key_of(options), why=options.why)
    print(f"{folder}: retracted; its data are gone, and RETRACTED.md says why, as it was signed first")
    with _reporting_to_dagster() as launch:
        launch.record_withdrawn(site, release, f"{release} was retracted: {options.why}")
    deliver_release(site, release)
    return 0


def _supersede(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.publication.withdrawal import supersede

    site, old = read_release_of(options)
    new = find_release(site, options.by)
    folder = supersede(site, old, new, key=read_key_of(options), why=options.why)
    print(f"{folder}: superseded by {new}; SUPERSEDED.md says so")
    with _reporting_to_dagster() as launch:
        launch.record_withdrawn(site, old, f"{old} was superseded by {new}.")
    deliver_release(site, old)
    return 0
