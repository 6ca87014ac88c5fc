"""Remarks in draft: kept for one person and one subject, as long as that is what it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.apps.desk.backend.calls import DraftRemark, Drafts
from release_pipeline.errors import WrongUsage
from release_pipeline.store.site import Site
from release_pipeline.verifier.remarks import LONGEST_REMARK, MOST_REMARKS

REMARK = DraftRemark("gates", "why?")
DIGEST = "ab" * 32
people, subjects, digests = (
    st.sampled_from(["ben", "cleo"]),
    st.sampled_from(["people/1/r1", "people"]),
    st.sampled_from([DIGEST, "cd" * 32]),
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
        DraftRemark("", " \n "),
        DraftRemark("", "x" * (LONGEST_REMARK + 1)),
        DraftRemark("", "a\u202eb"),
        DraftRemark("", "\u200b"),
        DraftRemark("", "a\U000e0041"),
        DraftRemark("a\nb", "x"),
        DraftRemark("a\u200b", "x"),
    ],
)
def test_a_remark_is_plain_text(tmp_path: Path, remark: DraftRemark) -> None:
    """Nothing that shows otherwise than it is."""
    with pytest.raises(WrongUsage):
        drafts_of(tmp_path).add("ben", "people", DIGEST, remark)
    assert not list(tmp_path.iterdir())


def test_there_are_so_many(tmp_path: Path) -> None:
    """And the file is the person's own, and nobody else's to read."""
    drafts = drafts_of(tmp_path)
    for _ in range(3):
        drafts.add("ben", "people", DIGEST, REMARK)
    file = tmp_path / "desk" / "drafts-ben.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in (tmp_path / "desk").iterdir()] == [file.name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("release_pipeline.apps.desk.backend.calls.MOST_REMARKS", 3)
        with pytest.raises(WrongUsage, match="remarks already"):
            drafts.add("ben", "people", DIGEST, REMARK)
    assert MOST_REMARKS > 3
