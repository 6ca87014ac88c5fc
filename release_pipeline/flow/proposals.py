"""Comments of a policy's skeleton: the labels of a Stata, SPSS or SAS file, its labelled values, and its codes for no answer.
Each can be pasted into the column, or into `about`, for a person to take or leave. No role is proposed, and nothing comes from a
record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from release_pipeline.policy.kinds.labels import LONGEST_LABEL
from release_pipeline.policy.kinds.missing import MOST_CODES
from release_pipeline.policy.scalars import LONGEST_REASON
from release_pipeline.store.survey_files import SurveyColumn

_MOST_LISTED = 100  # more are a list of their own: of places, or of people
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
    """The lines of comment on a column, each without its #."""
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
    """The lines of comment on `about: title`, where the file has a label."""
    return {"title": [f"title: {_scalar(label)}"]} if label.strip() else {}


def _is_missing(code: str, column: SurveyColumn) -> bool:
    """Whether a code stands for no answer: a letter of Stata or SAS, one in a range that the file names, or one whose label says
    so."""
    if any(known == code and _says_none(label) for known, label in column.labels):
        return True
    if not column.is_text and re.fullmatch(r"\.[A-Za-z_]", code):
        return True
    return any(low == code or _is_between(low, code, high) for low, high in column.missing)


def _says_none(label: str) -> bool:
    """Whether a label is of an answer that was not given. One of many words tells of something else besides."""
    return len(label.split()) <= _MOST_WORDS and _NONE_GIVEN.search(label) is not None


def _is_between(low: str, code: str, high: str) -> bool:
    try:
        return float(low) <= float(code) <= float(high)
    except ValueError:
        return False


def _range(low: str, high: str) -> str:
    return _tidy(low) if low == high else f"{_tidy(low)} to {_tidy(high)}"


def _tidy(text: str, longest: int = LONGEST_LABEL) -> str:
    """One line, whatever breaks lines in YAML, and not too long."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _mapping(pairs: Iterable[tuple[str, str]], longest: int) -> str:
    return f"{{{', '.join(f'{_scalar(code)}: {_scalar(meaning, longest)}' for code, meaning in pairs)}}}"


def _scalar(text: str, longest: int = LONGEST_LABEL) -> str:
    """A code or label as YAML has it."""
    text = _tidy(text, longest)
    if _NUMBER.fullmatch(text) or (_PLAIN.fullmatch(text) and text.lower() not in _WORDS):
        return text
    return json.dumps(text, ensure_ascii=False)
