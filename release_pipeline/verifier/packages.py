"""The checks of a published package."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from release_pipeline.verifier.attestation import check_attestation
from release_pipeline.verifier.documents import HEX, RELEASE, Fault, find_member, get, read_moment
from release_pipeline.verifier.findings import name_looks
from release_pipeline.verifier.report import Package, Report
from release_pipeline.verifier.statements import TOMBSTONES, Key, Statement, check_statement, find_officer, read_keys, verify_keys
from release_pipeline.verifier.succession import Succession, read_officers
from release_pipeline.verifier.trees import CARD, KEYS, KEYS_SIG, OFFICERS, PACKAGE, SUMS, SUMS_SIG, Tree, read_sums


def check_keys(report: Report, tree: Tree) -> dict[str, Key]:
    """Return the list of trusted keys; checks that its officer signed it and is the given one."""
    keys, at = dict[str, Key](), tree.prefix + KEYS
    with report.about(at):
        keys = read_keys(tree.json(KEYS))
    _check_officers(report, tree, keys)
    if keys:
        report.judge_officer(find_officer(keys), at)
    with report.about(at):
        if keys:
            _check_same_office(report, tree, find_officer(keys))
    with report.about(tree.prefix + KEYS_SIG):
        signed = verify_keys(tree.json(KEYS_SIG), keys, tree.digest(KEYS))
        report("ok", f"{tree.prefix}{KEYS_SIG}: the list of {len(keys)} trusted keys is signed by its officer {signed.name}")
        _check_counts(report, tree.prefix + KEYS_SIG, signed, keys)
        report.dated.append((tree.prefix + KEYS_SIG, signed.at))
        _note_what_dates_prove(report, at, find_officer(keys))
    return keys


def _check_officers(report: Report, tree: Tree, keys: Mapping[str, Key]) -> None:
    """Check how the officers followed each other, if there is a file of that. It must lead to the officer of these keys: an
    earlier officer could add the way to a later one to something that they made since."""
    if OFFICERS not in tree.sizes:
        return
    with report.about(tree.prefix + OFFICERS):
        office = read_officers(tree.json(OFFICERS))
        if keys and office.chain[-1] != find_officer(keys):
            raise Fault(f"it leads to another officer than that of {KEYS}")
        report.link(office)
        report("ok", f"{tree.prefix}{OFFICERS}: {describe_succession(office)}")


def describe_succession(office: Succession) -> str:
    return f"the office went from {' to '.join(each[:12] for each in office.chain)}, each time signed by who had to"


def _check_same_office(report: Report, tree: Tree, officer: str) -> None:
    """Check that the package and files named with it are of one line of officers: an officer may have signed for two."""
    mine = tuple(read_officers(tree.json(OFFICERS)).chain) if report.lines and OFFICERS in tree.sizes else (officer,)
    for name, known in report.lines.items():
        if officer in known and mine in (known[: len(mine)], (officer,)):
            continue
        if known != mine[: len(known)]:
            raise Fault(f"the {name} is of other officers: the office has forked, or it is another publisher's")
        report("note", f"{tree.prefix}{KEYS}: the {name} was signed before this officer came: get a newer one")


def _check_counts(report: Report, where: str, signed: Statement, keys: Mapping[str, Key]) -> None:
    """Check that the key of a signature was not revoked, or that the list names the signature: the moment in it depends only on
    the holder of the key. In a package it must also be of the officer's time; in a dossier the order of events decides."""
    revoked = report.revocations.entries.get(signed.signer) if report.revocations else None
    since = f"{revoked.since:%Y-%m-%d %H:%M} UTC" if revoked else ""
    if revoked and (signed.kind, signed.subject, signed.hash) in (revoked.stands or ()):
        report("ok", f"{where}: the key of {signed.name} was revoked from {since} on; this was signed before, as the list says")
    elif revoked and read_moment(signed.at) >= revoked.since:
        raise Fault(f"it was signed at {signed.at} with the key of {signed.name}, which was revoked from {since} on")
    elif revoked:
        sentence = f"it says that it was signed at {signed.at}, before the key of {signed.name} was revoked from {since} on"
        raise Fault(f"{sentence}, and the list does not name it among what stands: it is dated back, or was never published")
    elif not where.startswith(PACKAGE):
        _check_not_taken(report, signed)
        _check_in_office(report, signed, find_officer(keys))


