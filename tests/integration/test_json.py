"""What `--json` prints: valid by the schemas that ship, exact, the same as the words, with the same exit codes."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.verifier.joining import join_verifier
from tests.integration.people import RELEASE, copy_site
from tests.integration.publishing import Keys
from tests.integration.sites import GX_WARNINGS, SPOILED, TinySite, make_rows, make_site, spoil

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "policies").glob("*.yaml"))
NAMES = ("status", "ledger", "check", "explore", "run", "verify", "audit-claims", "health", "alert", "error")
Document = dict[str, Any]


@pytest.fixture(autouse=True)
def _signal_handler() -> Iterator[None]:
    """The handler that `main` sets is put back."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """docs/make_json.py."""
    spec = importlib.util.spec_from_file_location("make_json", ROOT / "docs" / "make_json.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def schema_of(form: str) -> Document:
    """The schema that ships for a format."""
    name = form.removeprefix("release-pipeline/").replace("/", "-")
    file = importlib.resources.files("release_pipeline") / "schemas" / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def tighten(schema: Any) -> Any:
    """The same schema, with which a key that it does not name is an error."""
    if isinstance(schema, list):
        return [tighten(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {name: tighten(part) for name, part in schema.items()} | closed


CHECKER = jsonschema.FormatChecker()


def validate(document: Document) -> Document:
    """The document, which is what its schema says, and has no key beside."""
    schema = tighten(schema_of(document["format"]))
    jsonschema.Draft202012Validator(schema, format_checker=CHECKER).validate(document)
    return document


def tell(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Document:
    """What a command prints with --json: one valid document and nothing else."""
    given = [str(argument) for argument in arguments]
    capsys.readouterr()
    assert main([*given, "--json"]) == code
    return validate(json.loads(capsys.readouterr().out))


def test_schemas_and_page_are_what_the_code_prints(maker: ModuleType) -> None:
    """The committed files are those that docs/make_json.py makes; each schema is one."""
    assert maker.main(["--check"]) == 0, "run docs/make_json.py"
    for name in NAMES:
        jsonschema.Draft202012Validator.check_schema(schema_of(f"release-pipeline/{name}/1"))


def test_every_document_has_an_example_that_is_valid(maker: ModuleType) -> None:
    """As the page shows them; of `check` both kinds."""
    examples = maker.read_examples((ROOT / "docs" / "json.md").read_text(encoding="utf-8"))
    content = {title: validate(json.loads(text))["format"].split("/")[1] for title, text in examples.items()}
    assert set(content.values()) == set(NAMES)
    assert {json.loads(text)["valid"] for title, text in examples.items() if content[title] == "check"} == {True, False}


def test_status_has_a_published_release_in_fields(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a script wants, each from the event or the policy that says it."""
    tiny = TinySite(published)
    release_status, policy = tiny.status(), tiny.site.policy("people")
    first, second = tell(capsys, "status", "--home", published)["releases"]
    assert {name: first[name] for name in ("release", "id", "policy", "partition", "revision", "state", "population")} == {
        "release": "people/1/r1",
        "id": "people/1/r1",
        "policy": "people",
        "partition": "1",
        "revision": 1,
        "state": "published",
        "population": "folk",
    }
    assert {name: first[name] for name in ("method", "definition", "scope", "k", "rows_in", "rows_out")} == {
        "method": "idp-cbls",
        "definition": "idp",
        "scope": "column",
        "k": 5,
        "rows_in": 60,
        "rows_out": 60,
    }
    assert first["epsilon"] == {"total": "2", "columns": {"income": "1", "rent": "1"}, "records_per_person": 1}
    assert first["anonymity_k"] == release_status.facts["anonymity_k"]
    assert (first["policy_hash"], first["candidate_hash"]) == (policy.canonical_hash(), release_status.candidate_hash)
    assert first["package_hash"] == release_status.package_hash is not None
    voted = {"voted": ["ben", "cleo"], "blind": False, "returned_by": []}
    assert first["approvals"] == {"needed": 2, "by": ["ben", "cleo"], **voted}
    events = {event.kind: event.noted for event in tiny.events() if event.release == RELEASE}
    happened = ("opened", "reserved", "drawn", "candidate", "approved", "publishing", "published")
    assert {name: moment for name, moment in first["moments"].items() if moment} == {name: events[name] for name in happened}
    assert first["since"] == events["published"]
    assert (second["release"], second["id"], second["revision"], second["state"]) == ("people/2", None, None, "open")
    assert (second["epsilon"]["total"], second["k"], second["policy_hash"], second["rows_in"]) == ("2", 5, None, None)
    assert set(second["moments"].values()) == {None}


