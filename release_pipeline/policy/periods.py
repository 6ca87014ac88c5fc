"""Releases by period: the names of days, weeks, months, quarters and years, in UTC, as the release column has them."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args

from release_pipeline.errors import InvalidArgument

Every: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
EXAMPLE: dict[str, str] = {"day": "2026-03-31", "week": "2026-W09", "month": "2026-03", "quarter": "2026-Q1", "year": "2026"}
PATTERN: dict[str, str] = {
    "day": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "week": r"[0-9]{4}-W[0-9]{2}",
    "month": r"[0-9]{4}-[0-9]{2}",
    "quarter": r"[0-9]{4}-Q[1-4]",
    "year": r"[0-9]{4}",
}
KINDS: tuple[str, ...] = get_args(Every)


def name_period(every: Every, moment: datetime) -> str:
    """The period that `moment` lies in."""
    day = moment.astimezone(UTC)
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if every == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return day.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[every]).zfill(len(EXAMPLE[every]))


def begin_of(every: Every, name: str) -> datetime:
    """When the period begins. Raises `InvalidArgument` for a text that names none."""
    if re.fullmatch(PATTERN[every], name) is None:
        raise InvalidArgument(f"'{name}' is not the name of a {every}, like {EXAMPLE[every]}.")
    try:
        if every == "week":
            return datetime.fromisocalendar(int(name[:4]), int(name[6:]), 1).replace(tzinfo=UTC)
        if every == "quarter":
            return datetime(int(name[:4]), 3 * int(name[6:]) - 2, 1, tzinfo=UTC)
        return datetime.fromisoformat({"day": name, "month": f"{name}-01", "year": f"{name}-01-01"}[every]).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument(f"'{name}' is not a {every} that there is.") from None


def end_of(every: Every, name: str) -> datetime:
    """When the period has ended: the first moment after it."""
    begin = begin_of(every, name)
    if begin.year == MAXYEAR:
        raise InvalidArgument(f"'{name}' is too late for a {every}.")
    if every in ("day", "week"):
        return begin + timedelta(days=1 if every == "day" else 7)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    year, month = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    return begin.replace(year=year, month=month + 1)


def next_period(every: Every, name: str) -> str:
    """The period after `name`."""
    return name_period(every, end_of(every, name))
