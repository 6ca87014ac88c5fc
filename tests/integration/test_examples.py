"""The blocks of pages that are no walk-through, each executed where its page says that a reader is: in a site, beside packages,
in a team's own definitions. What a person would type when asked, and what stands for a reader's own file, is in this module."""

from __future__ import annotations

import ast
import csv
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.explore import simulating
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy.plans import settings
from release_pipeline.publish.publish import publish
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import approve_policy, approve_populations
from release_pipeline.trust.members import trust_key
from release_pipeline.verifier.joining import join_signer
from tests.integration.people import PEOPLE, appoint, copy_site, review
from tests.integration.publishing import Keys, publish_release
from tests.integration.shells import ROOT, execute, open_shell, read_blocks
from tests.integration.sites import HEADER, PARTS, Row, make_rows, make_site, policy_text

pytestmark = pytest.mark.slow
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DP = "epsilon: 100, definition: dp, scope: column"
AGED = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  state:  {role: quasi, do: drop, values: [CA, NY]}
  sex:    {role: quasi, do: keep, values: [f, m], why: needed, label: Sex of the person, labels: {f: female, m: male}}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
  age:    {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}"""
COUNTED = """
  person: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}"""
SYNTHETIC = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: synthesise, values: [north, south, east]}
  sex:    {role: quasi, do: synthesise, values: [f, m]}
  income: {role: confidential, do: synthesise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: synthesise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
TABLES = "{people: {by: [state, sex], epsilon: 20}, wages: {by: [state], sum: income, epsilon: 20}}"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A shell in which `release-pipeline` is this checkout; what it caches is the test's."""
    with open_shell(tmp_path / "bin") as environment:
        yield {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def follow(blocks: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What the blocks print, each command of which ends well."""
    done = execute("\n".join(blocks), folder, environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    return done.stdout


def write_rows(file: Path, rows: list[dict[str, str]], header: tuple[str, ...] = HEADER) -> None:
    """A file of a reader's own."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, header)
        writer.writeheader()
        writer.writerows(rows)


def test_a_site_of_ones_own(tmp_path: Path, shell: Mapping[str, str]) -> None:
    """docs/start.md: a skeleton, which a person fills in; then plan, run, status, ledger, difference, the method alone, and
    attacks on what is claimed."""
    write_rows(tmp_path / "people.csv", make_rows(60, releases=["1"]))
    first, *rest = read_blocks("start.md")
    follow([first], tmp_path, shell)
    file = tmp_path / "site" / "policies" / "mine.yaml"
    assert "policy: mine" in file.read_text()
    source = "{path: ../people.csv, release_column: year}"
    filled = policy_text(policy="mine", population="my-people", source=source, releases='["1"]')
    file.write_text(filled)
    printed = follow(rest, tmp_path / "site", shell)
    assert re.search(r"^mine/1/r1 +candidate ", printed, re.MULTILINE)
    assert "2 to 3" in printed, printed
    assert "None of 3 claims is broken." in printed
    assert (tmp_path / "site" / "masked.parquet").stat().st_size > 0


def test_settings_are_tried(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/choosing.md: on a public file, on a table made up of beliefs, and on a package of the site. Few releases are
    simulated: what they are like is looked at elsewhere."""
    monkeypatch.setattr(simulating, "MOST", 5)
    monkeypatch.setattr(settings, "SIZES", (10,))
    columns = PARTS["columns"].replace("rent:", "visits:").replace("[0, 100], grid: 0.5", "[0, 100], grid: 1")
    beliefs = "{rows: 200, columns: {income: {at: {0: 10%}, quantiles: {50%: 200}}, visits: {at: {0: 10%}, quantiles: {50%: 3}}}}"
    header = tuple("visits" if name == "rent" else name for name in HEADER)
    this_year, last_year = (
        [
            {name: row.get(name, row["rent"].split(".")[0]) for name in header}
            for row in make_rows(200, releases=["2025"], seed=seed)
        ]
        for seed in (0, 1)
    )
    parts = {"columns": columns, "shape": beliefs, "releases": '["2025"]', "protect": "{method: dp-cdf, epsilon: 4, k: 5}"}
    tiny = make_site(tmp_path / "site", cap=DP, policy="visits", **parts)
    tiny.write_rows(this_year, header=header)
    for name, role in PEOPLE.items():
        trust_key(tiny.site, name, role, keys[name].public, key=keys["olga"])
    approve_policy(tiny.site, "visits", key=keys["olga"])
    approve_populations(tiny.site, key=keys["olga"])
    run_release(tiny.flow("2025", "visits"))
    release = ReleaseId("visits", "2025")
    review(tiny, dict(keys), "ben", "cleo", release=release)
    publish(tiny.site, release, key=keys["robot"])
    write_rows(tiny.home / "last-year.csv", last_year, header)
    monkeypatch.chdir(tiny.home)
    [block] = read_blocks("choosing.md")
    for line in block.splitlines():
        assert main([*shlex.split(line)[1:], "--quiet"]) == 0, line
    assert [event.kind for event in tiny.events() if event.kind == "looked"] == []


def test_a_release_is_opened_anew(tmp_path: Path, shell: Mapping[str, str]) -> None:
    """docs/operating.md: the source was corrected after the charge; the revision that the refusal names is charged anew."""
    tiny = make_site(tmp_path / "site")
    run_release(tiny.flow("2"))
    tiny.write_rows(make_rows(seed=1))
    follow(read_blocks("operating.md"), tiny.home, shell)
    assert [charge.id.revision for charge in tiny.charges()] == [1, 2]


def test_signed_on_a_machine_of_ones_own(
    tmp_path: Path, shell: Mapping[str, str], candidate: Path, key_folder: Path, keys: Keys
) -> None:
    """docs/reviewing.md: a bundle, `sign.py` as one file, the import, and ssh-keygen over what was signed."""
    tiny = copy_site(candidate, tmp_path / "site")
    (tiny.home / "sign.py").write_text(join_signer())
    shutil.copy(key_folder / "ben", tiny.home / "ben")
    saying, signing, checking = read_blocks("reviewing.md")
    follow([saying], tiny.home, shell)
    assert [event.kind for event in tiny.events()][-3:] == ["remarked", "returned", "remarked"]
    signing = signing.replace("--key ben", "--key ben --yes")  # which a person is asked
    follow([signing], tiny.home, {**shell, "PATH": f"{Path(sys.executable).parent}:{shell['PATH']}"})
    assert [event.kind for event in tiny.events()][-1] == "approved"
    line = keys["ben"].public.text  # as in his .pub
    printed = follow([checking.replace("ssh-ed25519 AAAA...", line)], tiny.home, shell)
    assert 'Good "statement@release-pipeline" signature for ben' in printed


def test_papers_of_a_release(tmp_path: Path, shell: Mapping[str, str], published: Path) -> None:
    """docs/papers.md: every paper that its table names."""
    tiny = copy_site(published, tmp_path / "site")
    follow(read_blocks("papers.md"), tiny.home, shell)
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    named = [name for row in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE) for name in re.findall("`(.+?)`", row)]
    assert {file.name for file in (tiny.home / "papers-of-people").iterdir()} == set(named)


def test_a_site_among_a_teams_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/dagster.md: the two are one, and the team's executor is the one that it was."""
    make_site(tmp_path / "site")
    [block] = PYTHON.findall((ROOT / "docs" / "dagster.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"my_definitions": dg.Definitions(executor=dg.in_process_executor)}
    exec(block.replace("/srv/health", str(tmp_path / "site")), names)  # noqa: S102
    defs: dg.Definitions = names["defs"]
    assert defs.executor is dg.in_process_executor
    assert dg.AssetKey(["health", "people", "published"]) in defs.resolve_all_asset_keys()


def make_state_rows() -> list[Row]:
    """People with an age and a state."""
    rows = make_rows(600, releases=["1"])
    ages = [str(int(row["person"][1:]) * 37 % 101) for row in rows]
    states = ["CA" if int(row["person"][1:]) % 5 < 2 else "NY" for row in rows]
    return [
        {**row, "age": age, "state": state, "sex": "fm"[int(row["sex"])]}
        for row, age, state in zip(rows, ages, states, strict=True)
    ]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Path:
    """A folder as docs/analyst.md has it: packages with noise on each record and tables beside them, with counts by value, with
    synthetic rows, and with clusters."""
    folder = tmp_path_factory.mktemp("packages")
    kinds = {
        "people": {"protect": "{method: laplace, epsilon: 60, clamp: no}", "columns": AGED, "tables": TABLES},
        "counted": {
            "protect": "{method: dp-cdf, epsilon: 4, k: 5}",
            "columns": COUNTED,
            "drop": "[name, remark, town, sex, rent, age, state]",
        },
        "grouped": {
            "protect": "{method: idp-cbls, epsilon: 4, k: 5}",
            "columns": COUNTED,
            "drop": "[name, remark, town, sex, rent, age, state]",
        },
        "synthetic": {
            "protect": "{method: dp-table, epsilon: 10}",
            "columns": SYNTHETIC,
            "drop": "[name, remark, age, state]",
            "gates": "{min_rows: 500}",
        },
    }
    for name, parts in kinds.items():
        caps = {"synthetic": DP.replace("column", "table"), "grouped": DP.replace("dp", "idp")}
        tiny = make_site(folder / "sites" / name, cap=caps.get(name, DP), releases='["1"]', **{"drop": "[name, remark]", **parts})
        tiny.write_rows(make_state_rows(), header=(*HEADER, "age", "state"))
        appoint(tiny, dict(keys))
        shutil.copytree(publish_release(tiny, keys), folder / name / "1" / "r1")
    return folder


def test_an_analysts_questions(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/analyst.md, top to bottom in one program; what is an interval there lies where the confidential table has its figure,
    nearly always."""
    monkeypatch.chdir(packages)
    names: dict[str, Any] = {}
    blocks = PYTHON.findall((ROOT / "docs" / "analyst.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    answers: list[Any] = []
    for block in blocks:
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.Expr):
                answers.append(eval(compile(ast.Expression(statement.value), "analyst.md", "eval"), names))  # noqa: S307
            else:
                exec(compile(ast.Module([statement], []), "analyst.md", "exec"), names)  # noqa: S102
    assert len(answers) >= 10
    assert all(str(answer).strip() for answer in answers)
