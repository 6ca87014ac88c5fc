"""Comments of a policy's skeleton: the labels of a Stata, SPSS or SAS file, its labelled values, and its codes for no answer.
Each can be pasted into the column, or into `about`, for a person to take or leave. No role is proposed, and nothing comes from a
record.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from release_pipeline.errors import SourceError, WrongUsage
from release_pipeline.policy.kinds.base import LONGEST_LABEL, MOST_CODES
from release_pipeline.policy.plans.skeleton import DRAFT_AUDIENCE, draft_about
from release_pipeline.policy.values.formats import ask_for_near, name_some
from release_pipeline.policy.values.scalars import LONGEST_REASON, canonical_name, look_alike_key
from release_pipeline.store.source import FileSource, find_file
from release_pipeline.store.survey_files import SurveyColumn, SurveyFile, SurveySource, describe_survey

_MOST_LISTED = 100  # more are a separate list: of places, or of people
_NO_ANSWER = "no answer"
_MOST_WORDS = 4
_NONE_GIVEN = re.compile(
    r"\b(refus\w*|not (asked|stated|known|applicable|ascertained|available)|inapplicable|does not apply|missing|unknown"
    r"|don'?t know|do not know|no (answer|response|reply)|dk|na|n/a|iap)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*( [A-Za-z0-9_]+)*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # of YAML


def propose(column: SurveyColumn) -> Iterator[str]:
    """Yield the lines of comment on a column, each without its #."""
    if column.label.strip():
        yield f"label: {_scalar(column.label)}"
    values = [(code, label) for code, label in column.labels if not _is_missing(code, column)]
    codes = [(code, label) for code, label in column.labels if _is_missing(code, column)]
    if values and len(values) <= _MOST_LISTED:
        yield f"values: [{', '.join(_scalar(code) for code, _ in values)}]"
        if labels := [(code, label) for code, label in values if label.strip()]:
            yield f"labels: {_mapping(labels, LONGEST_LABEL)}"
    elif values:
        yield f"{len(values):,} values have a label, which are too many to list here"
    if codes and len(codes) <= MOST_CODES:
        yield f"codes: {_mapping(((code, label if label.strip() else _NO_ANSWER) for code, label in codes), LONGEST_REASON)}"
    elif codes:
        yield f"{len(codes):,} codes stand for no answer, which are too many to list here"
    unlabelled = [_range(low, high) for low, high in column.missing if low != high or not any(code == low for code, _ in codes)]
    if unlabelled and len(unlabelled) <= _MOST_LISTED:
        yield f"no answer, says the file: {', '.join(unlabelled)}"


def propose_title(label: str) -> dict[str, list[str]]:
    """Return the lines of comment on `about: title`, where the file has a label."""
    return {"title": [f"title: {_scalar(label)}"]} if label.strip() else {}


def _is_missing(code: str, column: SurveyColumn) -> bool:
    """Return whether a code means no answer: a letter of Stata or SAS, one in a range that the file names, or one whose label
    says so."""
    if any(known == code and _says_none(label) for known, label in column.labels):
        return True
    if not column.is_text and re.fullmatch(r"\.[A-Za-z_]", code):
        return True
    return any(low == code or _is_between(low, code, high) for low, high in column.missing)


def _says_none(label: str) -> bool:
    """Return whether a label means that no answer was given. One of many words means something else, too."""
    return len(label.split()) <= _MOST_WORDS and _NONE_GIVEN.search(label) is not None


def _is_between(low: str, code: str, high: str) -> bool:
    try:
        return float(low) <= float(code) <= float(high)
    except ValueError:
        return False


def _range(low: str, high: str) -> str:
    return _tidy(low) if low == high else f"{_tidy(low)} to {_tidy(high)}"


