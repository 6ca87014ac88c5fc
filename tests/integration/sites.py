"""Small synthetic sites: a policy, its population and a CSV source in a folder of their own, and ways to spoil the source."""

from __future__ import annotations

import csv
import dataclasses
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
import duckdb
import pyarrow as pa
import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.ledger.states import ReleaseStatus, read_statuses
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.site import Site

# What Great Expectations warns of. Whether we use what it deprecates is a test of its own in tests/unit/rows/test_validate.py.
GX_WARNINGS = pytest.mark.filterwarnings(
    "ignore:module 'sre_:DeprecationWarning",
    "ignore:The condition_parser parameter:DeprecationWarning",
    "ignore:Passing a string to the row_condition:DeprecationWarning",
)
Row: TypeAlias = dict[str, str]
ROOT = Path(__file__).resolve().parents[2]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
HEADER = ("person", "year", "town", "sex", "income", "rent", "name", "remark")
TOWNS = ("north", "south", "east")
STAGES = ("ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate")
PARTS = {
    "policy": "people",
    "steward": "ana",
    "population": "folk",
    "source": "{path: people.csv, release_column: year}",
    "person": "{column: person}",
    "releases": '["1", "2"]',
    "protect": "{method: idp-cbls, epsilon: 2, k: 5}",
    "columns": """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}""",
    "drop": "[name]",
    "gates": "{min_rows: 20}",
    "audience": "internal",
    "about": "{title: People, description: People of three towns, licence: CC0-1.0, publisher: {name: Town}, "
    "contact: {email: desk@example.org}}",
}
_RELEASED = re.compile(r"^  ([A-Za-z_0-9]+): *\{(?!.*(?:label:|do: drop))", re.MULTILINE)  # a column without a label


def policy_text(**parts: str) -> str:
    """The policy `people` with some parts replaced, or (empty text) left out. An officer approves it: released columns have a
    label, their name where the text gives none; with `about` left out they have none, and nothing says who reads it."""
    told = {**PARTS, **parts}
    if not told["about"]:
        told["audience"] = ""
    else:
        told["columns"] = _RELEASED.sub(r"\g<0>label: \1, ", told["columns"])
    return "".join(f"{name}: {value}\n" for name, value in told.items() if value)


def make_rows(count: int = 60, *, releases: Sequence[str] = ("1", "2"), seed: int = 0) -> list[Row]:
    """`count` records of each release, the same people in each; towns and sexes in large groups, numbers nearly all different."""
    numbers = random.Random(seed)  # noqa: S311
    return [
        {
            "person": f"p{i:04}",
            "year": release,
            "town": TOWNS[i % 3],
            "sex": str(i % 2),
            "income": str(numbers.randrange(0, 1001)),
            "rent": str(numbers.randrange(0, 201) / 2),
            "name": f"name{i}",
            "remark": f"remark{i}",
        }
        for release in releases
        for i in range(count)
    ]


