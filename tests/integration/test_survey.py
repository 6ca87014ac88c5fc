"""docs/survey.md, executed: from a file with codes, weights and dates to a package, and to what an analyst reads in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from tests.integration.shells import ROOT, execute, open_shell, read_blocks

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_walk_through_works_as_it_is_written(tmp_path: Path) -> None:
    """Every block ends well; what the analyst is told holds for the survey, and no code is in the data."""
    folder = tmp_path / "empty"
    folder.mkdir()
    with open_shell(tmp_path / "bin") as environment:
        done = execute("\n".join(read_blocks("survey.md")), folder, environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "State of residence" in done.stdout
    assert "band: of age: below 30: 18-29; from 30: 30-44" in " ".join(done.stdout.split())
    assert "Verified: nothing failed." in done.stdout
    [block] = PYTHON.findall((ROOT / "docs" / "survey.md").read_text(encoding="utf-8"))
    asked = subprocess.run(
        [sys.executable, "-c", block], cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stderr[-2000:]
    assert len(asked.stdout.splitlines()) == 9
    assert re.search("State of residence of the first record: (Alder|Birch|Cedar|Dogwood|Elm|None)", asked.stdout)
    package = folder / "office" / "releases" / "survey" / "once" / "r1"
    data, source = pd.read_csv(package / "data.csv"), pd.read_csv(folder / "office" / "data" / "survey.csv")
    assert set(data["income_missing"].dropna()) == {"refused", "not asked", "blank"}
    assert data["income"].min() >= 0
    refused = (source["income"] == -8).mean()
    assert abs((data["income_missing"] == "refused").mean() - refused) < 0.01
    assert abs((data["selfemp"] == 0).mean() - (source["selfemp"] == 0).mean()) < 0.02
    stata, known = pyreadstat.read_dta(package / "data.dta", user_missing=True)
    assert known.variable_value_labels["sex"] == {1: "male", 2: "female"}
    refused_letter = next(letter for letter, why in known.variable_value_labels["income"].items() if why == "refused")
    assert ((stata["income"] == refused_letter) == (data["income_missing"] == "refused")).all()
    people = pd.read_csv(package / "data.table-people.csv").groupby("state")["value"].sum()
    assert (people - source.groupby("state").size()).abs().max() < 100
