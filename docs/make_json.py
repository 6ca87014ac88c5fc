"""Make release_pipeline/schemas/ and docs/json.md from the views that `--json` prints, and from runs of the commands.

    python docs/make_json.py [--site DEMO] [--check]

The schemas follow from the views alone. The examples are what the commands print of a demo's site (`make demo`),
with long lists cut; without --site those that stand in the page stay. --check only says whether anything would change.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from release_pipeline.apps.cli import main as command
from release_pipeline.apps.cli.program import FailureDocument
from release_pipeline.explore.document import ExploreDocument
from release_pipeline.ledger.account import LedgerDocument
from release_pipeline.operate.alerts.look import preview
from release_pipeline.operate.alerts.matters import Alert
from release_pipeline.operate.health import HealthDocument
from release_pipeline.operate.overview import StatusDocument
from release_pipeline.operate.run import RunDocument
from release_pipeline.pipeline.check import CheckDocument, InvalidDocument
from release_pipeline.pipeline.claims import ClaimsDocument
from release_pipeline.policy.documents import make_object, to_json
from release_pipeline.store.site import Site
from release_pipeline.verifier.findings import VerificationView

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS, PAGE = ROOT / "release_pipeline" / "schemas", ROOT / "docs" / "json.md"
DOCUMENTS: dict[str, tuple[type, ...]] = {
    "status": (StatusDocument,),
    "ledger": (LedgerDocument,),
    "check": (CheckDocument, InvalidDocument),
    "explore": (ExploreDocument,),
    "run": (RunDocument,),
    "verify": (VerificationView,),
    "audit-claims": (ClaimsDocument,),
    "health": (HealthDocument,),
    "alert": (Alert,),
    "error": (FailureDocument,),
}
HEAD = """\
# JSON for scripts

For anyone who writes a script. `status`, `ledger`, `check`, `explore`, `run`, `verify` and `audit-claims` take `--json` and print
one JSON object on standard output, nothing else. Progress goes to standard error. `docs/make_json.py` makes this page.

- **`format`** names the document and its version, like `release-pipeline/status/1`. From release 0.1.0 on keys and codes may
  be added within a version; none is removed, renamed or given another meaning. So ignore what you do not know.
