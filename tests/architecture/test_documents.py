"""The documents that the code rests on: every mechanism has its statement, proof, function and attack; every paper that is cited
by its key is in the bibliography; every section of methods.md that is cited exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import get_args

from pydantic import BaseModel

from release_pipeline import policy
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.mechanisms.catalogue.entries import TABLE_CLAIMS
from release_pipeline.mechanisms.vectors.vectors import VECTOR_SCOPES, Order, Statistic
from release_pipeline.policy.file.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXTS = sorted(
    [
        *(file for kind in ("py", "html", "md", "json") for file in (ROOT / "release_pipeline").rglob(f"*.{kind}")),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "experiments").rglob("*.py"),
        *DOCS.glob("*.md"),
        *ROOT.glob("*.md"),
    ]
)
NO_PAPERS = {"Base64", "Base85", "DATE11", "Int64"}  # of the same form
KEY = re.compile(r"\b[A-Z][A-Za-z]{1,3}\d\d\b")
SECTION = re.compile(r"methods\.md(?:\s|#\s)+section\s+(?:#\s+)?(\d+)")
LABELS = ("Neighbours", "Fixed", "Covers", "Proof", "Function", "Attacked by")


def in_a_line(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


@cache
def sections(name: str) -> dict[str, str]:
    """The text under each heading of a document."""
    parts = re.split(r"^#{2,3} (.+)$", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


CLAIMS = {
    " ".join((spec.name, claim.scope, *claim.options.values())): claim for spec in METHODS.values() for claim in spec.claims
}


def test_the_catalogue_has_every_method_that_a_policy_may_name_and_no_other() -> None:
    """At every scope, and for dp-mdav with every statistic and order."""
    assert set(METHODS) == {name for model in OPTIONS.values() for name in model.methods()}
    assert set(METHODS["dp-mdav"].scopes) == set(VECTOR_SCOPES)
    assert len(METHODS["dp-mdav"].claims) == len(VECTOR_SCOPES) * len(get_args(Statistic)) * len(get_args(Order))


def test_every_mechanism_has_its_section() -> None:
    """With the statement that the card has, word for word, and all that belongs to it."""
    there = sections("mechanisms.md")
    for claim in (*CLAIMS.values(), *TABLE_CLAIMS):
        section = there.get(claim.section)
        assert section is not None, f"docs/mechanisms.md has no section '{claim.section}'"
        quoted = in_a_line(" ".join(line.removeprefix(">") for line in section.splitlines() if line.startswith(">")))
        assert quoted == in_a_line(claim.statement)
        assert [label for label in LABELS if f"**{label}**" not in section] == [], claim.section
        assert re.search(r"\*\*Function\*\*: `[a-z_.]+:\w+`", section), claim.section
        assert re.search(r"\*\*Attacked by\*\*: `tests/\S+::\w+`", section), claim.section


def test_every_function_that_is_named_exists() -> None:
    """`module:function`, below release_pipeline."""
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*):(\w+)`", (DOCS / "mechanisms.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for module, function in named:
        assert hasattr(import_module(f"release_pipeline.{module}"), function), f"{module}:{function}"


@cache
def names_of(file: str) -> set[str]:
    """The tests of a file."""
    return {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    """Every `path::test` of the pages."""
    text = "".join(file.read_text(encoding="utf-8") for file in DOCS.glob("*.md"))
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", text)
    assert [f"{file}::{test}" for file, test in named if test not in names_of(file)] == []


def test_every_paper_that_is_cited_is_in_the_bibliography() -> None:
    """And nothing is there twice, or cited by nobody."""
    keys = re.findall(r"^- \*\*(\w+)\*\*: ", (DOCS / "bibliography.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(keys) == len(set(keys))
    cited = {
        key: file
        for file in TEXTS
        if file.name not in ("bibliography.md", Path(__file__).name)
        for key in KEY.findall(file.read_text(encoding="utf-8"))
        if key not in NO_PAPERS
    }
    assert {"IDP24", "Bir48"} <= set(cited)
    missing = {key: str(file.relative_to(ROOT)) for key, file in cited.items() if key not in keys}
    assert not missing
    assert not set(keys) - set(cited)


def test_every_section_of_the_mathematics_that_is_cited_exists() -> None:
    """By its number."""
    there = {int(heading.partition(".")[0]) for heading in sections("methods.md") if heading[0].isdigit()}
    cited = {(int(number), file.name) for file in TEXTS for number in SECTION.findall(file.read_text(encoding="utf-8"))}
    assert len(cited) > 20
    assert not [(number, file) for number, file in cited if number not in there]
    assert there == set(range(11))


def test_every_key_of_a_policy_is_on_its_page() -> None:
    """Whatever a steward may write; `dated` is what dates are expanded to."""
    page = (DOCS / "policy.md").read_text(encoding="utf-8")
    modules = [import_module(found.name) for found in walk_packages(policy.__path__, f"{policy.__name__}.")]
    models = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    keys = {
        (field.alias or name).rstrip("_")
        for model in models
        if issubclass(model, BaseModel)
        for name, field in model.model_fields.items()
    }
    assert len(keys) > 100
    assert {key for key in keys if not re.search(rf"\b{re.escape(key)}\b", page)} == {"dated"}


DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))
NAMED_PLACE = re.compile(r"`((?:release_pipeline|tests|sql|docs)/[\w./-]*)`")


def test_decisions_are_numbered_and_listed() -> None:
    """Without a gap, each with its three parts, and each in the list."""
    assert [int(file.name[:4]) for file in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for number, file in enumerate(DECISIONS, 1):
        title, *parts = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"], file.name
        assert f"- [{title}]({file.name})" in index
        assert title.startswith(f"{number}. ")


def test_places_that_are_named_exist() -> None:
    """Files and folders of the tree, and what pages link to."""
    for file in (*DECISIONS, *DOCS.glob("*.md"), *ROOT.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        assert [place for place in NAMED_PLACE.findall(text) if not (ROOT / place).exists()] == [], file
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
        assert [link for link in links if link and not (file.parent / link).exists()] == [], file
