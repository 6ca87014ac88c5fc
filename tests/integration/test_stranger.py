"""A stranger has the demo's package and nothing else, and asks what docs/analyst.md lists: every question has its answer, in the
file and at the place that the page names."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import frictionless
import pytest

from tests.integration.people import Demo
from tests.integration.sites import ROOT
from tests.unit.report.validators import find_catalogue_faults, find_codebook_faults, find_entry_faults

pytestmark = pytest.mark.slow
_QUESTION = re.compile(r"^\| (?P<question>[^|]+\?) \| `(?P<file>[^`|]+)` \| (?P<where>[^|]+) \|$", re.MULTILINE)
ANSWERS: dict[str, tuple[Any, ...]] = {  # at each place in turn, what is said there or a part of it
    "What are these data?": ("Health care use of families", "Yearly records of people who took part in the RAND"),
    "Who collected them?": ("collector",),
    "Who publishes them?": ("Release Pipeline demo",),
    "Whom do I ask?": ("demo@example.org",),
    "Which places are covered?": ("Dayton",),
    "Which time is covered?": ("1974-01-01", "1982-12-31"),
    "Who was sampled, and how?": ("Families of the six sites, assigned to insurance plans at random",),
    "May I publish them, or what I make of them?": ("https://creativecommons.org/publicdomain/zero/1.0/",),
    "How do I cite them?": ("Health care use of families in the RAND Health Insurance Experiment. Release rand-hie-table/1/r1",),
    "What are they meant for, and who may have them?": ("Learning what a protected release is", "Everybody."),
    "What does a column have?": ("Cost of outpatient care",),
    "What exactly was counted, or asked?": ("All covered outpatient medical services, without dental care",),
    "What does a code mean?": ("{'value': 1, 'label': 'female'}",),
    "In which unit is a number?": ("dollars a year",),
    "Which values can a column have?": ("['0', '20000']", "1"),
    "How many records are there, and how many were dropped?": ("5638", "5638"),
    "Why is a cell empty?": ("none: a record without a value would have stopped the release", "0"),
    "How large is the noise?": ("Noise was added to counts of records", "None"),
    "What does the guarantee cover, precisely?": (
        "For any two tables D and D' of n records that differ in one of them",
        "everything that a reader of the table sees",
    ),
    "What does it not cover?": ("How many records there are, and that they passed the declared checks", ""),
    "Is it k-anonymous?": ("False", "There is no k: the rows are synthetic"),
    "May I link waves, row by row?": ("Rows of two releases do not belong together",),
    "How much was spent on these people in all?": ("0.18506984", "0.638597081"),
    "Can I compute an interval for a mean?": ("Shares, quantiles and means of a column over all records",),
    "By which method was it made, and where is that described?": ("dp-table", "docs/methods.md, section 9"),
    "Who answered for it?": ("ana",),
    "What did it replace, and was it replaced since?": ("None",),
    "Is this what was published, by whom it says?": ("HASH",),
}


def list_questions() -> dict[str, tuple[str, list[str]]]:
    """The questions of the page, each with the file and the places in it that answer."""
    page = (ROOT / "docs" / "analyst.md").read_text(encoding="utf-8")
    return {
        found["question"]: (found["file"], [place for place in re.findall(r"`([^`]+)`", found["where"]) if is_place(place)])
        for found in _QUESTION.finditer(page)
    }


def is_place(words: str) -> bool:
    """Whether words in code are a place, and no name of a file, command, or element that this package need not have."""
    return not re.search(r"\.(md|cff)$|^release-pipeline |^var/", words)


def find_in_json(document: Any, place: str) -> Any:
    """What stands at a place: keys with points between them, and the entry of a list that has a name."""
    for key, name in re.findall(r"([^.\[\]]+)|\[([^\]]+)\]", place):
        if key:
            document = document[key]
        else:
            document = next(entry for entry in document if name in [entry.get(key) for key in ("name", "@id", "scope", "title")])
    return document


def find_in_ddi(root: ET.Element, place: str) -> str:
    """What stands there: elements under each other, that of a variable by its name, an attribute after @."""
    path, _, attribute = place.partition("/@")
    path = "/".join(f"{{*}}{step}" for step in path.split("/"))
    found = root.find(".//" + re.sub(r"\[(\w+)\]", r"[@name='\1']", path))
    assert found is not None, place
    return str(found.get(attribute) if attribute else found.text)


def read_answer(package: Path, file: str, place: str) -> str:
    """The answer in the file, as text."""
    text = (package / file).read_text(encoding="utf-8")
    found = find_in_ddi(ET.fromstring(text), place) if file.endswith(".xml") else find_in_json(json.loads(text), place)  # noqa: S314
    return " | ".join(map(str, found)) if isinstance(found, list) and not place.endswith("domain") else str(found)


def test_the_page_asks_at_least_twenty_questions_and_each_has_an_answer_here() -> None:
    """A question that is new on the page must be answered here."""
    assert set(list_questions()) == set(ANSWERS)
    assert len(ANSWERS) >= 20
    assert {question: len(places) for question, (_, places) in list_questions().items()} == {
        question: len(answers) for question, answers in ANSWERS.items()
    }


def test_the_package_answers_them_all(finished_demo: Demo) -> None:
    """From its files alone, each at the place that the page names; that it was replaced would be a file beside them."""
    package = finished_demo.home / "releases" / "rand-hie-table" / "1" / "r1"
    wrong: list[str] = []
    for question, (file, places) in list_questions().items():
        for place, answer in zip(places, ANSWERS[question], strict=True):
            said = read_answer(package, file, place)
            wanted = sha256((package / "SHA256SUMS").read_bytes()).hexdigest() if answer == "HASH" else answer
            wrong += [] if str(wanted) in said else [f"{question} {file} {place}: {said[:100]}"]
    assert wrong == []
    assert {"CITATION.cff", "RELEASE_NOTE.md"} <= {file.name for file in package.iterdir()}
    assert not [name for name in ("SUPERSEDED.md", "RETRACTED.md") if (package / name).exists()]
    why = find_in_json(
        json.loads((package / "datapackage.json").read_text()), "resources[data-csv].schema.fields[female].description"
    )
    assert why.startswith("reason: needed for every table")


@pytest.mark.filterwarnings("ignore")  # other people's programs
def test_its_files_are_valid_for_those_who_judge_them(finished_demo: Demo) -> None:
    """The demo's own, each by the standard's validator or schema."""
    package = finished_demo.home / "releases" / "rand-hie-table" / "1" / "r1"
    assert frictionless.validate(str(package / "datapackage.json")).valid
    assert find_codebook_faults(package / "ddi-codebook.xml") == []
    assert list(find_catalogue_faults(package / "dcat.jsonld")) == []
    assert list(find_entry_faults((package / "dp_deployment.yaml").read_text(encoding="utf-8"))) == []