- **Exit codes** are those without `--json`: 0 fine, 1 refused or failed, 2 wrong usage, 130 stopped.
- **A refusal or failure** prints [an error](#error) instead of the command's document, with the same exit code. Two documents end
  with 1 and are no errors: `check` of a policy with errors (`valid` is false) or that a run would refuse (`refusals`), `verify`
  of what does not hold (`ok` is false). Look at `format` first.
- **Epsilon is a text**, exact to its nine decimals, as is every amount of a ledger. `infinity`: nothing bounds it.
- **Moments** are RFC 3339. **Hashes** are SHA-256 in hex. **What is not known is null**; every key is there
  unless it is optional.
- **No cell of data is in any of it.** It is for the people of the site all the same: reasons, warnings and counts of records are
  not for the public, and `--exposure` is confidential.

The JSON Schemas (2020-12) say what every key means. They are in the package, in `release_pipeline/schemas/`; from Python:
`importlib.resources.files("release_pipeline") / "schemas" / "status-1.json"`. The site that `make docs`
makes lists all keys here.
"""
ABOUT = {
    "status": "`release-pipeline status --json`: every release that is declared or was begun.",
    "ledger": "`release-pipeline ledger [POPULATION] [--exposure] --json`: what people were exposed to.",
    "check": "`release-pipeline check POLICY.yaml [--rows N] --json`: the plan of a policy and the ledger before and after, "
    "or all of its errors. Reads no record.",
    "explore": "`release-pipeline explore POLICY.yaml (--like FILE --public WHERE | --shape) --json`: every setting that was "
    "tried, with what readers would be left with and what it costs.",
    "run": "`release-pipeline run POLICY --json`: the release as `status` has it once the run has ended, and where its candidate "
    "is.",
    "verify": "`release-pipeline verify PATH --json`, and `python verify.py PATH --json`, which needs Python alone: what was "
    "checked.",
    "audit-claims": "`release-pipeline audit-claims POLICY [--quick] --json`: every claim attacked, and what "
    "that proves. Exit code 1 if one is broken (`holds` is false).",
    "health": "`release-pipeline status --health --json`: whether the site is well. Exit code 1 if not.",
    "alert": "What a webhook of `alerts` in site.yaml is sent, one POST for each thing that happened: "
    "[operating.md](operating.md#alerts). It may come twice, with the same `id`.",
    "error": "What any of them prints when it is refused or fails, wrong usage included.",
}
EXAMPLES = {  # by title: the document, and the arguments of the command
    "status": ("status", ["status", "--home", "{site}"]),
    "ledger": ("ledger", ["ledger", "--home", "{site}"]),
    "check": ("check", ["check", "{site}/policies/election-licensed.yaml"]),
    "check, of a policy with errors": ("check", ["check", "{site}/broken.yaml"]),
    "explore": (
        "explore",
        [
            *(
                "explore",
                "{site}/policies/election-licensed.yaml",
                "--like",
                "{site}/like.csv",
                "--public",
                "in statsmodels",
                "--by",
                "ana",
            ),
            *("--methods", "dp-cdf", "--epsilons", "1,2"),
        ],
    ),
    "run": ("run", ["run", "election-licensed", "--home", "{site}"]),
    "verify": ("verify", ["verify", "{site}/releases/rand-hie-table/1/r1"]),
    "audit-claims": ("audit-claims", ["audit-claims", "{site}/policies/election-licensed.yaml", "--quick"]),
    "health": ("health", ["status", "--health", "--home", "{site}"]),
    "alert": ("alert", []),  # of no command: what a webhook would be sent
    "error": ("error", ["run", "election-public", "--home", "{site}"]),
}


def make_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document."""
    views = [make_object(view) for view in DOCUMENTS[name]]
    form = f"release-pipeline/{name}/1"
    for view in views:
        view["properties"] = {"format": {"const": form, "description": "the format and its version"}} | {
            key: part for key, part in view["properties"].items() if key != "format"
        }
        view["required"] = list(dict.fromkeys(["format", *view["required"]]))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": form,
        **(views[0] if len(views) == 1 else {"oneOf": views}),
    }


def describe_schema(schema: dict[str, Any]) -> Iterator[str]:
    """A row for each key, of what is in it too: a dot for each step down, and [] for the entries of a list."""
    yield "| key | type | what |"
    yield "|---|---|---|"
    yield from _rows(schema, "")


