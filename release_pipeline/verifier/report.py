"""The report that collects findings, and the facts of a package."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any

from release_pipeline.verifier.documents import HEX, UTC, Fault, WrongUsage, printable, read_moment
from release_pipeline.verifier.findings import Finding, list_officers
from release_pipeline.verifier.revocations import Revocations
from release_pipeline.verifier.succession import SLACK, Succession
from release_pipeline.verifier.trees import OFFICERS


class Report:
    def __init__(self, officer: str | Collection[str] | None) -> None:
        self.findings: list[Finding] = []
        self.given, self._told = frozenset(list_officers(officer)), set[str]()
        self._linked: dict[str, str] = {}  # an officer, and the given one to whom signed successions link them
        self.left: dict[str, datetime] = {}  # when officers left: what they sign later is not the officer's
        self.taken: dict[str, datetime] = {}  # keys that holders of recovery keys revoked in successions, from when on
        self.lines: dict[str, tuple[str, ...]] = {}  # files that were named with the package, and the officers in them
        self.officers: list[str] = []  # officers that occurred
        self.dated: list[tuple[str, str]] = []  # signed files of the package, and when each was signed
        self.revocations: Revocations | None = None
        if not all(HEX.fullmatch(fingerprint) for fingerprint in self.given):
            raise WrongUsage("--officer: a fingerprint is 64 digits from 0 to 9 and a to f; `key` and `trust` print it.")

    def __call__(self, level: str, words: str) -> None:
        self.findings.append(Finding(level, printable(words)))

    def about(self, name: str) -> _About:
        """Return a block in which a fault becomes a line about `name`."""
        return _About(self, name)

    def note_moments(self, dated: Iterable[tuple[str, str]]) -> None:
        """Note the first moment that is later than the clock of this machine, and the first that is earlier than one before it.
        `dated`: the dated things, each with its moment, in the order in which they happened."""
        now, last, ahead, back = datetime.now(UTC), ("", datetime.min.replace(tzinfo=UTC)), list[str](), list[str]()
        for name, at in dated:
            moment = read_moment(at)
            if moment - now > SLACK:
                ahead.append(f"{name} is dated {at}, later than the clock of this machine says now: one of the two is wrong")
            if last[1] - moment > SLACK:
                back.append(f"{name} is dated {at}, earlier than {last[0]}, which came before it: a clock was wrong")
            last = (name, moment)
        for wrong in (ahead, back):
            if wrong:
                self("note", wrong[0] + (f" ({len(wrong) - 1} more)" if wrong[1:] else ""))

    def judge_officer(self, fingerprint: str, where: str) -> None:
        """Report, once for each officer, whether they are a given one; if none was given, a person must compare."""
        sentence = f"{where}: the officer's fingerprint is {fingerprint}"
        if fingerprint not in self._told and fingerprint not in self.given and fingerprint in self._linked:
            self("ok", f"{sentence}, linked by signed successions to {self._linked[fingerprint]}, which was given")
        elif fingerprint not in self._told and self.given:
            known = fingerprint in self.given
            told = "as it was given" if known else self._describe_stranger(fingerprint)
            self("ok" if known else "FAIL", f"{sentence}, {told}")
        elif fingerprint not in self._told:
            self("note", f"{sentence}; everything stands on it: compare it with what the publisher tells by another channel")
        if fingerprint not in self._told:
            self.officers.append(fingerprint)
        self._told.add(fingerprint)

    def _describe_stranger(self, fingerprint: str) -> str:
        """Return what is wrong with an officer who was not given, and what to fetch."""
        sentence = "which is not the one that was given"
        if OFFICERS not in self.lines:
            return f"{sentence}: if the office changed hands, name the publisher's {OFFICERS} with --officers"
        return sentence

    def link(self, office: Succession) -> None:
        """Take over officers who followed each other by verified successions. Anyone who knows one
        of them can rely on those before, whom the next one named when accepting, and on those
        after, since a new officer signs for the recovery keys, too."""
        for officer, moment in office.left.items():
            self.left[officer] = min(moment, self.left.get(officer, moment))
        for key, moment in office.taken.items():
            self.taken[key] = min(moment, self.taken.get(key, moment))
        for given in office.chain:
            if given in self.given:
                self._linked.update((known, given) for known in office.chain if known not in self.given)


class _About:
    """A block that ends at its first fault, which is reported; the code after the block runs all the same."""

    def __init__(self, report: Report, name: str) -> None:
        self._report, self._name = report, name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Fault):
            self._report("FAIL", f"{self._name}: {error.what}")
        return isinstance(error, Fault)


@dataclass
class Package:
    """The facts that the rest of a dossier is compared with; empty where the package does not have them."""

    release: str = ""
    hash: str = ""
    head: tuple[int, str] = (0, "")
    site: str = ""  # the hash of the first event of its registry, which is no other site's
    events: dict[int, str] = field(default_factory=dict[int, str])  # hashes of events that are known, by their number
    charge: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as far as the card has it; in a dossier, the event's
    # charges of releases that were lost in a restore, those from before the backup and those that an officer entered
    lost: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    sums: dict[str, str] = field(default_factory=dict[str, str])
    tombstones: list[str] = field(default_factory=list[str])
    looks: int = 0  # trials on the data before the charge, by the card
