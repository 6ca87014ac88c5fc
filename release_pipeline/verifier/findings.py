"""The results of checks, as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, TypedDict


@dataclass(frozen=True)
class Finding:
    """One line: level is "ok", "FAIL" or "note"; words are printable and complete, the checked thing first, up to a colon."""

    level: str
    words: str

    def __str__(self) -> str:
        return f"{self.level:<4}  {self.words}"

    @property
    def name(self) -> str:
        """Return the checked thing: a file, an event, a population; LOOSE where the words begin with no name."""
        name, colon, _ = self.words.partition(": ")
        return name if colon and name != LOOSE_WORDS else LOOSE

    def to_json(self) -> CheckView:
        """Return the line for a script."""
        passed = {"ok": True, "FAIL": False}.get(self.level)
        return {"name": self.name, "level": self.level, "passed": passed, "words": self.words}


class CheckView(TypedDict):
    """One line for a script."""

    name: Annotated[str, "what was looked at: a file, or what is in it"]
    level: Annotated[str, "pattern:^(ok|FAIL|note)$", "ok, FAIL, or note for what only a person can judge"]
    passed: Annotated[bool | None, "true for ok, false for FAIL, null for a note"]
    words: Annotated[str, "the line, as people read it"]


class VerificationView(TypedDict):
    """The document that `--json` prints."""

    format: Annotated[str, "pattern:^release-pipeline/verify/1$", "the format and its version"]
    path: Annotated[str, "what was checked, as it was named"]
    kind: Annotated[str, "pattern:^(package|dossier|site)?$", "package, dossier or site; empty where it cannot even be told"]
    ok: Annotated[bool, "whether nothing failed: with it the exit code is 0, else 1"]
    failed: Annotated[int, "how many checks failed"]
    fingerprint: Annotated[str | None, "that of the officer whom everything stands on; null where none is told"]
    officers: Annotated[list[str], "the fingerprints of every officer who was met, earlier ones of the chain included"]
    given: Annotated[list[str], "the fingerprints that they were compared with: --officer, or what a site pins"]
    compared: Annotated[bool, "whether anybody compared: if not, `ok` says that it holds together, not whose it is"]
    release: Annotated[str | None, "the release in it; null for a site"]
    package_hash: Annotated[str | None, "SHA-256 of the package's list of sums; null for a site"]
    checks: Annotated[list[CheckView], "everything that was checked, in order"]


@dataclass
class Verification:
    """The results of a verification. `kind`: package, dossier or site; `officers`: the fingerprints of officers in it, the
    package's own first; `given`: those that they were compared with; `release` and `package_hash` (the SHA-256 of the list of
    sums) are empty for a site, and where the package does not have them."""

    path: str
    kind: str = ""
    given: list[str] = field(default_factory=list[str])
    officers: list[str] = field(default_factory=list[str])
    release: str = ""
    package_hash: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def failed(self) -> int:
        """Return how many checks failed."""
        return sum(finding.level == "FAIL" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Return the last line."""
        return (
            f"NOT verified: {self.failed} failed."
            if self.failed
            else f"Verified: nothing failed.{'' if self.given else UNCOMPARED}"
        )

    def to_json(self) -> VerificationView:
        """Return the document for a script, release-pipeline/verify/1."""
        return {
            "format": "release-pipeline/verify/1",
            "path": self.path,
            "kind": self.kind,
            "ok": not self.failed,
            "failed": self.failed,
            "fingerprint": self.officers[0] if self.officers else None,
            "officers": self.officers,
            "given": self.given,
            "compared": bool(self.given),
            "release": self.release or None,
            "package_hash": self.package_hash or None,
            "checks": [finding.to_json() for finding in self.findings],
        }


LOOSE_WORDS, LOOSE = "signed by nobody and in no chain, so the word of who sent it", "other files"
UNCOMPARED = " But nobody compared the officer's fingerprint: get it from the publisher, and name it with --officer."


def list_officers(officer: str | Collection[str] | None) -> list[str]:
    return [officer] if isinstance(officer, str) else list(officer or ())


def name_looks(count: int) -> str:
    return f"{count} look{'' if count == 1 else 's'}"
