"""What an officer entered after a restore, and what somebody outside has witnessed, as an auditor's verifier sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.verifier.chain import HEAD_FORMAT
from release_pipeline.verifier.command import main
from tests.unit.test_verify import LOSS, World, canonical, digest, judge, put, usual, with_steps

LOST = "rand-hie/1/r1"


def enter(world: World, **changes: Any) -> None:
    """The events that `restore` and `restore --accept` note, with changes after the officer signed."""
    world.note("restoring", None, made="", last={"event": 1, "hash": ""}, releases=[], all_known=True)
    head = json.loads(world.lines[-1])
    people = {"population": "participants"}
    entry = {"release": LOST, "policy_hash": digest(world.policy_text), "records": 100, "loss": LOSS, **people}
    charged = changes.pop("charged", [entry])
    document = {"event": len(world.lines), "hash": head["hash"], "charged": charged, "lost": [LOST]}
    signed = world.sign("olga", "restored", str(len(world.lines)), digest(canonical(document)))
    world.note("restored", None, document=document, signed=signed)
    for release, charge in changes.pop("charges", {LOST: {}}).items():
        world.charge(release, **{"spent": "2", **charge})
    for lost, entered in changes.pop("lost", {LOST: True}).items():
        world.note("lost", lost, entered=entered, reason="it was lost")
    assert not changes


def judge_entered(tmp_path: Path, **changes: Any) -> list[str]:
    """The failures of a dossier whose earlier charge was entered like that."""
    return judge(with_steps({"earlier": [lambda world: enter(world, **changes)]}).dossier(), tmp_path / "dossier")


def test_what_the_officer_signed_passes(tmp_path: Path) -> None:
    assert judge_entered(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"charges": {LOST: {"loss": {**LOSS, "idp_column": 1}}}}, "is not what the officer signed: its epsilon"),
        ({"charges": {LOST: {"records": 99}}}, "is not what the officer signed: how many records it is of"),
        ({"charges": {LOST: {"population": "others"}}}, "is not what the officer signed: its people"),
        ({"charges": {LOST: {"policy_hash": "0" * 64}}}, "is not what the officer signed: its policy, and so k"),
        ({"charges": {}}, f"the officer signed the charge of {LOST}, which does not follow"),
        ({"charges": {"rand-hie/7/r1": {}}}, f"the officer signed the charge of {LOST}, which does not follow"),
        ({"charges": {"rand-hie/7/r1": {}, LOST: {"spent": "4"}}}, f"the officer signed the charge of {LOST}, which does not"),
        ({"charges": {LOST: {}, "rand-hie/7/r1": {"spent": "4"}}}, "comes something else than what was signed to be lost"),
        ({"lost": {}}, "comes something else than what was signed to be lost"),
        ({"lost": {LOST: False}}, "comes something else than what was signed to be lost"),
    ],
)
def test_what_is_forged_after_it_fails(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert any("(restored)" in told and words in told for told in judge_entered(tmp_path, **changes))


def test_a_loss_that_nobody_signed_fails(tmp_path: Path) -> None:
    world = with_steps({"earlier": ["earlier", lambda world: world.note("lost", LOST, entered=True, reason="it was lost")]})
    [told] = judge(world.dossier(), tmp_path / "dossier")
    assert f"it tells that {LOST} was lost, and follows from nothing that the officer accepted" in told


def test_a_lost_release_that_is_made_again_fails(tmp_path: Path) -> None:
    world = with_steps({"earlier": [enter, lambda world: world.note("drawn", LOST, masked="0")]})
    [told] = judge(world.dossier(), tmp_path / "dossier")
    assert "a lost release is never made again" in told


@pytest.fixture(scope="module")
def known() -> World:
    """The usual world, and its dossier."""
    return usual()


def _witness(world: World, number: int, **changes: Any) -> bytes:
    hash = json.loads(world.lines[min(number, len(world.lines)) - 1])["hash"]
    said = {"format": HEAD_FORMAT, "event": number, "hash": hash}
    return json.dumps({**said, "noted": "", **changes}).encode()


@pytest.mark.parametrize(
    ("number", "changes", "words"),
    [
        (3, {}, ""),
        (3, {"hash": "0" * 64}, "event 3 is not the one that was witnessed"),
        (99, {}, "and event 99 was witnessed: the dossier is older than that, or events at its end were cut off"),
    ],
)
def test_a_dossier_must_have_the_witnessed_event(
    known: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, changes: dict[str, Any], words: str
) -> None:
    folder, file = put(known.dossier(), tmp_path / "dossier"), tmp_path / "head.json"
    file.write_bytes(_witness(known, number, **changes))
    assert main([str(folder), "--since", str(file)]) == bool(words)
    assert (words or "event 3 is the one that was witnessed") in capsys.readouterr().out
