"""The verifier's functions for programs, and its command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from release_pipeline.verifier.chain import Event, Head, History, read_head, read_history, verify_chain
from release_pipeline.verifier.documents import HEX, Fault, WrongUsage, find_member, get, printable, read_json
from release_pipeline.verifier.dossiers import (
    check_approvals,
    check_charge,
    check_dossier,
    check_looks,
    check_moment,
    check_not_lost,
    compare_lost,
    note_history,
)
from release_pipeline.verifier.findings import Finding, Verification, list_officers
from release_pipeline.verifier.packages import check_package, describe_succession
from release_pipeline.verifier.report import Package, Report
from release_pipeline.verifier.revocations import fetch, read_revocations
from release_pipeline.verifier.succession import read_officers
from release_pipeline.verifier.trees import CARD, DOSSIER, EVENTS, KEYS, KEYS_SIG, OFFICERS, SUMS, SUMS_SIG, open_tree


def verify_path(
    path: str | os.PathLike[str], officer: str | Collection[str] | None = None, revocations: str = "", officers: str = ""
) -> list[Finding]:
    """Return the findings of all checks of the package or dossier at `path`, a folder or a zip.

    `officer` is the fingerprint that the officer must have; several, if the office changed hands. Raises `WrongUsage` unless
    there is something to check. `revocations`: a file or address of the publisher's list of revoked keys; `officers`: a file or
    address of an officers.json that knows more than the package.
    """
    return examine(path, officer, revocations, officers).findings


def examine(
    path: str | os.PathLike[str],
    officer: str | Collection[str] | None = None,
    revocations: str = "",
    officers: str = "",
    witnessed: Head | None = None,
    beside: str | os.PathLike[str] = "",
) -> Verification:
    """Return the findings, with what was checked. `witnessed`: an event that a dossier must have, as somebody outside kept it.
    `beside`: another package or dossier, which must be of the same chain of events if it is of the same site."""
    report, kind, package = _examine(path, officer, revocations, officers, witnessed)
    if beside:
        with report.about(str(beside)):
            other, _, its = _examine(beside, officer, revocations, officers, None)
            _compare_chains(report, str(beside), package, its, other.findings)
    given = list_officers(officer)
    return Verification(printable(str(path)), kind, given, report.officers, package.release, package.hash, report.findings)


def _examine(
    path: str | os.PathLike[str],
    officer: str | Collection[str] | None,
    revocations: str,
    officers: str,
    witnessed: Head | None,
) -> tuple[Report, str, Package]:
    """Return the report of one package or dossier, which of the two it is, and its own facts."""
    report, kind, package = Report(officer), "", Package()
    if officers:
        _take_officers(report, officers)
    if revocations:
        _take_revocations(report, revocations)
    try:
        with open_tree(Path(path)) as tree:
            if any(name in (DOSSIER, EVENTS) or name.startswith(("package/", "candidate/")) for name in tree.sizes):
                kind = "dossier"
                package = check_dossier(report, tree, witnessed)
            elif {SUMS, SUMS_SIG, CARD, KEYS, KEYS_SIG} & set(tree.sizes):
                kind = "package"
                if witnessed is not None:
                    raise WrongUsage(f"{path}: --since: a package has no events to look for; a dossier has them, and a site.")
                package = check_package(report, tree, data_may_be_away=False)
            else:
                raise WrongUsage(f"{path}: this is neither a package nor a dossier: there is no {SUMS} in it.")
    except Fault as fault:
        report("FAIL", f"{path}: {fault.what}")
    return report, kind, package


def _compare_chains(report: Report, name: str, first: Package, second: Package, findings: Iterable[Finding]) -> None:
    """Check that two packages or dossiers of one site are of one chain of events. Each copy of a site goes on under a whole cap,
    and each chain is valid by itself; they differ from the first event on that only one of them has."""
    failed = sum(finding.level == "FAIL" and ": RETRACTED: " not in finding.words for finding in findings)
    if failed or not first.site or not second.site:
        raise Fault(f"{failed} checks of it failed, so the two cannot be compared: verify it by itself")
    if first.site != second.site:
        report("note", f"{name}: it comes from another site, whose registry begins otherwise: there is nothing to compare")
        return
    common = sorted(first.events.keys() & second.events.keys())
    if not common:
        sentence = f"this one names event {first.head[0]} of the same registry, and that one event {second.head[0]}"
        report("note", f"{name}: {sentence}: only a dossier of the later one shows whether one chain has both")
        return
    apart = [number for number in common if first.events[number] != second.events[number]]
    if not apart:
        report("ok", f"{name}: event {common[-1]} is the same in both: they come from one chain of events")
    elif second.release in first.lost or first.release in second.lost:
        lost, by = (second, first) if second.release in first.lost else (first, second)
        if wrong := compare_lost(by.lost[lost.release], lost.charge):
            sentence = f"the site was restored from a backup, and {lost.release} is charged there otherwise than here published"
            raise Fault(f"event {apart[0]} differs; {sentence}: {', '.join(wrong)}: the same budget was spent twice")
        sentence = f"event {apart[0]} differs, for the site was restored from a backup in between"
        report("note", f"{name}: {sentence}; what the earlier release was charged is in the chain of the later one")
    else:
        sentence = "these two come from two copies of one site that both went on: the same budget was spent twice"
        restored = "unless the site was restored from a backup in between, which a dossier of the later one shows"
        raise Fault(f"event {apart[0]} of the same registry has one hash here and another there: {sentence}, {restored}")


def _take_revocations(report: Report, address: str) -> None:
    """Read the list of revoked keys, and judge everything by it from now on; an unreadable list is a failure."""
    with report.about(f"{address}"):
        known = read_revocations(fetch(address))
        report.link(known.office)
        report.judge_officer(known.office.chain[-1], address)
        report.revocations, report.lines["list of revoked keys"] = known, tuple(known.office.chain)
        sentence = f"list {known.number} of revoked keys, signed by the officer at {known.at}; {len(known.entries)} keys"
        report("ok", f"{address}: {sentence}. Whether a newer one is out, the publisher knows")


def _take_officers(report: Report, address: str) -> None:
    """Read from outside the package how the officers followed each other, and judge everything by it."""
    with report.about(f"{address}"):
        office = read_officers(read_json(fetch(address)))
        report.lines[OFFICERS] = tuple(office.chain)
        if report.given and not report.given & set(office.chain):
            raise Fault("none of its officers is one that was given: it is another publisher's")
        report.link(office)
        report("ok", f"{address}: {describe_succession(office)}")


def verify_events(lines: Iterable[str | bytes], officer: str | Collection[str] | None = None) -> list[Finding]:
    """Return the findings about a chain of events by itself, a line each as in a dossier's events.jsonl."""
    report = Report(officer)
    with report.about(EVENTS):
        history = read_history(report, verify_chain(lines))
        if not any(finding.level == "FAIL" for finding in report.findings):
            sentence = f"{len(history.events)} events, each with the hash of the one before it"
            report("ok", f"{EVENTS}: {sentence}; {len(history.signed)} signed statements, each by a key that was trusted then")
        note_history(report, history)
        for event in history.events:
            if event.kind == "published":
                with report.about(f"{EVENTS}, {event.release}"):
                    _check_published(report, history, event)
    return report.findings


