"""Dossiers by somebody who writes what the verifier does not expect: failures in words, never a traceback, and never a pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.verifier import chain, dossiers
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.dossiers import _list_before, _list_counted
from release_pipeline.verifier.statements import check_statement
from tests.unit.test_verify import World, digest, judge, with_steps
from tests.unit.test_verify_restored import LOST, enter


def publishing(document: str, content: Any) -> Any:
    return {**content, "publish": None} if document == "policy" else content


def publishing_text(document: str, content: Any) -> Any:
    return {**content, "publish": "today"} if document == "policy" else content


@pytest.mark.parametrize("twist", [publishing, publishing_text])
def test_a_policy_whose_publication_is_nothing(tmp_path: Path, twist: Callable[[str, Any], Any]) -> None:
    """It says nothing of a date: no failure, and no traceback."""
    assert judge(with_steps({}, World(twist)).dossier(), tmp_path / "dossier") == []


@pytest.mark.parametrize(
    "charge",
    [
        {"population": ["participants"]},
        {"population": {}},
        {"carries": 5},
        {"carries": [["a"]]},
        {"carries": ["b", 1]},
    ],
)
@pytest.mark.parametrize("release", ["rand-hie/1/r1", None])
def test_a_charge_of_nothing_that_there_is(tmp_path: Path, charge: dict[str, Any], release: str | None) -> None:
    """Of a population that is a list, with the charges of a number."""
    made = with_steps({"earlier": [lambda world: world.charge(release, spent="2", **charge)]})
    assert judge(made.dossier(), tmp_path / "dossier")


def test_a_release_more_than_the_officer_gave_up(tmp_path: Path) -> None:
    """Right after those that were signed: `lost` follows from nothing."""

    def lose(world: World) -> None:
        enter(world)
        world.note("lost", "rand-hie/9/r1", entered=False, reason="it was lost")

    found = judge(with_steps({"earlier": [lose]}).dossier(), tmp_path / "dossier")
    assert any("rand-hie/9/r1 was lost, and follows from nothing that the officer accepted" in words for words in found), found
    assert LOST != "rand-hie/9/r1"


def test_signatures_that_do_not_hold_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a millisecond: whoever sends a million takes a quarter of an hour."""
    looked: list[object] = []
    real = check_statement
    monkeypatch.setattr(chain, "MOST_SIGNATURES", 20)
    monkeypatch.setattr(chain, "check_statement", lambda *given, **wanted: (looked.append(given), real(*given, **wanted))[1])

    def spam(world: World) -> None:
        for number in range(100):
            signed = world.sign("olga", "populations", "populations", digest(str(number)))
            world.note("approved", None, what="populations", subject="populations", hash=digest("other"), signed=signed)

    found = judge(with_steps({"earlier": [spam, "earlier"]}).dossier(), tmp_path / "dossier")
    assert sum("more than 20 signatures are too many" in words for words in found) > 70
    assert len(looked) < 50


def merged(generations: int) -> dict[str, Any]:
    """Each population of two of the generation before."""
    caps: dict[str, Any] = {"a0": {}, "b0": {}}
    for n in range(1, generations + 1):
        for name in "ab":
            caps[f"{name}{n}"] = {"from": [f"a{n - 1}", f"b{n - 1}"]}
    return caps


def test_many_merges_are_followed_soon_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after as many steps as there are ways back."""
    asked: list[object] = []
    real = _list_before
    monkeypatch.setattr(dossiers, "_list_before", lambda declared: (asked.append(declared), real(declared))[1])
    assert len(_list_counted(merged(40), "a40")) == 81
    with pytest.raises(Fault, match="more than can be told apart"):
        _list_counted(merged(300), "a300")
    assert len(asked) < 200
