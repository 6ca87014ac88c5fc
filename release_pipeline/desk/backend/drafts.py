"""Remarks that somebody has written and not signed yet: theirs alone, in a file of their own, until they sign or drop them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.files import write_text
from release_pipeline.flow.site import Site
from release_pipeline.policy.typed import read_as

MOST_REMARKS, LONGEST_REMARK = 200, 2000
MOST_BYTES = 500_000  # of all drafts of a person: 120 of the longest remarks, of letters that take two bytes
_LONGEST_PASSAGE, _MOST_TARGETS = 200, 50


@dataclass(frozen=True, slots=True)
class DraftRemark:
    """What is to be said of which passage; the empty one is the whole."""

    passage: str
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has to say of a target, as it had this hash when they began."""

    target: str
    digest: str
    remarks: tuple[DraftRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    drafts: tuple[Draft, ...] = ()


class Drafts:
    """The drafts of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def read(self, person: str, target: str, digest: str) -> Draft:
        """The person's draft of a target as it is now; what was written of it when it was another goes with that."""
        found = [one for one in self._read(person) if (one.target, one.digest) == (target, digest)]
        return found[0] if found else Draft(target, digest)

    def add(self, person: str, target: str, digest: str, remark: DraftRemark) -> None:
        """One more remark."""
        _check(remark)
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            if len(mine.remarks) >= MOST_REMARKS:
                raise WrongUsage(f"there are {MOST_REMARKS} remarks already.", where=target, remedy="Drop some, or join them.")
            text = self._join(person, Draft(target, digest, (*mine.remarks, remark)))
            if len(text.encode()) > MOST_BYTES:
                raise WrongUsage(
                    "your drafts are as long as what is kept of one person.",
                    where=target,
                    remedy="Sign or drop some of your remarks on this or another subject.",
                )
            write_text(self._file(person), text)

    def drop(self, person: str, target: str, digest: str, number: int) -> None:
        """Without the remark of this number; nothing happens where there is none."""
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            left = tuple(remark for place, remark in enumerate(mine.remarks) if place != number)
            self._keep(person, Draft(target, digest, left))

    def forget(self, person: str, target: str) -> None:
        """What was signed is a draft no more."""
        with self._site.changing_desk():
            self._keep(person, Draft(target, ""))

    def _keep(self, person: str, draft: Draft) -> None:
        write_text(self._file(person), self._join(person, draft))

    def _join(self, person: str, draft: Draft) -> str:
        """The text of the person's file with this draft in it."""
        others = [one for one in self._read(person) if one.target != draft.target]
        kept = _Kept((*others[-(_MOST_TARGETS - 1) :], *([draft] if draft.remarks else [])))
        return json.dumps(asdict(kept), ensure_ascii=False) + "\n"

    def _read(self, person: str) -> Sequence[Draft]:
        file = self._file(person)
        return read_as(_Kept, json.loads(file.read_bytes()), where=str(file)).drafts if file.exists() else ()

    def _file(self, person: str) -> Path:
        return self._site.desk / f"drafts-{person}.json"


def _check(remark: DraftRemark) -> None:
    if not remark.text.strip():
        raise WrongUsage("a remark says something.", where="remark", remedy="Write what you have to say of the passage.")
    if len(remark.text) > LONGEST_REMARK or len(remark.passage) > _LONGEST_PASSAGE:
        raise WrongUsage(f"a remark has at most {LONGEST_REMARK} characters.", where="remark", remedy="Make two of it.")
    if not all(char.isprintable() or char == "\n" for char in remark.text) or not remark.passage.isprintable():
        raise WrongUsage("a remark is plain text.", where="remark", remedy="Leave out what cannot be printed.")
