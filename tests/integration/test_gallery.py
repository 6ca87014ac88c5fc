"""The gallery of examples: each makes its data, and its commands end as its page says. Every key that a policy may have is in
a policy that ships."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import runpy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

import release_pipeline.policy
from release_pipeline.apps.cli import main
from tests.integration.sites import GX_WARNINGS, ROOT

FOLDER = ROOT / "examples"
BLOCK = re.compile(r"^```sh example\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INTERNAL = {"dated"}  # follows from the domain: nobody writes it


@dataclass(frozen=True)
class Refusal:
    """A change of the example that a run refuses: what is replaced in which file, the command, and words of the message."""

    file: str
    old: str
    new: str
    command: str
    words: str


@dataclass(frozen=True)
class Example:
    """What the commands of a page say, `!` before those that are refused; the candidates, with epsilon and k; and refusals."""

    commands: dict[str, tuple[str, ...]]
    candidates: dict[str, tuple[str, int | None]]
    refusals: tuple[Refusal, ...] = field(default=())


EXAMPLES = {
    "hospital": Example(
        {
            "check policies/cohort.yaml": ("values of age, stay, earlier, chapter are exchanged", "0 of 5 (releases)"),
            "run cohort --release 2024-Q1": ("cohort/2024-Q1/r1: candidate, 1,500 rows",),
            "run discharges": ("column stay: clamping took more than 10% of its variance",),
        },
        {"cohort/2024-Q1/r1": ("3", 5), "discharges/2024-Q1/r1": ("2", 20)},
        (
            Refusal(
                "policies/cohort.yaml",
                "{chapter: 2}",
                "{chapter: 3}",
                "run cohort --release 2024-Q1",
                "the l-diversity of chapter in blocks is under the limit 3",
            ),
        ),
    ),
    "households": Example(
        {
            "run public": ("epsilon 5.019326 at delta 0.000001", "3 squared records per household"),
            "run totals": ("in addition to the rows answered 0.005",),
            "ledger": ("epsilon 6.35418773 of 7",),
        },
        {"public/once/r1": ("5.019325201", None), "totals/once/r1": ("3.46123914", 1)},
    ),
    "register": Example(
        {
            "run yearly --release 2023": ("epsilon 1.04921663 at delta 0.000001",),
            "run yearly --release 2024": ("3,000 rows",),
            "ledger": ("yearly/2026/r1  0.026641524  planned: will be refused", "north-county, south-county"),
            "check policies/movers.yaml": ("Rows have an age and nothing else", "header      not read: it is a database"),
            "!run movers": ("Set the environment variable REGISTER_ADDRESS.",),
            "!run made-up": ("Name it in site.yaml",),
        },
        {"yearly/2023/r1": ("1.04921663", 1), "yearly/2024/r1": ("1.04921663", 1)},
    ),
    "pay": Example(
        {
            "check policies/pay.yaml": ("suite       3 expectations of your own",),
            "run pay": ("column bonus: heavy ties; at least half of the records share one value",),
        },
        {"pay/once/r1": ("6", 40)},
        (
            Refusal(
                "make_data.py", "gross = base + bonus", "gross = base + bonus + (base > 60_000) * 9", "run pay", "columns apart"
            ),
        ),
    ),
    "diary": Example(
        {
            "explore policies/diary.yaml --shape --methods dp-um --epsilons 1 --k 50": (
                "made up of the shape in diary.yaml",
                "2 of 3 fit",
            ),
            "run diary --release 1": ("epsilon 6 in all",),
            "run diary --release 2": ("in 2 random parts of the records",),
            "!run diary --release 3": ("panel has 2 left of 14", "and this release would take 6"),
        },
        {"diary/1/r1": ("6", 50), "diary/2/r1": ("6", 50)},
        (Refusal("make_data.py", "CHANGED = 40", "CHANGED = 4", "run diary --release 2", "fewer than 10"),),
    ),
}


def read_commands(name: str) -> list[str]:
    """The commands of an example's page, `!` before those that it says are refused."""
    page = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines() if line.startswith("release-pipeline ")]
    calls = [line.removeprefix("release-pipeline ").partition("#") for line in lines]
    return [f"{'!' * ('refused' in remark)}{call.strip()}" for call, _, remark in calls]


def make_site(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal | None = None) -> None:
    """A copy of an example with its data, in which commands run."""
    shutil.copytree(FOLDER / name, folder, ignore=shutil.ignore_patterns("data", "vault", "dagster", "registry*"))
    if refusal is not None:
        text = (folder / refusal.file).read_text(encoding="utf-8")
        assert text.count(refusal.old) == 1
        (folder / refusal.file).write_text(text.replace(refusal.old, refusal.new), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("REGISTER_ADDRESS", raising=False)
    runpy.run_path("make_data.py", run_name="__main__")


def call(command: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command, and all that it prints, on one line."""
    code = main(command.split())
    return code, " ".join("".join(capfd.readouterr()).split())


@GX_WARNINGS
@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_its_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every command of its page ends as the page says; its releases wait for their reviewers, with the epsilon and k that they
    claim; and what it says is refused is refused before any budget is spent."""
    example = EXAMPLES[name]
    assert read_commands(name) == list(example.commands)
    make_site(name, tmp_path / "site", monkeypatch)
    for command, words in example.commands.items():
        code, said = call(command.removeprefix("!"), capfd)
        assert code == command.startswith("!"), said
        assert [part for part in words if " ".join(part.split()) not in said] == [], said
    code, said = call("status --json", capfd)
    releases = {release["id"]: release for release in json.loads(said)["releases"] if release["state"] == "candidate"}
    assert {id: (release["epsilon"]["total"], release["k"]) for id, release in releases.items()} == example.candidates
    for number, refusal in enumerate(example.refusals):
        make_site(name, tmp_path / str(number), monkeypatch, refusal)
        for command in example.commands if refusal.command in example.commands else ():
            if command == refusal.command:
                break
            if command.startswith("run ") and command.split()[1] == refusal.command.split()[1]:
                assert call(command, capfd)[0] == 0
        code, said = call(refusal.command, capfd)
        assert (code, refusal.words in said) == (1, True), said
        releases = json.loads(call("status --json", capfd)[1])["releases"]
        assert [release["id"] for release in releases if release["state"] == "blocked" and release["moments"]["reserved"]] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name: str) -> None:
    """A page of fewer than 200 words, which the list of examples names; no data are committed."""
    assert len((FOLDER / name / "README.md").read_text(encoding="utf-8").split()) < 200
    assert f"({name}/README.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_key_of_a_policy_is_in_one_that_ships() -> None:
    """A key that no example needs is one that nobody needs."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(release_pipeline.policy.__path__, "release_pipeline.policy.")
    ]
    models = {
        model
        for module in modules
        for model in vars(module).values()
        if inspect.isclass(model) and issubclass(model, BaseModel) and model.__module__ == module.__name__
    }
    keys = {info.alias or name for model in models for name, info in model.model_fields.items()}
    files = [ROOT / "populations.yaml", *(ROOT / "policies").glob("*.yaml"), *FOLDER.glob("*/populations.yaml")]
    files += [*FOLDER.glob("*/policies/*.yaml"), *FOLDER.glob("*/policies/*.json")]
    used = {key for file in files for key in list_keys(yaml.safe_load(file.read_text(encoding="utf-8")))}
    assert keys - used == INTERNAL


def list_keys(value: Any) -> Iterator[str]:
    """Every key in a document, however deep."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from value if isinstance(value, dict) else ()
    for part in parts:
        yield from list_keys(part)
