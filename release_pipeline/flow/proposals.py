"""What a file or a codebook says of a column, as comments of a policy's skeleton: its label, unit and question, the values that
have a label with what they mean, the codes that stand for no answer; and what it says of the data as a whole. Proposals, written
so that they can be pasted into the column, or into `about`, for a person to take or leave; never a role, and nothing from a
record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from release_pipeline.flow.codebooks.common import Study
from release_pipeline.policy.about import LICENCES
from release_pipeline.policy.kinds.labels import LONGEST_LABEL, LONGEST_WORDS
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


def propose(column: SurveyColumn, *, has_others: bool = False) -> Iterator[str]:
    """The lines of comment, each without its #. `has_others`: the file has numbers in the column that have no label, so that
    those with one are not all of its values."""
    if column.label.strip():
        yield f"label: {_scalar(column.label)}"
    for name, words, longest in (
        ("unit", column.unit, LONGEST_LABEL),
        ("description", column.description, LONGEST_WORDS),
        ("question", column.question, LONGEST_WORDS),
    ):
        yield from _pair(name, words, longest)
    values = [(code, label) for code, label in column.labels if not _is_missing(code, column)]
    codes = [(code, label) for code, label in column.labels if _is_missing(code, column)]
    if values and has_others and len(column.labels) <= MOST_CODES:
        values, codes = [], list(column.labels)
        yield "there are numbers without a label too; if those with one stand for no answer, and are no ends of a scale:"
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


def propose_about(study: Study) -> dict[str, list[str]]:
    """Of each part of `about` that is spoken of, the lines of comment."""
    licence, address = study.licence
    found = {
        "title": _pair("title", study.title),
        "description": _pair("description", study.description, LONGEST_WORDS),
        "licence": _propose_licence(licence, address),
        "publisher": [f"publisher: {_fields(name=study.publisher[0], url=study.publisher[1])}"] if study.publisher[0] else [],
        "contact": [f"contact: {_fields(name=study.contact[0], email=study.contact[1], url=study.contact[2])}"]
        if any(study.contact[1:])
        else [],
        "contributors": ["contributors:", *(f"  - {_fields(name=name, role=role)}" for name, role in study.contributors)]
        if study.contributors
        else [],
        "coverage": _propose_coverage(study),
        "sampling": _pair("sampling", study.sampling, LONGEST_WORDS),
        "keywords": [f"keywords: [{', '.join(_scalar(word) for word in study.keywords)}]"] if study.keywords else [],
        "citation": _pair("citation", study.citation, LONGEST_WORDS),
    }
    return {part: lines for part, lines in found.items() if lines}


def _pair(name: str, words: str, longest: int = LONGEST_LABEL) -> list[str]:
    return [f"{name}: {_scalar(words, longest)}"] if words.strip() else []


def _propose_licence(name: str, address: str) -> list[str]:
    """By its identifier where it has one that is known; of terms without an address no policy can be made."""
    known = [
        key
        for key, (title, place) in LICENCES.items()
        if name.casefold() in (key.casefold(), title.casefold()) or address == place
    ]
    if known:
        return [f"licence: {known[0]}"]
    if not name.strip():
        return []
    return [f"licence: {_fields(name=name, url=address)}"] if address.strip() else [f"terms, says the codebook: {_tidy(name)}"]


def _propose_coverage(study: Study) -> list[str]:
    parts = [f"places: [{', '.join(_scalar(place) for place in study.places)}]"] if study.places else []
    parts += [f"first: {_scalar(study.first)}, last: {_scalar(study.last)}"] if study.first and study.last else []
    return [f"coverage: {{{', '.join(parts)}}}"] if parts else []


def _fields(**parts: str) -> str:
    return f"{{{', '.join(f'{name}: {_scalar(words)}' for name, words in parts.items() if words.strip())}}}"


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
