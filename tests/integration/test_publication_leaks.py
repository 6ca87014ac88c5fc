"""Nothing internal is in a package: canaries in the source, the vault and the evidence, looked for in every file of it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.pipeline.opening import open_release, revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish, retract, supersede
from release_pipeline.store.files import Probe
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import approve_candidate
from tests.integration.publishing import Files, Keys, make_trusted_site, publish_release, read_folder
from tests.integration.sites import GX_WARNINGS, Row, TinySite, make_rows, make_site
from tests.leaks import LEAST, Found, find_canaries

pytestmark = GX_WARNINGS
FIRST, SECOND = ReleaseId("people", "1"), ReleaseId("people", "1", 2)
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000000000000], grid: 0.001, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 1000000000000], grid: 0.001, outside: clamp, why: known}"""
TEXTS = {"person": "PersonCanary-7Qz", "name": "NameCanary-4Vw", "remark": "RemarkCanary-9Jx"}
DATA = ("data.csv", "data.parquet")


@dataclass(frozen=True)
class Published:
    """A package, and what must not be in it: figures, which the data may have by chance, and secrets, which nothing may have."""

    files: Files
    withdrawn: Mapping[str, Files]  # the same package after it was superseded, and after it was retracted
    printed: Files  # what commands print with --json, by command, and what they say on standard error
    figures: Mapping[str, list[str]]
    secrets: Mapping[str, list[str | bytes]]
    site: Path


def leaky_rows() -> list[Row]:
    """Numbers that occur nowhere by chance, every one odd to the last digit, and dropped cells that would be recognised."""
    numbers = random.Random(5)  # noqa: S311
    draws = {name: numbers.sample(range(10**14 + 7, 9 * 10**14, 2), 60) for name in ("income", "rent")}
    return [
        {
            **row,
            **{name: f"{canary}-{row['person']}" for name, canary in TEXTS.items()},
            **{name: f"{draws[name][i] // 1000}.{draws[name][i] % 1000:03}" for name in draws},
        }
        for i, row in enumerate(make_rows(releases=("1",)))
    ]


def spell(number: float) -> list[str]:
    """How a program might write a number, where that is long enough not to be met by chance."""
    found = {
        repr(number),
        f"{number:.0f}",
        f"{number:,.0f}",
        f"{number:.3f}",
        f"{number:,.3f}",
        f"{number:.9g}",
        f"{number:.12g}",
    }
    return sorted(text for text in found if len(text) >= LEAST and len(set(text) & set("123456789")) > 3)


def numbers_in(payload: Any) -> Iterator[float]:
    """Every number that is no small count, however deep."""
    if isinstance(payload, dict):
        payload = list(payload.values())
    if isinstance(payload, list):
        for part in payload:
            yield from numbers_in(part)
    elif isinstance(payload, float):
        yield payload


