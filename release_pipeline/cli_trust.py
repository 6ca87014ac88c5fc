"""The people's part of the command line: keys, trust, approvals, publication."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.keys import PrivateKey

AddHome = Callable[[argparse.ArgumentParser], None]


def add_commands(commands: Any, add_home: AddHome) -> None:
    """Add `key`, `trust`, `approve`, `reject`, `publish`, `retract`, `supersede`, `dossier` and `verify`."""
    key = commands.add_parser("key", help="make a key of your own", description="Keys belong to people: keep yours to yourself.")
    actions = key.add_subparsers(title="actions", metavar="ACTION", required=True)
    new = actions.add_parser("new", help="an encrypted private key NAME.key, and NAME.pub to give away")
    new.add_argument("name", metavar="NAME", help="your name, as policies write it")
    new.add_argument("--folder", type=Path, default=Path(), help="where to write both (default: here)")
    _add_passphrase(new)
    new.set_defaults(run=_key_new)

    trust = commands.add_parser(
        "trust",
        help="whose signatures count: the officer maintains the list",
        description="Add somebody to trusted-keys.yaml, or take them off, signed by the privacy officer. The first is the "
        "officer: trust NAME --role officer --public NAME.pub --key NAME.key. site.yaml then pins their fingerprint.",
    )
    trust.add_argument("name", metavar="NAME", help="whose key it is")
    trust.add_argument("--role", choices=("officer", "steward", "reviewer", "service"))
    trust.add_argument("--public", type=Path, metavar="FILE.pub", help="their public key")
    trust.add_argument("--remove", action="store_true", help="take them off the list")
    _add_key(trust, "the officer's key")
    add_home(trust)
    trust.set_defaults(run=_trust)

    approve = commands.add_parser(
        "approve",
        help="sign a candidate as its reviewer, or a policy or populations.yaml as the privacy officer",
        description="TARGET is a candidate (POLICY/RELEASE or POLICY/RELEASE/rN), policies/NAME.yaml, or populations.yaml.",
    )
    approve.add_argument("target", metavar="TARGET")
    approve.add_argument("--why", default="", help="a remark, signed with it")
    _add_key(approve, "your key")
    add_home(approve)
    approve.set_defaults(run=_approve)

    reject = commands.add_parser("reject", help="reject a candidate, with the reason")
    reject.add_argument("target", metavar="RELEASE")
    reject.add_argument("--why", required=True, help="the reason, signed with it")
    _add_key(reject, "your key")
    add_home(reject)
    reject.set_defaults(run=_reject)

    publish = commands.add_parser(
        "publish",
        help="verify everything about an approved candidate anew, and write its public package",
        description="Verifies hashes, gates, approvals, cap and embargo, and writes releases/POLICY/RELEASE/rN, whole.",
    )
    publish.add_argument("target", metavar="RELEASE")
    _add_key(publish, "the key of the service, or of the officer")
    add_home(publish)
    publish.set_defaults(run=_publish)

    retract = commands.add_parser(
        "retract",
        help="take a published release back, for good: its data leave the package, and a tombstone tells why",
    )
    retract.add_argument("target", metavar="RELEASE")
    retract.add_argument("--why", required=True, help="the reason, signed with it, and published")
    _add_key(retract, "the officer's key")
    add_home(retract)
    retract.set_defaults(run=_retract)

    supersede = commands.add_parser(
        "supersede", help="refer the readers of a published release to a later revision of it, for good"
    )
    supersede.add_argument("target", metavar="RELEASE", help="the one that is superseded")
    supersede.add_argument("--by", required=True, metavar="RELEASE", help="the later revision, published")
    supersede.add_argument("--why", default="", help="a remark, signed with it, and published")
    _add_key(supersede, "the officer's key")
    add_home(supersede)
    supersede.set_defaults(run=_supersede)

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
    verify.add_argument("--json", action="store_true", help="the findings as JSON")
    verify.set_defaults(run=_verify)


def _key_new(options: argparse.Namespace) -> int:
    from release_pipeline.flow.keys import check_person, make_key

    file = options.folder / f"{check_person(options.name)}.key"
    public = make_key(file, passphrase=_passphrase(options, twice=True))
    print(f"{file}: encrypted; keep it, and its passphrase, to yourself")
    print(f"{file.with_suffix('.pub')}: for the privacy officer\nfingerprint {public.fingerprint}")
    return 0


def _trust(options: argparse.Namespace) -> int:
    from release_pipeline.flow.keys import read_public_key
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.trust import distrust, trust_key

    site = find_site(options.home)
    if options.remove:
        trust = distrust(site, options.name, key=_key(options))
    elif options.role is None or options.public is None:
        raise WrongUsage("whose key is it, and in which role?", remedy="Name --role and --public, or --remove.")
    else:
        trust = trust_key(site, options.name, options.role, read_public_key(options.public), key=_key(options))
    for member in trust.members:
        print(f"{member.name:<20} {member.role:<9} {member.key.fingerprint}")
    return 0


def _approve(options: argparse.Namespace) -> int:
    from release_pipeline.flow.approvals import approve_candidate, approve_policy, approve_populations
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    target = Path(options.target)
    if target.suffix == ".yaml":
        if target.name == "populations.yaml":
            given = approve_populations(site, key=_key(options))
        else:
            given = approve_policy(site, target.stem, key=_key(options))
        print(f"{target}: approved by {given.name} (hash {given.digest[:12]})")
        return 0
    given = approve_candidate(site, find_release(site, options.target), key=_key(options), why=options.why)
    print(f"{given.subject}: approved by {given.name}, {given.count} of {given.needed} (hash {given.digest[:12]})")
    return 0


def _reject(options: argparse.Namespace) -> int:
    from release_pipeline.flow.approvals import reject_candidate
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    given = reject_candidate(site, find_release(site, options.target), key=_key(options), why=options.why)
    print(f"{given.subject}: rejected by {given.name}")
    return 0


def _publish(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.publish import publish
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.sums import hash_of

    site = find_site(options.home)
    folder = publish(site, find_release(site, options.target), key=_key(options))
    print(f"{folder}\npackage {hash_of(folder)}")
    return 0


def _retract(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.withdrawal import retract

    site = find_site(options.home)
    folder = retract(site, find_release(site, options.target), key=_key(options), why=options.why)
    print(f"{folder}: retracted; its data are gone, RETRACTED.md says why")
    return 0


def _supersede(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site
    from release_pipeline.flow.withdrawal import supersede

    site = find_site(options.home)
    old, new = find_release(site, options.target), find_release(site, options.by)
    folder = supersede(site, old, new, key=_key(options), why=options.why)
    print(f"{folder}: superseded by {new}; SUPERSEDED.md says so")
    return 0


def _dossier(options: argparse.Namespace) -> int:
    from release_pipeline.flow.dossier import write_dossier
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    file = write_dossier(site, find_release(site, options.target), options.output, overwrite=options.overwrite)
    print(f"{file}: confidential; check it with: release-pipeline verify {file} --officer {site.officer}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from release_pipeline.flow.verification import verify

    findings = verify(options.path, options.officer)
    failed = sum(finding.level == "FAIL" for finding in findings)
    if options.json:
        print(json.dumps([{"level": finding.level, "words": finding.words} for finding in findings], indent=2))
    else:
        for finding in findings:
            print(finding)
        print(f"NOT verified: {failed} failed." if failed else "Verified: nothing failed.")
    return int(failed > 0)


def _add_key(command: argparse.ArgumentParser, whose: str) -> None:
    command.add_argument("--key", type=Path, required=True, metavar="FILE.key", help=whose)
    _add_passphrase(command)


def _add_passphrase(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--passphrase-file", type=Path, metavar="FILE", help="where the passphrase of the key is (default: you are asked)"
    )


def _key(options: argparse.Namespace) -> PrivateKey:
    from release_pipeline.flow.keys import read_key

    return read_key(options.key, passphrase=_passphrase(options))


def _passphrase(options: argparse.Namespace, *, twice: bool = False) -> str:
    if options.passphrase_file is not None:
        from release_pipeline.flow.keys import read_passphrase

        return read_passphrase(options.passphrase_file)
    if not sys.stdin.isatty():
        raise WrongUsage("the key has a passphrase, and there is nobody to ask.", remedy="Name --passphrase-file FILE.")
    given = getpass.getpass("passphrase: ")
    if twice and getpass.getpass("once more: ") != given:
        raise WrongUsage("the two differ.", remedy="Try again.")
    return given