def _tidy(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return the text in one line, without characters that break lines in YAML, and not too long."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _mapping(pairs: Iterable[tuple[str, str]], longest: int) -> str:
    return f"{{{', '.join(f'{_scalar(code)}: {_scalar(meaning, longest)}' for code, meaning in pairs)}}}"


def _scalar(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a code or label as YAML has it."""
    text = _tidy(text, longest)
    if _NUMBER.fullmatch(text) or (_PLAIN.fullmatch(text) and text.lower() not in _WORDS):
        return text
    return json.dumps(text, ensure_ascii=False)


# A policy skeleton from a header. Every role, domain and reason is left for a person; `check` refuses it until then. The header
# goes into the policy, which is no secret. A file without one would put its first person there. So a CSV must show that its first
# line is a header, or a person who has checked says so. The labels in a Stata, SPSS or SAS file become comments next to its
# columns (`proposals`).


_DATUM = re.compile(  # a number, a date, a time, a telephone number, an address of e-mail: none is the name of a column
    r"[-+]?[0-9.,' ]+([eE][-+]?[0-9]+)?%?|[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}.*|[0-9]{1,2}:[0-9]{2}.*"
    r"|[+(]?[0-9][-0-9 ()/.]{4,}|[^@\s]+@[^@\s]+\.[^@\s]+"
)
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", ".", "-", "?", "missing", "unknown", "not known"}
POLICIES = "policies"  # the folder of a site that has them
_LINES = 100_000  # of a file that are read
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def draft_policy(
    name: str,
    file: Path,
    *,
    header: bool = False,
    columns: Sequence[str] | None = None,
    policy_file: Path | None = None,
) -> str:
    """Return the text of a policy for `file`, made from its header and its labels, if any; nothing is inferred from data.
    `header`: a person has seen that the first line holds names. `columns`: those to work with; the others are dropped.
    `policy_file`: where the policy will be."""
    source = find_file(file, expected=frozenset())
    if len({look_alike_key(column) for column in source.header}) < len(source.header) or not all(source.header):
        raise SourceError(
            "the header has a column without a name, or two that look alike.",
            where=str(file),
            remedy="Rename them in the source.",
        )
    data = [str(number) for number, column in enumerate(source.header, start=1) if _DATUM.fullmatch(column)]
    if data:
        raise SourceError(
            f"the first line holds numbers, dates or addresses (field {', '.join(data)}), so it is no header.",
            where=str(file),
            remedy="Deliver the file with column names.",
        )
    if isinstance(source, FileSource) and source.format == "csv" and not header:
        _check_header(source)
    survey = _describe(source)
    described = {canonical_name(column.name): column for column in survey.columns}
    chosen = _choose(source.header, columns, file)
    lines = "\n".join(line for column in chosen for line in _draft_column(column, described))
    rest = ", ".join(_key(column) for column in source.header if column not in chosen)
    about = "\n".join([DRAFT_AUDIENCE, *draft_about(propose_title(survey.label))])
    return _write(name, _key(_name_source(file, policy_file)), lines, rest, about)


def _write(name: str, source: str, lines: str, rest: str, about: str) -> str:
    return f"""\
# A skeleton: fill in what is empty, then run `release-pipeline check`.
policy: {name}
steward:                # who answers for this policy
population:             # whose budget it spends (populations.yaml)
source: {{path: {source}}}          # with release_column: NAME when one column tells the releases apart
person:                 # each-row, or {{column: NAME, records_per_release: 1}}
releases: once          # or a list of names
protect: {{method: , epsilon: , k: }}        # dp-cdf, laplace, dp-um, idp-ls, idp-cbls; dp-mdav with order: corner or hilbert;
#   mdav without epsilon; k-epsilon with grouping: ola or mondrian; dp-table without k: one claim for everything, and
#   do: synthesise for every released column, with what keep or noise would have; swap: {{k: 10, within: kept}} with methods of
#   single columns: values change places among ten or more alike people (docs/policy.md)
# role: identifier, quasi, confidential or weight. do: drop, keep, swap, noise or (k-epsilon) generalise. Move what is never
#   released to `drop`.
#   noise: {{role: , do: noise, domain: [lower, upper], grid: , outside: clamp or fail, missing: fail, why: , label: , unit: }}
#   keep:  {{role: , do: keep, values: [...], why: , label: , labels: {{VALUE: what it means}}}}
#   generalise: {{role: quasi, do: generalise, hierarchy: , why: , label: }}, where hierarchy is
#     {{groups: {{LABEL: [values], LABEL: [values]}}}}, {{intervals: [5, 10, 20], domain: [0, 120], grid: 1, outside: clamp}},
#     {{prefixes: [5, 3, 1], of: digits}} or {{dates: [day, month, year], first: 1900-01-01, last: 2030-12-31}}
columns:
{lines}
drop: [{rest}]
gates: {{min_rows: }}
# What readers are told of the data, word for word. No officer approves a policy without it, and without a label of each released
# column: what a file says of itself is a proposal, for you to read, and to take or leave.
{about}
"""


def _choose(header: Sequence[str], columns: Sequence[str] | None, file: Path) -> Sequence[str]:
    """Return the columns to work with, in the order of the file."""
    if columns is None:
        return header
    known = {canonical_name(column): column for column in header}
    if unknown := [column for column in columns if canonical_name(column) not in known]:
        remedy = "; ".join(
            ask_for_near(column, known, f"Look for '{column}' in the file.").replace("Did you mean", f"{column}: did you mean")
            for column in unknown
        )
        raise WrongUsage(f"the file has no column {name_some(unknown)}.", where=str(file), remedy=remedy)
    wanted = {known[canonical_name(column)] for column in columns}
    return [column for column in header if column in wanted]


def _name_source(file: Path, policy_file: Path | None) -> str:
    """Return the file as the policy names it: relative to its site, where both are in one."""
    folder = None if policy_file is None else policy_file.resolve().parent
    site = folder.parent if folder is not None and folder.name == POLICIES else None
    whole = file.resolve()
    return str(whole.relative_to(site)) if site is not None and whole.is_relative_to(site) else str(whole)


def _check_header(source: FileSource) -> None:
    """Refuse a CSV whose first line may be a person: one of its texts is in its column again, or no column is of numbers or
    dates, so that nothing distinguishes the first line from the others."""
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
    """Return the records after the first line, up to `_LINES`; none of a file that cannot be read so far."""
    try:
        with source.path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
            return list(islice(csv.reader(text, delimiter=source.delimiter), 1, _LINES))
    except (csv.Error, OSError):
        return []


def _describe(source: FileSource | SurveySource) -> SurveyFile:
    """Return the labels in the file itself; a CSV or Parquet file has none."""
    if not isinstance(source, SurveySource):
        return SurveyFile("", ())
    return describe_survey(source.path, source.ending, where=source.name)


def _draft_column(column: str, described: Mapping[str, SurveyColumn]) -> list[str]:
    known = described.get(canonical_name(column))
    comments = [] if known is None else [f"  # {line}" for line in propose(known)]
    return [*comments, f"  {_key(column)}: {{role: , do: }}"]


def _key(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in ("true", "false", "null"):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
