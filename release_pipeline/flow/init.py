"""A policy skeleton from a header. Every role, domain and reason is left for a person; `check` refuses it until then."""

from __future__ import annotations

import re
from pathlib import Path

from release_pipeline.errors import SourceError
from release_pipeline.policy.scalars import look_alike_key
from release_pipeline.store.source import find_file

_NUMBER = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


_PROPOSALS = {
    ("age", "ages", "years"): "{intervals: [5, 10, 20], domain: [0, 120], grid: 1, outside: clamp}",
    ("zip", "zipcode", "postcode", "postal", "plz"): "{prefixes: [5, 3, 1], of: digits}",
    (
        "date",
        "birth",
        "birthday",
        "birthdate",
        "dob",
        "born",
    ): "{dates: [day, month, year, decade], first: 1900-01-01, last: 2030-12-31}",
    ("sex", "gender", "race", "ethnicity", "religion"): "{groups: [VALUE, VALUE]}",
    ("marital", "country", "region", "state", "county", "city", "town", "education", "occupation", "job", "nationality"): (
        "{groups: {LABEL: [VALUE, VALUE], LABEL: [VALUE]}}"
    ),
}


def draft_policy(name: str, file: Path) -> str:
    """The text of a policy for `file`. It looks at the header alone: nothing is inferred from the data."""
    source = find_file(file, expected=frozenset())
    if len({look_alike_key(column) for column in source.header}) < len(source.header) or not all(source.header):
        raise SourceError(
            "the header has a column without a name, or two that look alike.",
            where=str(file),
            remedy="Rename them in the source.",
        )
    if any(_NUMBER.fullmatch(column) for column in source.header):
        raise SourceError(
            "the first line holds numbers, so it is no header.", where=str(file), remedy="Deliver the file with column names."
        )
    columns = "\n".join(f"  {_key(column)}: {{role: , do: }}{_propose(column)}" for column in source.header)
    return f"""\
# A skeleton: fill in what is empty, then run `release-pipeline check`.
policy: {name}
steward:                # who answers for this policy
population:             # whose budget it spends (populations.yaml)
source: {{path: {_key(str(file.resolve()))}}}          # with release_column: NAME when one column tells the releases apart
person:                 # each-row, or {{column: NAME, records_per_release: 1}}
releases: once          # or a list of names
protect: {{method: , epsilon: , k: }}        # laplace, dp-um, idp-ls, idp-cbls; dp-mdav with order: corner or hilbert;
#   mdav without epsilon; k-epsilon with grouping: ola or mondrian
# role: identifier, quasi or confidential. do: drop, keep, noise or (k-epsilon) generalise. Move what is never released to `drop`.
#   noise: {{role: , do: noise, domain: [lower, upper], grid: , outside: clamp or fail, missing: fail, why: }}
#   keep:  {{role: , do: keep, values: [...], why: }}
#   generalise: {{role: quasi, do: generalise, hierarchy: , why: }}, where hierarchy is {{csv: FILE}} (level0,level1,...),
#     {{groups: {{LABEL: [values], LABEL: [values]}}}}, or one of the forms that are proposed below by the names of columns
columns:
{columns}
drop: []
gates: {{min_rows: }}
"""


def _propose(column: str) -> str:
    """A hierarchy that a column of this name often has, as a comment; nothing is known of its values."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", column)
    for names, hierarchy in _PROPOSALS.items():
        if any(word.lower() in names for word in words):
            return f"    # generalise? hierarchy: {hierarchy}"
    return ""


def _key(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in ("true", "false", "null"):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