def _rows(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, part in schema["properties"].items():
        words = part.get("description", "")
        inner, at = part, f"{path}{name}"
        kind = _kind(part)
        while inner.get("type") in ("array", "object") or "anyOf" in inner:
            if "anyOf" in inner:
                inner = inner["anyOf"][0]
            elif inner["type"] == "array":
                inner, at = inner["items"], f"{at}[]"
            elif "additionalProperties" in inner:
                inner, at = inner["additionalProperties"], f"{at}.NAME"
            else:
                break
        words = words or inner.get("description", "")
        optional = "" if name in schema["required"] else "optional; "
        yield f"| `{path}{name}` | {kind} | {optional}{words} |"
        if "properties" in inner:
            yield from _rows(inner, f"{at}.")


def _kind(part: dict[str, Any]) -> str:
    """The type of a value in a word or two."""
    if "anyOf" in part:
        return f"{_kind(part['anyOf'][0])} or null"
    if "enum" in part:
        return ", ".join(str(value) for value in part["enum"])
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    if kinds == ["array"]:
        return f"list of {_kind(part['items'])}"
    names = {
        "string": "moment" if "format" in part else "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
    }
    if part.get("pattern", "").startswith("^[0-9a-f]"):
        names["string"] = "hash"
    elif part.get("pattern", "").startswith(("^[0-9]+", "^([0-9]+")):
        names["string"] = "amount"
    return " or ".join(names.get(kind, kind) for kind in kinds)


def list_keys() -> str:
    """What every key of every document means, as tables: a part of the page that only the site has."""
    tables = [
        f"### Keys of {name}\n\n" + "\n".join(describe_schema(view))
        for name in DOCUMENTS
        for view in make_schema(name).get("oneOf", [make_schema(name)])
    ]
    return "\n\n".join(["## Every key", *tables])


def make_page(examples: dict[str, str]) -> str:
    """The page, with these examples by their titles."""
    parts = [HEAD]
    for name in DOCUMENTS:
        parts.append(f"## {name}\n\n{ABOUT[name]}\n")
        schema = make_schema(name)
        for view in schema.get("oneOf", [schema]):
            parts.append(f"{view['description']} ([schema](../release_pipeline/schemas/{name}-1.json))\n")
        for title, (document, _) in EXAMPLES.items():
            if document == name:
                parts.append(f"An example, {title}:\n\n```json\n{examples[title]}\n```\n")
    return "\n".join(parts)


def read_examples(page: str) -> dict[str, str]:
    """The examples that stand in a page, by their titles."""
    return dict(re.findall(r"^An example, (.*?):\n\n```json\n(.*?)\n```$", page, flags=re.S | re.M))


def run_examples(site: Path) -> dict[str, str]:
    """What the commands print of a demo's site, with its path as `demo` and long lists cut."""
    good = (site / "policies" / "election-licensed.yaml").read_text(encoding="utf-8")
    broken = site / "broken.yaml"
    broken.write_text(good.replace("epsilon: 3, ", "").replace("[18, 98]", "[98, 18]"), encoding="utf-8")
    like = site / "like.csv"  # the source itself is not taken for public
    lines = (site / "data" / "election-study.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    like.write_text("".join(lines[:-1]), encoding="utf-8")
    examples: dict[str, str] = {}
    for title, (_, arguments) in EXAMPLES.items():
        if not arguments:
            examples[title] = _write_alert(site)
            continue
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
            command([*(word.format(site=site) for word in arguments), "--json"])
        examples[title] = json.dumps(_cut(json.loads(told.getvalue().replace(str(site), "demo"))), indent=2)
    broken.unlink()
    like.unlink()
    return examples


def _write_alert(site: Path) -> str:
    """What the demo's site would tell first."""
    said, file = b"", site / "site.yaml"
    if file.is_file():
        said = file.read_bytes()
    file.write_bytes(said + b"\nalerts: [{on: [waiting], webhook: 'https://alerts.example.org'}]\n")
    try:
        return json.dumps(to_json(preview(Site(site, {}))[0].alert), indent=2)
    finally:
        file.write_bytes(said)


def _cut(value: Any, most: int = 2) -> Any:
    if isinstance(value, dict):
        return {name: _cut(part, 1 if name == "releases" else most) for name, part in value.items()}
    return [_cut(part) for part in value[:most]] if isinstance(value, list) else value


def main(arguments: list[str] | None = None) -> int:
    """Write what has changed, or with --check give 1 if anything would."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, help="the folder of a demo")
    parser.add_argument("--check", action="store_true", help="change nothing")
    wanted = parser.parse_args(arguments)
    examples = run_examples(wanted.site.resolve()) if wanted.site else read_examples(PAGE.read_text(encoding="utf-8"))
    texts = {SCHEMAS / f"{name}-1.json": json.dumps(make_schema(name), indent=2) + "\n" for name in DOCUMENTS}
    texts[PAGE] = make_page(examples)
    stale = [file for file, text in texts.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    for file in stale:
        print(f"{file.relative_to(ROOT)}: {'not what the code prints' if wanted.check else 'written'}")
        if not wanted.check:
            file.write_text(texts[file], encoding="utf-8")
    return int(wanted.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
