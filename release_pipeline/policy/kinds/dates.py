"""Masked columns of dates and times. A steward writes `domain: [1990-01-01, 2025-12-31], grid: 1 day`; within a policy these are
whole numbers of units from the first moment of the domain on (`privacy.dates`), and `dated` says which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, cast

from pydantic import AfterValidator, StrictStr

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.text import Path, Problem
from release_pipeline.privacy.dates import Clock, Unit, looks_like_moment, read_moment, read_span, write_span

MADE = "dated"  # the option that no steward writes
_SPANS = "Write the step as an amount of time: 1 day, 12 hours, 15 minutes or 1 second."


def _is_moment(text: str) -> str:
    try:
        read_moment(text)
    except InvalidArgument as error:
        raise ValueError(error.what) from None
    return text


class Dated(Frozen):
    """What 0 is in a column of moments, and what a unit is."""

    first: Annotated[StrictStr, AfterValidator(_is_moment)]
    unit: Unit

    @property
    def clock(self) -> Clock:
        """The rule by which numbers are moments."""
        return _read_clock(self.first, self.unit)


@lru_cache(maxsize=1024)
def _read_clock(first: str, unit: Unit) -> Clock:
    return Clock.read(first, unit)


def is_dated(column: Mapping[str, Any]) -> bool:
    """Whether a masked column was meant as one of dates, by what a steward wrote."""
    domain = column.get("domain")
    ends = cast(list[Any], domain) if isinstance(domain, list) else []
    is_meant = MADE in column or read_span(column.get("grid")) is not None or any(map(looks_like_moment, ends))
    return column.get("do") in ("noise", "synthesise") and is_meant


def count_units(column: Mapping[str, Any], here: Path, problems: list[Problem]) -> dict[str, Any] | None:
    """A masked column of dates as one of numbers; None where it cannot be, and why among the problems."""
    found = list(_find_faults(column, here))
    if found:
        problems += found
        return None
    (low, high), span = column["domain"], read_span(column["grid"])
    assert span is not None  # noqa: S101  for the type checker
    number, unit = span
    counted, at = {**column, "grid": number}, (*here, "domain")
    try:
        clock = Clock.read(low, unit)
        counted["domain"] = [0, clock.find(high)]
        counted[MADE] = {"first": clock.show(0), "unit": unit}
        at = (*here, "atoms")
        if "atoms" in column:
            counted["atoms"] = _count(column["atoms"], clock)
        at = (*here, "missing")
        if isinstance(column.get("missing"), dict) and "fill" in column["missing"]:
            counted["missing"] = {**column["missing"], "fill": _count(column["missing"]["fill"], clock)}
    except InvalidArgument as error:
        problems.append((at, error.what, error.remedy))
        return None
    return counted


def count_targets(raw: dict[str, Any], clocks: Mapping[str, Clock], problems: list[Problem]) -> dict[str, Any]:
    """The policy with what models are to predict of columns of dates as numbers."""
    audit = cast(dict[str, Any], raw["audit"]) if isinstance(raw.get("audit"), dict) else {}
    predict = audit.get("predict")
    if not isinstance(predict, dict) or not clocks.keys() & predict.keys():
        return raw
    made = dict(cast(dict[str, Any], predict))
    for name in clocks.keys() & made.keys():
        target = made[name]
        if isinstance(target, dict) and "above" in target:
            try:
                made[name] = {**cast(dict[str, Any], target), "above": _count(target["above"], clocks[name])}
            except InvalidArgument as error:
                problems.append((("audit", "predict", name, "above"), error.what, error.remedy))
                made[name] = {**cast(dict[str, Any], target), "above": 0}
    return {**raw, "audit": {**audit, "predict": made}}


def write_dates(form: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical form of a policy with its dates as they are written, to be told in words."""
    columns, audit = dict(cast(Mapping[str, Any], form["columns"])), cast(dict[str, Any], form.get("audit") or {})
    predict = dict(cast(Mapping[str, Any], audit.get("predict") or {}))
    for name, column in columns.items():
        if MADE not in column:
            continue
        clock = Dated.model_validate(column[MADE]).clock
        written = {key: part for key, part in column.items() if key != MADE}
        written["grid"] = write_span(int(Decimal(column["grid"])), clock.unit)
        for option in ("domain", "atoms"):
            if written.get(option) is not None:
                written[option] = _show(written[option], clock)
        if isinstance(written.get("missing"), dict):
            written["missing"] = {"fill": _show(written["missing"]["fill"], clock)}
        columns[name] = written
        if name in predict and predict[name].get("above") is not None:
            predict[name] = {**predict[name], "above": _show(predict[name]["above"], clock)}
    return {**form, "columns": columns, **({"audit": {**audit, "predict": predict}} if predict else {})}


def _show(value: Any, clock: Clock) -> Any:
    """A number as its date, or each of a list."""
    if isinstance(value, list):
        return [_show(one, clock) for one in cast(list[Any], value)]
    return clock.show(float(value))


def _find_faults(column: Mapping[str, Any], here: Path) -> Iterator[Problem]:
    """What is wrong before anything can be counted."""
    if MADE in column:
        yield (*here, MADE), f"'{MADE}' is not known here.", "Declare domain and grid alone."
    domain = column.get("domain")
    ends = cast(list[Any], domain) if isinstance(domain, list) else []
    if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        what = "the grid is an amount of time, and the domain is no pair of dates."
        yield (*here, "domain"), what, "Declare [first, last], like [1990-01-01, 2025-12-31]."
    if "grid" not in column:
        yield here, "'grid' is missing.", _SPANS
    elif read_span(column["grid"]) is None:
        yield (*here, "grid"), "the domain has dates, and the grid is no amount of time.", _SPANS


def _count(value: Any, clock: Clock) -> Any:
    """A date as its number, or each of a list."""
    if isinstance(value, list):
        return [_count(one, clock) for one in cast(list[Any], value)]
    return clock.find(value if isinstance(value, str) else "")
