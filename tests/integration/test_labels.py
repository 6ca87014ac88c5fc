"""Labels and reasons that come in are those that go out: from a .dta file through `init`, policy, release and package to
pyreadstat, pandas, pyarrow, frictionless and the analyst's kit. And none that the policy does not say."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pyreadstat
import pytest

from release_pipeline.analyst import Release, read_release
from release_pipeline.errors import InvalidArgument, WrongUsage
from release_pipeline.explore.draft import draft_policy
from release_pipeline.pipeline.candidate import freeze_candidate
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import ReleaseId
from tests.integration.people import review
from tests.integration.publishing import Keys, failures_of, make_trusted_site
from tests.integration.sites import TinySite
from tests.leaks import find_canaries, read_blobs

CANARY = "zyxCANARYzyx"
ROWS = 300
SEX, TOWN, INCOME = "Sex of the person", "Town, as registered", "Income before taxes"
MEANINGS = {"sex": {1: "male", 2: "female"}, "town": {10: "north & west", 20: "south"}}
REASONS = {"a": "refused", "b": "not asked"}
PARTS = {
    "source": "{path: survey.dta}",
    "releases": "once",
    "protect": "{method: dp-cdf, epsilon: 8, k: 5}",
    "drop": "[name]",
    "suppress": "{quasi_groups_below: 3, at_most: 10%}",
    "gates": "{min_rows: 20, clamped_at_most: 10%}",
    "publish": "{formats: [parquet, csv, dta, sav]}",
    "cap": "epsilon: 40, definition: dp, scope: column",
}
DECIDED = {  # what a person adds to what is proposed
    "person": "role: identifier, do: drop",
    "sex": "role: quasi, do: keep, why: by sex, missing: keep",
    "town": "role: quasi, do: keep, why: by town",
    "income": "role: confidential, do: noise, domain: [0, 1000], grid: 0.5, outside: clamp, why: known, missing: keep",
    "remark": "role: confidential, do: drop",
}


def write_survey_file(file: Path) -> pd.DataFrame:
    """A survey as Stata has it: extended missing values, labels, and canaries in those of what is not released."""
    draw = random.Random(3)  # noqa: S311
    frame = pd.DataFrame(
        {
            "person": [f"p{i:04}" for i in range(ROWS)],
            "sex": pd.Series([draw.choices([1.0, 2.0, "a", None], [45, 45, 8, 2])[0] for _ in range(ROWS)], dtype=object),
            "town": [draw.choice([10.0, 20.0]) for _ in range(ROWS)],
            "income": pd.Series(
                [draw.choices([draw.randrange(2001) / 2, "a", "b", None], [75, 12, 10, 3])[0] for _ in range(ROWS)], dtype=object
            ),
            "name": [f"name{i}" for i in range(ROWS)],
            "remark": [float(i % 2) for i in range(ROWS)],
        }
    )
    pyreadstat.write_dta(
        frame,
        file,
        file_label=f"{CANARY} 0",
        column_labels={"sex": SEX, "town": TOWN, "income": INCOME, "name": f"{CANARY} 1", "remark": f"{CANARY} 2"},
        variable_value_labels={
            "sex": {**MEANINGS["sex"], **REASONS},
            "town": {**MEANINGS["town"]},
            "income": REASONS,
            "remark": {1: f"{CANARY} 3", 0: f"{CANARY} 4"},
        },
        missing_user_values={"sex": ["a", "b"], "income": ["a", "b"]},
    )
    return frame


def paste(draft: str) -> str:
    """The columns of a policy: what is proposed, pasted as it stands beside what a person decided."""
    columns, proposed = "", list[str]()
    for line in draft.split("columns:\n")[1].splitlines():
        if line.startswith("  # "):
            proposed.append(line.removeprefix("  # "))
        elif (match := re.match(r"  (\w+): \{role: , do: \}", line)) is not None:
            taken = [] if "do: drop" in DECIDED.get(match[1], "do: drop") else proposed
            columns += f"\n  {match[1]}: {{{', '.join([DECIDED[match[1]], *taken])}}}" if match[1] in DECIDED else ""
            proposed = []
    return columns


@dataclasses.dataclass(frozen=True)
class Released:
    """A site and its package; the hash of the candidate when it was frozen again; what was said without the library."""

    tiny: TinySite
    package: Path
    hashes: tuple[str | None, ...]
    refused: dict[str, str]
    charged: int


def refusal_without_library(do: Callable[[], object]) -> str:
    """What it says where pyreadstat is not installed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "pyreadstat", None)
        with pytest.raises(WrongUsage) as caught:
            do()
    return str(caught.value)