@dataclasses.dataclass(frozen=True)
class TinySite:
    """A site in a folder of its own."""

    home: Path

    @property
    def site(self) -> Site:
        """The site as the flow knows it."""
        return Site(self.home, {})

    def write_policy(self, **parts: str) -> None:
        """Write the policy under its own name."""
        text = policy_text(**parts)
        (self.home / "policies" / f"{parts.get('policy', 'people')}.yaml").write_text(text)

    def write_cap(self, cap: str) -> None:
        """Declare the only population."""
        (self.home / "populations.yaml").write_text(f"folk: {{cap: {{{cap}}}}}\n")

    def write_rows(self, rows: Sequence[Mapping[str, str]], *, header: Sequence[str] = HEADER, name: str = "people.csv") -> None:
        """Write the source; columns that are not in the header are left out."""
        with (self.home / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, header, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def fix_key(self, key: bytes) -> None:
        """Give the vault a key that the test knows: what is simulated draws by it."""
        self.site.keyed_hash(b"")  # makes the vault
        (self.site.vault / "key").write_bytes(key)

    def flow(self, release: str | None = "1", policy: str = "people") -> StageContext:
        """The flow of one release."""
        return open_release(self.site, policy, release)

    def folder(self, release: str = "1", policy: str = "people") -> Path:
        """Where the candidate of one release is."""
        return self.site.candidate(f"{policy}/{release}/r1")

    def events(self) -> tuple[Event, ...]:
        """Everything that the registry has, in order."""
        with self.site.open_registry(read_only=True) as registry:
            return registry.events

    def statuses(self) -> dict[ReleaseId, ReleaseStatus]:
        """Every release that something happened to."""
        return read_statuses(self.events())

    def status(self, release: str = "1", policy: str = "people", revision: int = 1) -> ReleaseStatus:
        """One release as the registry has it."""
        name = ReleaseId(policy, release, revision)
        return self.statuses().get(name, ReleaseStatus(name))

    def states(self, release: str = "1", policy: str = "people") -> list[str]:
        """The kinds of the events of one release's first revision, in order."""
        return [event.kind for event in self.events() if event.release == ReleaseId(policy, release)]

    def charge(self, release: str = "1", policy: str = "people") -> StageContext:
        """Bring a release as far as its charge and its clusters."""
        flow = self.flow(release, policy)
        ingest(flow)
        assert not validate(flow).refusal
        microaggregate(flow)
        return flow

    def charges(self) -> list[Charge]:
        """Every charge in the registry."""
        with self.site.open_registry(read_only=True) as registry:
            return list_charges(registry)

    def tables(self, release: str = "1", policy: str = "people", population: str = "folk") -> dict[str, pa.Table]:
        """Every table of a release's room in the vault; a room's name begins with the release's."""
        with duckdb.connect(str(self.site.vault / f"{population}.duckdb"), read_only=True) as vault:
            found = vault.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
            mine = [(workspace, name) for workspace, name in found if workspace.split(" ")[0] == f"{policy}/{release}/r1"]
            return {name: vault.table(f'"{workspace}"."{name}"').to_arrow_table() for workspace, name in mine}

    @staticmethod
    def query(file: Path, text: str) -> list[dict[str, Any]]:
        """The rows of a query on a DuckDB file, by column."""
        with duckdb.connect(str(file), read_only=True) as connection:
            return connection.sql(text).to_arrow_table().to_pylist()


def refusal(read: Callable[[], object]) -> str:
    """All that is told of a policy that is refused."""
    with pytest.raises(PolicyInvalid) as refused:
        read()
    return "\n".join(refused.value.problems)


def make_site(
    home: Path, *, rows: Sequence[Row] | None = None, cap: str = "epsilon: 10, definition: idp, scope: column", **parts: str
) -> TinySite:
    """A site with one policy, one population and the source of two releases."""
    (home / "policies").mkdir(parents=True)
    tiny = TinySite(home)
    tiny.write_policy(**parts)
    tiny.write_cap(cap)
    tiny.write_rows(make_rows() if rows is None else rows)
    return tiny


@dataclasses.dataclass(frozen=True)
class Spoiled:
    """A way to spoil a good source, and the words of the reason that must then be given."""

    spoil: Callable[[list[Row]], tuple[Sequence[Row], Sequence[str]]]
    reason: str
    check: str  # the family of checks that fails


def _with(**cells: str) -> Callable[[list[Row]], tuple[Sequence[Row], Sequence[str]]]:
    return lambda rows: ([{**rows[0], **cells}, *rows[1:]], HEADER)


SPOILED: dict[str, Spoiled] = {
    "out of domain": Spoiled(
        _with(income="5000"),
        "column income: up to 10 records outside the declared domain (none below, up to 10 above), and outside is fail. "
        "Correct the source, or widen the domain by what is known of the variable; if these are codes for no answer, use dp-cdf "
        "and declare them: "
        "codes: {CODE: reason}.",
        "domains",
    ),
    "missing column": Spoiled(
        lambda rows: (rows, [name for name in HEADER if name != "rent"]),
        "column rent: declared, but not in the file. Deliver it, or take it out of the policy.",
        "schema",
    ),
    "extra column": Spoiled(
        lambda rows: ([{**row, "extra": row["name"]} for row in rows], [*HEADER, "extra"]),
        "column extra: in the file, but not declared.",
        "schema",
    ),
    "empty table": Spoiled(lambda _: ([], HEADER), "0 records are fewer than the 20 that the policy asks for", "size"),
    "person twice": Spoiled(
        lambda rows: ([{**rows[0], "person": rows[1]["person"]}, *rows[1:]], HEADER),
        "column person: up to 10 persons have more than the 1 declared record",
        "person_unit",
    ),
    "undeclared category": Spoiled(
        _with(town="elsewhere"), "column town: up to 10 records with a category that values does not list.", "categories"
    ),
    "too few rows": Spoiled(
        lambda rows: (rows[:10], HEADER), "10 records are fewer than the 20 that the policy asks for", "size"
    ),
    "constant column": Spoiled(
        lambda rows: ([{**row, "income": rows[0]["income"]} for row in rows], HEADER),
        "column income: on its domain and grid all records are the same",
        "categories",
    ),
    "not a number": Spoiled(
        _with(income="a text"), "column income: up to 10 records where something else than a number stands.", "types"
    ),
    "missing number": Spoiled(_with(rent=""), "column rent: up to 10 records without a value, and missing is fail.", "missing"),
    "no release": Spoiled(_with(year=""), "column year: up to 10 records without a release.", "missing"),
}


def spoil(tiny: TinySite, way: str, rows: list[Row] | None = None) -> None:
    """Write the source anew, spoiled that way."""
    records, header = SPOILED[way].spoil(make_rows() if rows is None else rows)
    tiny.write_rows(records, header=header)


def run_job(
    tiny: TinySite, release: str = "1", *, instance: dg.DagsterInstance, policy: str = "people"
) -> dg.ExecuteInProcessResult:
    """One run of the policy's Dagster job, which may fail."""
    from release_pipeline.apps.dagster.building import build_defs

    job = build_defs(tiny.home).resolve_job_def(f"release_{policy.replace('-', '_')}")
    return job.execute_in_process(partition_key=release, instance=instance, raise_on_error=False, run_config=QUIET)


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """The descriptions of the steps' failures."""
    data = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    return [one.user_failure_data.description or "" for one in data if one.user_failure_data is not None]


def materializations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    """What the run recorded of each stage."""
    events = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    return {event.asset_key.path[-1]: event for event in events if event.asset_key.path[-1] in STAGES}
