"""Dagster's own tools about the checkout: `dg` loads its definitions, and lists the component that teams use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DG = Path(sys.executable).with_name("dg")


def dg(*words: str) -> str:
    """What the command says; without a site or an instance of whoever runs the tests."""
    others = {name: value for name, value in os.environ.items() if name not in ("DAGSTER_HOME", "RELEASE_PIPELINE_HOME")}
    done = subprocess.run(
        [DG, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**others, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_dg_loads_the_checkout() -> None:
    """Its definitions and YAML are valid, and nothing is written beside them."""
    before = sorted(ROOT.iterdir())
    assert "All definitions loaded successfully." in dg("check", "defs")
    assert sorted(ROOT.iterdir()) == before


@pytest.mark.slow
def test_dg_knows_the_component() -> None:
    """By the entry point of the distribution, with the description of its attributes."""
    assert "release_pipeline.apps.dagster.ReleasePipelineSite" in dg("list", "components")