@pytest.fixture(scope="module")
def released(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Released:
    """Run, frozen twice, reviewed and published."""
    home = tmp_path_factory.mktemp("labels")
    write_survey_file(home / "survey.dta")
    columns = paste(draft_policy("people", home / "survey.dta"))
    tiny = make_trusted_site(home / "site", keys, rows=[], columns=columns, **PARTS)
    write_survey_file(tiny.home / "survey.dta")
    name, refused = ReleaseId("people", "once", 1), dict[str, str]()
    refused["run"] = refusal_without_library(lambda: run_release(tiny.flow("once")))
    charged = len(tiny.charges())
    run_release(tiny.flow("once"))
    hashes = [tiny.status("once").candidate_hash]
    hashes.append(freeze_candidate(tiny.flow("once")).version)
    review(tiny, dict(keys), "ben", "cleo", release=name)
    refused["publish"] = refusal_without_library(lambda: publish(tiny.site, name, key=keys["robot"]))
    return Released(tiny, publish(tiny.site, name, key=keys["robot"]), tuple(hashes), refused, charged)


@pytest.fixture(scope="module")
def package(released: Released) -> Path:
    """The package."""
    return released.package


@pytest.fixture(scope="module")
def cells(package: Path) -> pd.DataFrame:
    """Its table, as Parquet has it."""
    return pyarrow.parquet.read_table(package / "data.parquet").to_pandas()


pytestmark = pytest.mark.slow
ALL_REASONS = {"sex": {"refused", "not asked", "blank", "suppressed"}, "income": {"refused", "not asked", "blank"}}


def test_the_package_verifies(released: Released) -> None:
    """With the four files in it; the table has something of everything, so that the other tests have power."""
    tiny, package = released.tiny, released.package
    assert {f"data.{form}" for form in ("parquet", "csv", "dta", "sav")} <= {file.name for file in package.iterdir()}
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    table = pd.read_csv(package / "data.csv")
    assert {"refused", "blank"} <= set(table["sex_missing"].dropna())
    assert set(table["income_missing"].dropna()) == ALL_REASONS["income"]
    assert {1.0, 2.0} <= set(table["sex"].dropna())
    assert tiny.status("once").state == "published"


def test_a_stata_file_has_what_came_in(package: Path, cells: pd.DataFrame) -> None:
    """By pyreadstat and by pandas: labels, values and letters as they were in the source."""
    table, known = pyreadstat.read_dta(package / "data.dta", user_missing=True)
    assert known.column_names_to_labels == {"sex": SEX, "town": TOWN, "income": INCOME}
    assert known.variable_value_labels["town"] == MEANINGS["town"]
    of_sex = known.variable_value_labels["sex"]
    assert {key: of_sex[key] for key in (1, 2, "a", "b")} == {**MEANINGS["sex"], **REASONS}
    assert set(of_sex.values()) == {"male", "female", *ALL_REASONS["sex"]}
    assert {key: label for key, label in known.variable_value_labels["income"].items() if key in "ab"} == REASONS
    for name in ("sex", "income"):
        labels = known.variable_value_labels[name]
        assert [labels[cell] if isinstance(cell, str) else None for cell in table[name]] == [
            None if pd.isna(why) else why for why in cells[f"{name}_missing"]
        ]
        assert [None if isinstance(cell, str) else cell for cell in table[name]] == [
            None if pd.isna(cell) else cell for cell in cells[name]
        ]
    plain = pd.read_stata(package / "data.dta", convert_categoricals=False)
    assert plain["income"].isna().sum() == cells["income"].isna().sum()
    assert pd.read_stata(package / "data.dta")["town"].astype(str).isin(MEANINGS["town"].values()).all()


def test_an_spss_file_has_what_came_in(package: Path, cells: pd.DataFrame) -> None:
    """User-missing codes with labels, which are no values; whoever reads it plainly sees nothing there."""
    table, known = pyreadstat.read_sav(package / "data.sav", user_missing=True)
    assert known.column_names_to_labels == {"sex": SEX, "town": TOWN, "income": INCOME}
    assert known.variable_value_labels["town"] == MEANINGS["town"]
    for name, reasons in ALL_REASONS.items():
        labels = known.variable_value_labels[name]
        assert set(labels.values()) == reasons | set(MEANINGS.get(name, {}).values())
        told = [labels[cell] if cell < 0 else None for cell in table[name]]
        assert told == [None if pd.isna(why) else why for why in cells[f"{name}_missing"]]
    plain = pyreadstat.read_sav(package / "data.sav")[0]
    for name in ("sex", "town", "income"):
        pd.testing.assert_series_equal(plain[name], cells[name].astype(float), check_names=False)


def test_parquet_has_labels_for_pyarrow_and_pandas(package: Path) -> None:
    """As metadata of each field, and as `attrs`."""
    schema = pyarrow.parquet.read_table(package / "data.parquet").schema
    town = schema.field("town").metadata
    assert town[b"label"].decode() == TOWN
    assert json.loads(town[b"labels"]) == {"10": "north & west", "20": "south"}
    assert b"labels" not in schema.field("income").metadata
    assert schema.field("sex_missing").metadata is None or b"label" not in schema.field("sex_missing").metadata
    attrs = pd.read_parquet(package / "data.parquet").attrs
    assert attrs["columns"]["sex"] == {"label": SEX, "labels": {"1": "male", "2": "female"}}


def test_the_analyst_has_labelled_columns(package: Path) -> None:
    """As numpy, pandas and pyarrow take them; of a column without labels, and of none, a sentence."""
    release = read_release(package)
    assert (release.label("sex"), release.label("sex_missing")) == (SEX, None)
    assert release.labels("town") == {"10": "north & west", "20": "south"}
    assert release.labels("income") == {}
    column = release.labelled("sex")
    assert set(column) == {"male", "female", None}
    told = release.labelled("sex", reasons=True)
    assert {*told} - {"male", "female"} == set(release.data["sex_missing"]) - {""}
    assert ((told == "refused") == (release.data["sex_missing"] == "refused")).all()
    counts = pd.Series(pd.Categorical(column, categories=list(release.labels("sex").values()))).value_counts()
    assert counts["female"] == (release.data["sex"] == 2).sum()
    assert pa.array(column).dictionary_encode().type.value_type == pa.string()
    assert pa.array(column).null_count == column.tolist().count(None)
    by_frame: Release = read_release(package, data=pd.read_parquet(package / "data.parquet"))  # pyright: ignore[reportArgumentType]
    assert by_frame.labelled("sex").tolist() == column.tolist()
    with pytest.raises(InvalidArgument, match="says of no value of this column what it means"):
        release.labelled("income")
    with pytest.raises(InvalidArgument, match="no such column"):
        release.label("nothing")


def test_no_label_of_the_source_gets_out_by_itself(released: Released) -> None:
    """The draft has them, as proposals; what the policy does not say is in no file of the package, nor of the candidate."""
    tiny, package = released.tiny, released.package
    assert CANARY in draft_policy("people", tiny.home / "survey.dta")
    for folder in (package, tiny.site.candidate("people/once/r1")):
        assert find_canaries(read_blobs(folder), [CANARY]) == []


def test_without_the_library_there_is_a_sentence(released: Released) -> None:
    """Before anything is read or charged, and before anything is published."""
    assert released.charged == 0
    assert set(released.refused) == {"run", "publish"}
    for words in released.refused.values():
        assert "need pyreadstat" in words
        assert "release-pipeline[surveys]" in words
