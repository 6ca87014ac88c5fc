"""Remarks in draft: kept for one person and one subject, as long as that is what it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.desk.backend.drafts import LONGEST_REMARK, MOST_BYTES, MOST_REMARKS, DraftRemark, Drafts
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.site import Site

REMARK = DraftRemark("gates", "why?")
people, subjects, digests = (
    st.sampled_from(["ben", "cleo"]),
    st.sampled_from(["people/1/r1", "people"]),
    st.sampled_from(["ab", "cd"]),
)
deeds = st.tuples(st.sampled_from(["add", "drop", "forget"]), people, subjects, digests, st.integers(0, 3))


def drafts_of(folder: Path) -> Drafts:
    """Of a site where nothing else is."""
    return Drafts(Site(folder, {}))


@pytest.mark.slow
@given(st.lists(deeds, max_size=8))
def test_drafts_are_what_was_written_and_not_dropped(done: list[tuple[str, str, str, str, int]]) -> None:
    """Whoever does what in which order: a plain model says the same. What is written of a subject that is another now takes the
    place of what was written before."""
    with tempfile.TemporaryDirectory() as folder:
        drafts, model = drafts_of(Path(folder)), dict[tuple[str, str], tuple[str, list[str]]]()
        for place, (deed, person, subject, digest, number) in enumerate(done):
            known = model.get((person, subject), ("", []))
            mine = known[1] if known[0] == digest else []
            if deed == "add":
                drafts.add(person, subject, digest, DraftRemark("", f"remark {place}"))
                model[person, subject] = (digest, [*mine, f"remark {place}"])
            elif deed == "drop":
                drafts.drop(person, subject, digest, number)
                model[person, subject] = (digest, mine[:number] + mine[number + 1 :])
            else:
                drafts.forget(person, subject)
                model[person, subject] = ("", [])
            for (who, what), (of, texts) in model.items():
                assert [one.text for one in drafts.read(who, what, of).remarks] == (texts if of else [])


@pytest.mark.parametrize(
    "remark",
    [
        DraftRemark("", ""),
        DraftRemark("", " \n "),
        DraftRemark("", "x" * (LONGEST_REMARK + 1)),
        DraftRemark("x" * 201, "x"),
        DraftRemark("", "a\0b"),
        DraftRemark("", "a\x1b[31m"),
        DraftRemark("", "a\u202eb"),
        DraftRemark("", "\ud800"),
        DraftRemark("a\nb", "x"),
    ],
)
def test_a_remark_is_plain_text(tmp_path: Path, remark: DraftRemark) -> None:
    """Nothing that shows otherwise than it is."""
    with pytest.raises(WrongUsage):
        drafts_of(tmp_path).add("ben", "people", "ab", remark)
    assert not list(tmp_path.iterdir())


def test_there_are_so_many(tmp_path: Path) -> None:
    """And the file is the person's own, and nobody else's to read."""
    drafts = drafts_of(tmp_path)
    for _ in range(3):
        drafts.add("ben", "people", "ab", REMARK)
    file = tmp_path / "desk" / "drafts-ben.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in (tmp_path / "desk").iterdir()] == [file.name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("release_pipeline.desk.backend.drafts.MOST_REMARKS", 3)
        with pytest.raises(WrongUsage, match="remarks already"):
            drafts.add("ben", "people", "ab", REMARK)
    assert MOST_REMARKS > 3


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["x", "\u03b1", "\U0001f600"])
def test_what_was_written_can_be_read_and_dropped(tmp_path: Path, letter: str) -> None:
    """However many bytes its letters have: more is refused in words, and nobody is locked out of their own drafts."""
    drafts, long = drafts_of(tmp_path), DraftRemark("", letter * LONGEST_REMARK)

    def fill() -> None:
        for number in range(MOST_REMARKS + 1):
            drafts.add("ben", f"people/{number}/r1", "ab", long)
            drafts.add("ben", "people", "ab", long)

    with pytest.raises(WrongUsage, match=r"as long as what is kept.*drop some|remarks already"):
        fill()
    assert (tmp_path / "desk" / "drafts-ben.json").stat().st_size <= MOST_BYTES
    kept = len(drafts.read("ben", "people", "ab").remarks)
    assert kept > 20
    drafts.drop("ben", "people", "ab", 0)
    drafts.add("ben", "people", "ab", long)
    assert len(drafts.read("ben", "people", "ab").remarks) == kept
    drafts.forget("ben", "people")
    assert drafts.read("ben", "people", "ab").remarks == ()
