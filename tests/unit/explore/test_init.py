"""The skeleton of a policy, and that no person gets into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import SourceError
from release_pipeline.explore.draft import draft_policy

PEOPLE = "Anna,Lisbon,nurse\nBenedikt,Porto,clerk\nCarla,Lisbon,nurse\n"


def draft(folder: Path, text: str, *, header: bool = False) -> str:
    """The skeleton for a file of this text."""
    file = folder / "people.csv"
    file.write_text(text, encoding="utf-8")
    return draft_policy("people", file, header=header)


@pytest.mark.parametrize(
    "text",
    [
        PEOPLE,
        "Anna,Lisbon\nBenedikt,Porto\n",  # nothing stands there twice
        "Anna,Lisbon,\nBenedikt,Porto,3\n",
        "Anna,Lisbon,NA\nBenedikt,Porto,3\nCarla,Faro,5\n",  # her number is missing, and the others' tell nothing
        "Anna,1980-01-31\nBenedikt,1981-02-28\n",
        "Anna,anna@example.org\nBenedikt,b@example.org\n",
        "Anna,+351 210 000 000\nBenedikt,+351 220 000 000\n",
        "Anna,Lisbon\n",
    ],
)
def test_a_first_person_is_no_header(tmp_path: Path, text: str) -> None:
    """Refused, and nothing that stands in the file is in the words."""
    with pytest.raises(SourceError) as refused:
        draft(tmp_path, text)
    words = f"{refused.value} {refused.value.remedy}"
    assert not [cell for line in text.split("\n") for cell in line.split(",") if len(cell) > 2 and cell in words]
