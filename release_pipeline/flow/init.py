"""A policy skeleton from a header. Every role, domain and reason is left for a person; `check` refuses it until then.

What is taken for a header goes into the policy, which is no secret. A file that has none would put its first person there. So a
CSV must show that its first line is one, or a person who has looked says so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from release_pipeline.errors import SourceError
from release_pipeline.policy.scalars import look_alike_key
from release_pipeline.store.source import FileSource, find_file

_DATUM = re.compile(  # a number, a date, a time, a telephone number, an address of e-mail: none is the name of a column
    r"[-+]?[0-9.,' ]+([eE][-+]?[0-9]+)?%?|[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}.*|[0-9]{1,2}:[0-9]{2}.*"
    r"|[+(]?[0-9][-0-9 ()/.]{4,}|[^@\s]+@[^@\s]+\.[^@\s]+"
)
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", ".", "-", "?", "missing", "unknown", "not known"}
_LINES = 100_000  # of a file are looked at
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


def draft_policy(name: str, file: Path, *, header: bool = False) -> str:
    """The text of a policy for `file`. It looks at the header alone: nothing is inferred from the data. `header`: somebody has
    looked, and the first line holds names."""
    source = find_file(file, expected=frozenset())
    if len({look_alike_key(column) for column in source.header}) < len(source.header) or not all(source.header):
        raise SourceError(
            "the header has a column without a name, or two that look alike.",
            where=str(file),
            remedy="Rename them in the source.",
        )
    data = [str(place) for place, column in enumerate(source.header, start=1) if _DATUM.fullmatch(column)]
    if data:
        raise SourceError(
            f"the first line holds numbers, dates or addresses (field {', '.join(data)}), so it is no header.",
            where=str(file),
            remedy="Deliver the file with column names.",
        )
    if source.format == "csv" and not header:
        _check_header(source)
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


def _check_header(source: FileSource) -> None:
    """Refuse a CSV whose first line may be a person: one of its texts stands in its column again, or no column is of numbers or
    dates, so that nothing sets the first line off from the others."""
    texts: list[set[bool]] = [set() for _ in source.header]  # of each column, whether its entries are data by their shape
    again: set[int] = set()
    for row in _read_body(source):
        for place, (name, text) in enumerate(zip(source.header, map(str.strip, row), strict=False)):
            if text.lower() not in _MISSING:
                texts[place].add(_DATUM.fullmatch(text) is not None)
                again |= {place + 1} if text == name else set()
    is_told = any(kinds == {True} and name.lower() not in _MISSING for kinds, name in zip(texts, source.header, strict=True))
    if again or not is_told:
        why = (
            f"what it has in field {', '.join(map(str, sorted(again)))} stands in the same column again"
            if again
            else "no column holds numbers or dates alone, so nothing sets it off from the others"
        )
        raise SourceError(
            f"the first line may be a record and no header: {why}.",
            where=str(source.path),
            remedy="Look at it. If it names the columns, add --header; if not, deliver the file with a line of names: the policy "
            "would show a person's entries.",
        )


def _read_body(source: FileSource) -> Sequence[Sequence[str]]:
    """The records after the first line, as many as are looked at; none of a file that cannot be read so far."""
    try:
        with source.path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
            return list(islice(csv.reader(text, delimiter=source.delimiter), 1, _LINES))
    except (csv.Error, OSError):
        return []


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