def _check_not_taken(report: Report, signed: Statement) -> None:
    """Refuse a key that holders of recovery keys revoked in a succession. A stranger cannot know what it signed before: a thief
    puts any date. Only the list of revoked keys shows what stays valid."""
    taken = report.taken.get(signed.signer)
    if taken is None:
        return
    since = f"{taken:%Y-%m-%d %H:%M} UTC"
    if read_moment(signed.at) >= taken:
        sentence = f"it was signed at {signed.at} with the key of {signed.name}, which recovery keys revoked from {since} on"
        raise Fault(f"{sentence}: it does not count")
    sentence = (
        f"recovery keys revoked the key of {signed.name} from {since} on, and whoever has it can date this back to {signed.at}"
    )
    if report.revocations is None:
        raise Fault(f"{sentence}: name the publisher's list of revoked keys with --revocations, which tells what stands")
    raise Fault(f"{sentence}: the list of revoked keys does not name that key: get the newest")


def _check_in_office(report: Report, signed: Statement, officer: str) -> None:
    """Check that signatures under the list of an officer who left are from before; if a list of revoked keys was given, it must
    name that officer's valid signatures."""
    left = report.left.get(officer)
    if left is None:
        return
    since = f"{left:%Y-%m-%d %H:%M:%S} UTC"
    if read_moment(signed.at) > left:
        sentence = f"it was signed at {signed.at}, and the officer of its {KEYS} left at {since}"
        raise Fault(f"{sentence}: it does not count (if a clock was wrong then, --revocations tells what stands)")
    if report.revocations is not None and signed.signer == officer:
        sentence = (
            f"list {report.revocations.number} of revoked keys does not tell what stands of {signed.name}, who left at {since}"
        )
        raise Fault(
            f"{sentence}, and whose key can date this back: get the newest; if none does, the publisher must revoke that key"
        )


def _note_what_dates_prove(report: Report, where: str, officer: str) -> None:
    """Note where only dates show that a former officer's key signed in time."""
    revoked = report.revocations is not None and officer in report.revocations.entries
    if officer in report.left and not revoked and not where.startswith(PACKAGE):
        left = f"its officer left at {report.left[officer]:%Y-%m-%d %H:%M:%S} UTC"
        sentence = "that it was signed before is the word of who had the key then: the list of revoked keys knows (--revocations)"
        report("note", f"{where}: {left}; {sentence}")


def check_package(report: Report, tree: Tree, *, data_may_be_away: bool) -> Package:
    keys, package, at = check_keys(report, tree), Package(), tree.prefix
    with report.about(at + CARD):
        card = tree.json(CARD)
        package.release, head = get(card, "release", RELEASE), get(card, "registry_head", dict)
        package.head, package.site = (get(head, "event", int), get(head, "hash", HEX)), get(head, "first", HEX)
        package.events = dict([package.head])
        report(
            "ok", f"{at}{CARD}: release {package.release}; the registry stood at event {package.head[0]}, hash {package.head[1]}"
        )
        package.charge = {
            "policy_hash": find_member(find_member(card, "hashes"), "policy"),
            "rows": find_member(find_member(card, "rows"), "in"),
        }
        if find_member(card, "looks") is not None:
            package.looks = get(get(card, "looks", dict), "count", int)
            sentence = f"parameters may have been chosen with knowledge of the data, by {name_looks(package.looks)}"
            sentence += ", which no epsilon accounts for"
            report("note", f"{at}{CARD}: {sentence}")
    signer = ""
    with report.about(at + SUMS_SIG):
        package.hash = tree.digest(SUMS)
        signed = check_statement(tree.json(SUMS_SIG), keys, kind="package", subject=package.release, hash=package.hash)
        signer = signed.signer
        report("ok", f"{at}{SUMS_SIG}: release {package.release} is signed by {signed.name} ({signed.role}) at {signed.at}")
        _check_counts(report, at + SUMS_SIG, signed, keys)
        report.dated.append((at + SUMS_SIG, signed.at))
    if RELEASE.fullmatch(tree.place):
        level, sentence = ("ok", "as") if tree.place == package.release else ("FAIL", "otherwise than")
        report(
            level, f"{tree.place}: the folder is named {sentence} the release in it, {package.release or 'which does not tell'}"
        )
    tombstones = [name for name in TOMBSTONES if f"{name}.json" in tree.sizes]
    for name in tombstones:
        with report.about(f"{at}{name}.json"):
            wanted = {"kind": TOMBSTONES[name], "subject": package.release, "hash": package.hash}
            theirs = _keys_of_tombstone(report, tree, name, keys)
            signed = check_statement(tree.json(f"{name}.json"), theirs, **wanted)
            _check_counts(report, f"{at}{name}.json", signed, theirs)
            report.dated.append((f"{at}{name}.json", signed.at))
            report_tombstone(report, f"{at}{name}.json", signed)
            package.tombstones.append(TOMBSTONES[name])
            report("note", f"{at}{name}.md: signed by nobody; what counts is {name}.json")
    away = "removed by the retraction" if "retract" in package.tombstones else "not in a dossier" if data_may_be_away else ""
    beside = [SUMS_SIG, *(f"{name}.{end}" for name in tombstones for end in ("json", "md", OFFICERS))]
    package.sums = check_sums(report, tree, beside=beside, absent=lambda name: away if name.startswith("data.") else "")
    with report.about(at + SUMS_SIG):
        report.note_moments(report.dated)
    check_attestation(report, tree, keys, package, signer)
    return package