def collect_figures(tiny: TinySite, evidence: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the audit and the vault know, each in every spelling."""
    tables = tiny.tables()
    extrema, scales = list[float](), list[float]()
    for name in ("income", "rent"):
        values = sorted(tables["records"].column(name).to_pylist())
        extrema += [*values[:2], *values[-2:]]
    for row in tables["statistics"].to_pylist()[::3]:
        scales += [row["scale"] / 1000, row["scale"], row["statistic"], row["statistic"] / 1000]
    figures: dict[str, Iterable[float]] = {
        "extrema": extrema,
        "scales and statistics of clusters": scales,
        "utility and risk": numbers_in(evidence["audit"]),
        "columns of the evidence": numbers_in(evidence["columns"]),
        "gates": [gate["value"] for gate in evidence["gates"]],
    }
    return {name: sorted({text for number in payload for text in spell(number)}) for name, payload in figures.items()}


def print_documents(tiny: TinySite, package: Path) -> Iterator[tuple[str, bytes]]:
    """What every command prints with --json; of `run` also what is served, and what is refused."""
    home, handler = str(tiny.home), signal.getsignal(signal.SIGTERM)
    commands = {
        "status": (0, ["status", "--home", home]),
        "ledger": (0, ["ledger", "--exposure", "--home", home]),
        "check": (0, ["check", f"{home}/policies/people.yaml"]),
        "verify": (0, ["verify", str(package)]),
        "verify the site": (0, ["verify", home]),
        "run": (0, ["run", "people", "--release", "2", "--home", home]),
        "run again": (0, ["run", "people", "--release", "2", "--home", home]),
        "run refused": (1, ["run", "people", "--release", "1", "--home", home]),
    }
    other = make_site(tiny.home.parent / "refused", columns=COLUMNS)
    bad = [{**row, "income": row["name"], "rent": "", "town": row["remark"], "sex": row["person"]} for row in leaky_rows()]
    other.write_rows([*bad, *leaky_rows()[:30]])
    refused = str(other.home)
    commands["run of bad data"] = (1, ["run", "people", "--release", "1", "--home", refused])
    commands["status of bad data"] = (0, ["status", "--home", refused])
    second = [{**row, "year": "2"} for row in leaky_rows()]
    tiny.write_rows([*leaky_rows(), *second])
    for name, (code, arguments) in commands.items():
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            assert main([*arguments, "--json"]) == code, (name, err.getvalue())
        json.loads(out.getvalue())
        yield name, (out.getvalue() + err.getvalue()).encode()
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="module")
def published(keys: Keys, key_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A release of such a site; and the same after its supersession and its retraction."""
    folder = tmp_path_factory.mktemp("leaks")
    gates = "{min_rows: 20, expected_error: {income: 5, rent: 5}}"
    suppress = "{quasi_groups_below: 5, at_most: 60%}"
    audit = "{groups: [sex, town]}"
    tiny = make_trusted_site(
        folder / "site", keys, rows=leaky_rows(), columns=COLUMNS, gates=gates, suppress=suppress, audit=audit
    )
    secrets: list[bytes] = []

    def keep_secret(at: str) -> None:
        if at == "the secret is noted":
            secrets.extend(file.read_bytes() for file in (tiny.site.vault / "secrets").iterdir() if file.is_file())

    run_release(open_release(tiny.site, "people", "1", probe=Probe(reached=keep_secret)))
    for name in ("ben", "cleo"):
        approve_candidate(tiny.site, FIRST, key=keys[name])
    package = publish(tiny.site, FIRST, key=keys["robot"])
    files = read_folder(package)
    [secret] = {known for known in secrets if len(known) >= 16}
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    source, key = (tiny.home / "people.csv").read_bytes(), (tiny.site.vault / "key").read_bytes()
    figures = collect_figures(tiny, evidence)
    with tiny.site.open_registry(read_only=True) as registry:
        [charge] = [event.content for event in registry.events if event.kind == "reserved"]
    printed = dict(print_documents(tiny, package))
    revise_release(tiny.site, "people", "1", why="a correction")
    publish_release(tiny, keys, revision=2)
    supersede(tiny.site, FIRST, SECOND, key=keys["olga"], why="corrected")
    withdrawn = {"superseded": read_folder(package)}
    retract(tiny.site, FIRST, key=keys["olga"], why="a wrong file")
    withdrawn["retracted"] = read_folder(package)
    return Published(
        files,
        withdrawn,
        printed,
        figures,
        {
            "texts of the source": list(TEXTS.values()),
            "the secret": [secret],
            "the vault's key": [key],
            "the input's hash": [hashlib.sha256(source).digest(), tiny.site.keyed_hash(source), charge["source"]],
            "the evidence's salt": [evidence["salt"]],
            "private keys": [b"PRIVATE KEY", *((key_folder / name).read_text().splitlines()[2] for name in keys)],
        },
        tiny.home,
    )


def look(
    files: Mapping[str, bytes], canaries: Mapping[str, Iterable[str | bytes]], *, besides: Iterable[str] = ()
) -> list[Found]:
    """Every canary in every file but some."""
    listed = [canary for several in canaries.values() for canary in several]
    return find_canaries({name: content for name, content in files.items() if name not in besides}, listed)


def test_the_canaries_are_real(published: Published) -> None:
    """Each kind is there, and each figure is where it belongs, in evidence or source: else the tests below prove little."""
    assert {name: len(several) > 0 for name, several in {**published.figures, **published.secrets}.items() if not several} == {}
    evidence = (published.site / "vault" / "candidates" / "people" / "1" / "r1" / "evidence.json").read_bytes()
    for kind in ("utility and risk", "columns of the evidence", "gates"):
        assert len({one.canary for one in find_canaries({"evidence": evidence}, published.figures[kind])}) > 1, kind
    source = (published.site / "people.csv").read_bytes()
    assert {one.canary.decode() for one in find_canaries({"source": source}, TEXTS.values())} == set(TEXTS.values())
    assert len({one.canary for one in find_canaries({"source": source}, published.figures["extrema"])}) >= 8
    assert sum(map(len, published.figures.values())) > 100


def test_no_internal_figure_is_in_the_package(published: Published) -> None:
    """In no file beside the data, in no encoding; the names of the files are looked at too."""
    assert sorted(published.files) == sorted(
        [
            *DATA,
            "CITATION.cff",
            "RELEASE_NOTE.md",
            "SHA256SUMS",
            "SHA256SUMS.sig",
            "allowed_signers",
            "attestation.intoto.json",
            "attestation.intoto.json.sig",
            "datapackage.json",
            "dcat.jsonld",
            "ddi-codebook.xml",
            "dp_deployment.yaml",
            "nist-sp-800-226.html",
            "privacy-card.html",
            "privacy-card.json",
            "trusted-keys.json",
            "trusted-keys.sig",
        ]
    )
    assert look(published.files, published.figures, besides=DATA) == []


def test_no_secret_is_in_the_package_nor_in_its_data(published: Published) -> None:
    """Person keys, dropped cells, secret, vault key, hash of the input: not in the pages of the Parquet file either."""
    assert look(published.files, published.secrets) == []


def test_no_cell_is_in_what_is_printed_for_scripts(published: Published) -> None:
    """Of no command, whether it goes well or is refused; standard error included."""
    payload = published.printed
    assert b'"release-pipeline/run/1"' in payload["run"]
    assert b"data-refused" in payload["run of bad data"]
    assert b"column town" in payload["status of bad data"]
    assert look(payload, {**published.figures, **published.secrets}) == []


@pytest.mark.parametrize("state", ["superseded", "retracted"])
def test_nor_after_a_withdrawal(published: Published, state: str) -> None:
    """With the tombstones in it."""
    files = published.withdrawn[state]
    assert f"{state.upper()}.md" in files
    assert look(files, {**published.figures, **published.secrets}, besides=DATA) == []


def test_the_parquet_file_says_nothing_beside_its_data(published: Published) -> None:
    """Metadata of the labels of the policy alone; its statistics are of the released values; who wrote it is the library."""
    file = pyarrow.parquet.ParquetFile(io.BytesIO(published.files["data.parquet"]))
    names = file.schema_arrow.names
    labels = {name: {"label": name} for name in names}
    assert set(file.metadata.metadata) == {b"ARROW:schema", b"PANDAS_ATTRS"}
    assert json.loads(file.schema_arrow.metadata.pop(b"PANDAS_ATTRS")) == {"columns": labels}
    own = [{key: value for key, value in field.metadata.items() if key != b"PARQUET:field_id"} for field in file.schema_arrow]
    assert own == [{b"label": name.encode()} for name in names]
    assert file.metadata.created_by.startswith("parquet-cpp-arrow version ")
    table = file.read()
    for group in range(file.metadata.num_row_groups):
        for place, name in enumerate(table.column_names):
            payload = file.metadata.row_group(group).column(place).statistics
            values = [value for value in table.column(name).to_pylist() if value is not None]
            assert (payload.min, payload.max) == (min(values), max(values))


def test_no_released_number_is_a_raw_one(published: Published) -> None:
    """The data are the release; but no true value is in them either, so the search of the other files is not a mere formality."""
    raw = {row[name] for row in leaky_rows() for name in ("income", "rent")}
    assert raw & set(published.files["data.csv"].decode().replace("\n", ",").split(",")) == set()


# --- It fails when one is put in on purpose -------------------------------------------------------------------------------------