def _read_looks(history: History, release: str, candidate: str) -> int:
    """Return the number of trials on the data in the public facts of a candidate."""
    events = [event for event in history.of("candidate", release) if event.content.get("candidate_hash") == candidate]
    looks = find_member(get(events[-1].content, "facts", dict), "looks") if events else 0
    return looks if isinstance(looks, int) else 0


def _check_published(report: Report, history: History, event: Event) -> None:
    """Check a published release as a dossier does, from the events only."""
    intents = [intent for intent in history.of("publishing", event.release) if intent.number < event.number]
    if not intents:
        raise Fault(f"it was published in event {event.number} without an intent")
    head = (intents[-1].number, intents[-1].hash)
    package = Package(event.release, get(event.content, "package_hash", HEX), head)
    check_not_lost(report, history, event.release)
    if event.number in history.lost:
        return
    policy = check_charge(report, history, package, history.find_caps)
    candidate = get(intents[-1].content, "candidate_hash", HEX)
    check_approvals(report, history, package, candidate, policy)
    check_moment(report, history, package, policy)
    check_looks(history, event.release, _read_looks(history, event.release, candidate), "the candidate")


def main(arguments: list[str] | None = None) -> int:
    """Print the findings, a line each; returns the exit code."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Check a published package or an auditor's dossier, offline.")
    here = Path(__file__).resolve().parent
    parser.add_argument("path", nargs="?", default=here, help="folder or zip (default: the folder that this file lies in)")
    parser.add_argument("--officer", action="append", metavar="FINGERPRINT", help="the officer's; again for an earlier officer's")
    parser.add_argument(
        "--revocations", default="", metavar="FILE|URL", help="the publisher's list of revoked keys (revoked.json)"
    )
    parser.add_argument("--since", metavar="FILE", help="what `head export` wrote: an event that a dossier must have")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument(
        "--officers", default="", metavar="FILE|URL", help="the publisher's officers.json, if it is newer than the package's"
    )
    parser.add_argument(
        "--beside", default="", metavar="OTHER", help="another package or dossier: do both come from one chain of events?"
    )
    wanted = parser.parse_args(arguments)
    try:
        witnessed = None if wanted.since is None else _load_head(Path(wanted.since))
        verification = examine(wanted.path, wanted.officer, wanted.revocations, wanted.officers, witnessed, wanted.beside)
    except WrongUsage as error:
        lines, code, where = [printable(error.what)], 2, sys.stderr
        if wanted.json:
            print(json.dumps(_report_usage(lines[0]), indent=2), flush=True)
    else:
        lines, code, where = [*map(str, verification.findings), verification.verdict], int(verification.failed > 0), sys.stdout
        if wanted.json:
            lines = [json.dumps(verification.to_json(), indent=2)]
    coding = where.encoding or "ascii"
    try:
        print("\n".join(lines).encode(coding, "backslashreplace").decode(coding), file=where, flush=True)
    except BrokenPipeError:  # the reader has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), where.fileno())
    return code


def _load_head(file: Path) -> Head:
    try:
        return read_head(file.read_bytes())
    except OSError as error:
        raise WrongUsage(f"{file}: it cannot be read: {error.strerror}.") from None
    except Fault as fault:
        raise WrongUsage(f"{file}: this is not what `head export` writes: {fault.what}.") from None


def _report_usage(what: str) -> dict[str, Any]:
    """Return what cannot be checked, for a script, as release-pipeline/error/1."""
    error: dict[str, str | list[str]] = {"code": "wrong-usage", "what": what, "where": "", "remedy": "", "details": []}
    return {"format": "release-pipeline/error/1", "command": "verify", "exit_code": 2, "error": error}