def test_status_keeps_epsilon_exact_and_counts_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An epsilon with more digits than a float keeps, for people with three records, adds up to what is charged."""
    protect = "{method: laplace, epsilon: 123456.123456789}"
    cap = "epsilon: 999999, definition: dp, scope: column"
    tiny = make_site(tmp_path / "site", protect=protect, cap=cap, person="{column: person, records_per_release: 3}")
    run_release(tiny.flow())
    content = tell(capsys, "status", "--home", tiny.home)["releases"][0]["epsilon"]
    assert content == {
        "total": "370368.370370367",
        "columns": {"income": "61728.061728395", "rent": "61728.061728394"},
        "records_per_person": 3,
    }
    [ledger] = tell(capsys, "ledger", "--home", tiny.home)["populations"]
    assert [charge["amount"] for charge in ledger["charges"]] == [content["total"]] == [ledger["spent"]]


def test_ledger_is_what_the_words_say(candidate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cap in parts, charges and plans; person by person only if that is asked for."""
    [ledger] = tell(capsys, "ledger", "--home", candidate)["populations"]
    assert ledger["declared"] == {"epsilon": "10", "definition": "idp", "scope": "column", "releases": None}
    sums = {name: ledger[name] for name in ("cap", "spent", "reserved", "remaining")}
    assert sums == {"cap": "10", "spent": "2", "reserved": "0", "remaining": "8"}
    assert [(charge["release"], charge["amount"], charge["state"]) for charge in ledger["charges"]] == [
        ("people/1/r1", "2", "spent")
    ]
    assert [(plan["release"], plan["amount"], plan["fits"]) for plan in ledger["planned"]] == [("people/2/r1", "2", True)]
    assert "exposure" not in ledger
    [exposed] = tell(capsys, "ledger", "folk", "--exposure", "--home", candidate)["populations"]
    assert exposed["exposure"] == [{"amount": "2", "people": 60}]
    assert main(["ledger", "--home", str(candidate)]) == 0
    words = capsys.readouterr().out
    assert f"spent      {ledger['spent']}" in words
    assert f"remaining  {ledger['remaining']}" in words


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda path: path.stem)
def test_check_has_the_plan_of_every_shipped_policy(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of method; elsewhere than in a site there is neither ledger nor series, and no timetable runs."""
    content = tell(capsys, "check", policy, "--no-source")
    assert (content["valid"], content["ledger"]["spent"], content["errors"], content["problems"]) == (True, "0", [], [])
    assert tell(capsys, "check", policy, "--no-source", "--home", tmp_path) == {
        **content,
        "ledger": None,
        "held": None,
        "same_people": [],
    }


def test_check_has_every_problem_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, line, column, option, what and remedy, which together are the line that people read."""
    tiny = make_site(tmp_path / "site", protect="{method: idp-cbls, k: 0}", steward="")
    file = tiny.home / "policies" / "people.yaml"
    content = tell(capsys, "check", file, code=1)
    assert content["valid"] is False
    by_option = {problem["option"]: problem for problem in content["problems"]}
    assert by_option["protect.k"] == {
        "file": str(file),
        "line": 6,
        "column": 29,
        "option": "protect.k",
        "what": "'0' is too small.",
        "remedy": "The least allowed is 1.",
    }
    assert {"protect.epsilon", "protect.k"} < set(by_option)
    assert main(["check", str(file)]) == 1
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert content["errors"] == lines[1:]
    assert len(content["problems"]) == len(content["errors"])
    file.write_bytes(b"\xff\xfe")
    [problem] = tell(capsys, "check", file, code=1)["problems"]
    assert (problem["line"], problem["what"]) == (None, "this is not UTF-8 text.")


@GX_WARNINGS
@pytest.mark.slow
def test_run_tells_the_release_and_every_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A candidate, the same served again, data that are refused, and a revision without room: with where, what and the remedy."""
    gates = "{min_rows: 20, clamped_at_most: 2%}"
    tiny = make_site(tmp_path / "site", cap="epsilon: 3, definition: idp, scope: column", gates=gates)
    arguments = ("run", "people", "--release", "1", "--home", tiny.home)
    spoil(tiny, "out of domain")
    refused = tell(capsys, *arguments, code=1)
    assert refused["format"] == "release-pipeline/error/1"
    assert refused["error"] == {
        "code": "data-refused",
        "what": "The data do not meet the policy.",
        "where": "people/1/r1",
        "remedy": "",
        "details": [SPOILED["out of domain"].reason],
    }
    rows = make_rows()
    tiny.write_rows([{**rows[0], "rent": "101"}, *rows[1:]])
    made = tell(capsys, *arguments)
    assert (made["release"], made["state"], made["served"]) == ("people/1/r1", "candidate", False)
    assert made["candidate_hash"] == tiny.status().candidate_hash
    assert (made["epsilon"]["total"], made["k"]) == ("2", 5)
    assert Path(made["report"]).is_file()
    assert Path(made["report"]).parent == Path(made["candidate"]) == tiny.folder()
    assert made["warnings"] == ["column rent: up to 10 records outside the declared domain, clamped to it (16.67% of all)."]
    again = tell(capsys, *arguments)
    assert again == {**made, "served": True}
    over = tell(capsys, *arguments, "--revise", "a correction", code=1)
    assert (over["command"], over["error"]["code"], over["error"]["where"]) == ("run", "over-cap", "people/1/r2")
    assert "has 1 left of 3" in over["error"]["what"]
    tiny.write_cap("epsilon: 4, definition: idp, scope: column")
    tiny.write_policy(gates="{min_rows: 20, expected_error: {income: 0.0001}}")
    gated = tell(capsys, "run", "people", "--release", "2", "--home", tiny.home, code=1)
    assert (gated["error"]["code"], gated["error"]["where"]) == ("gate-failed", "people/2/r1")
    assert "expected error of income" in gated["error"]["what"]


def test_verify_says_what_it_checked(published: Path, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A package, a dossier and a site: kind, officer, and each check with its name; a changed byte shows in one of them."""
    tiny = copy_site(published, tmp_path / "site")
    package, officer = tiny.site.package("people/1/r1"), keys["olga"].public.fingerprint
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip", overwrite=False)
    for path, kind, release in (
        (package, "package", "people/1/r1"),
        (dossier, "dossier", "people/1/r1"),
        (tiny.home, "site", None),
    ):
        content = tell(capsys, "verify", path, "--officer", officer)
        assert (content["kind"], content["release"], content["ok"], content["failed"]) == (kind, release, True, 0)
        assert (content["fingerprint"], content["given"], content["compared"]) == (officer, [officer], True)
        assert (content["package_hash"] == tiny.status().package_hash) is (release is not None)
        assert {check["passed"] for check in content["checks"]} <= {True, None}
        assert all(check["words"].startswith(check["name"]) or check["name"] == "other files" for check in content["checks"])
    assert tell(capsys, "verify", package)["compared"] is False
    (package / "data.csv").write_bytes((package / "data.csv").read_bytes() + b"x")
    for path, name in ((package, "data.csv"), (tiny.home, "releases/people/1/r1")):
        content = tell(capsys, "verify", path, "--officer", officer, code=1)
        assert (content["ok"], content["failed"] > 0) == (False, True)
        assert name in {check["name"] for check in content["checks"] if check["passed"] is False}


@pytest.mark.parametrize("what", ["a package", "nothing"])
def test_the_verifier_alone_prints_the_same(published: Path, tmp_path: Path, what: str) -> None:
    """With Python and its one file, nothing else on the path: the same document, the same exit code."""
    file, path = tmp_path / "verify.py", published / "releases" / "people" / "1" / "r1"
    file.write_bytes(join_verifier().encode())
    given = str(path if what == "a package" else tmp_path / "gone")
    alone = subprocess.run([sys.executable, "-I", "-S", file, given, "--json"], capture_output=True, text=True, check=False)
    ours = subprocess.run(
        [sys.executable, "-m", "release_pipeline.apps.cli", "verify", given, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == ours.returncode == (0 if what == "a package" else 2)
    assert validate(json.loads(alone.stdout)) == json.loads(ours.stdout)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "--home", "{here}/nowhere"], "wrong-usage"),
        (["status", "--overwrite", "--home", "{site}"], "wrong-usage"),
        (["ledger", "nobody", "--home", "{site}"], "wrong-usage"),
        (["check", "{here}/gone.yaml"], "wrong-usage"),
        (["check"], "wrong-usage"),
        (["check", "{site}/policies/people.yaml", "--rows", "0"], "wrong-usage"),
        (["run", "nobody", "--home", "{site}"], "wrong-usage"),
        (["run", "people", "--release", "9", "--home", "{site}"], "wrong-usage"),
        (["verify", "{here}"], "wrong-usage"),
        (["verify", "{site}", "--officer", "olga"], "wrong-usage"),
        (["check", "{site}/policies/people.yaml", "--home", "{here}/undeclared"], "policy-invalid"),
        (["status", "--home", "{here}/damaged"], "registry-changed"),
        (["nonsense"], "wrong-usage"),
    ],
    ids=" ".join,
)
def test_a_failure_is_told_with_the_same_exit_code(
    arguments: list[str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object with what, where and the remedy; standard error says the same words as without --json."""
    tiny = make_site(tmp_path / "site")
    undeclared, damaged = make_site(tmp_path / "undeclared"), make_site(tmp_path / "damaged")
    undeclared.site.populations_file.write_text("others: {cap: {releases: 1}}\n")
    damaged.flow().check_may_begin()
    damaged.site.registry.unlink()
    given = [argument.format(here=tmp_path, site=tiny.home) for argument in arguments]

    def run(*more: str) -> tuple[int, str, str]:
        ended = main([*given, *more])
        said = capsys.readouterr()
        return ended, said.out, said.err

    (plain, _, words), (ended, out, err) = run(), run("--json")
    content = validate(json.loads(out))
    assert content["format"] == "release-pipeline/error/1"
    assert ended == plain == content["exit_code"] != 0
    assert err == words
    error = content["error"]
    assert (error["code"], content["command"]) == (code, arguments[0])
    for part in ("where", "what"):
        assert error[part].rstrip(".") in " ".join(words.split()), part


@pytest.mark.parametrize(
    ("fault", "code", "exit_code"),
    [
        (KeyboardInterrupt(), "stopped", 130),
        (OSError(28, "No space left on device"), "out-of-room", 1),
        (OSError(5, "Input/output error"), "system", 1),
        (ValueError("CellCanary-3Kd"), "internal", 1),
    ],
    ids=["stopped", "out-of-room", "system", "internal"],
)
def test_what_is_no_error_of_ours_is_told_too(
    fault: BaseException,
    code: str,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the text of a foreign exception, which may quote a cell."""

    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("release_pipeline.operate.overview.list_releases", fail)
    tiny = make_site(tmp_path / "site")
    assert main(["status", "--json", "--home", str(tiny.home)]) == exit_code
    said = capsys.readouterr()
    content = validate(json.loads(said.out))
    assert (content["error"]["code"], content["exit_code"]) == (code, exit_code)
    assert content["error"]["what"] in said.err
    assert "CellCanary" not in said.out + said.err