def _keys_of_tombstone(report: Report, tree: Tree, name: str, keys: Mapping[str, Key]) -> Mapping[str, Key]:
    """Return the keys that a tombstone is judged by: the package's, or those of a later officer, if a file leads from its officer
    to them."""
    if (beside := f"{name}.{OFFICERS}") not in tree.sizes:
        return keys
    office = read_officers(tree.json(beside))
    if not keys or find_officer(keys) not in office.chain:
        raise Fault(f"{beside} does not begin with the officer of the package")
    lines = dict(report.lines)
    if OFFICERS in tree.sizes:
        lines[OFFICERS] = tuple(read_officers(tree.json(OFFICERS)).chain)
    for line, known in lines.items():
        if any(one != other for one, other in zip(office.chain, known)):  # noqa: B905  Python 3.9 has no strict
            raise Fault(f"{beside} and the {line} are of other officers: the office has forked, or it is another publisher's")
    report.link(office)
    report.judge_officer(office.chain[-1], tree.prefix + beside)
    return office.keys


def report_tombstone(report: Report, where: str, signed: Statement) -> None:
    """Report a retraction as a failure, and a later revision as a note for a person to weigh."""
    level, word = ("FAIL", "retracted") if signed.kind == "retract" else ("note", "superseded")
    report(level, f"{where}: {word.upper()}: release {signed.subject} was {word} at {signed.at} by {signed.name}: {signed.why}")


def check_sums(report: Report, tree: Tree, *, beside: Collection[str], absent: Callable[[str], str]) -> dict[str, str]:
    """Compare every file with SHA256SUMS, both ways, and return the hashes that it lists. `beside`: files that it need not list;
    `absent(name)`: why a listed one may be missing."""
    listed: dict[str, str] = {}
    before = len(report.findings)
    with report.about(tree.prefix + SUMS):
        listed = read_sums(tree)
    for fault in tree.faults:
        report("FAIL", fault)
    for name in sorted(set(tree.sizes) - set(listed) - {SUMS, *beside}):
        report("FAIL", f"{tree.prefix}{name}: {SUMS} does not list it")
    away: list[str] = []
    for name, digest in listed.items():
        if name not in tree.sizes and absent(name):
            away.append(f"{tree.prefix}{name}: {absent(name)}; its SHA-256 is {digest}")
            continue
        with report.about(tree.prefix + name):
            if tree.digest(name) != digest:
                raise Fault(f"its content is not what {SUMS} says")
    if len(report.findings) == before:
        there = f"{len(listed) - len(away)} of {len(listed)} listed files"
        report("ok", f"{tree.prefix}{SUMS}: {there} are there, with the hashes that it lists, and nothing else is")
    for words in away:
        report("note", words)
    return listed
