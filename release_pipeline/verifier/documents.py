"""Reads JSON that somebody else wrote."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

UTC = timezone.utc  # noqa: UP017  Python 3.9 has no datetime.UTC
Json: TypeAlias = "float | str | list[Json] | Mapping[str, Json] | None"
HEX, NAME = re.compile(r"[0-9a-f]{64}"), re.compile(r"[a-z][a-z0-9-]{0,62}")
RELEASE = re.compile(r"[a-z][a-z0-9-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}/r[1-9][0-9]{0,8}")
MOST_JSON = 4 * 2**20  # of one text; parsed it may take thirty times as much memory
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,15}(Z|[+-][0-9]{2}:[0-9]{2})")


def read_json(text: str | bytes) -> Any:
    """Return the value; raises `Fault` unless it is UTF-8 and plain JSON, not too long, every key in it once, every number
    finite."""
    try:
        if len(text) > MOST_JSON:
            raise ValueError
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise Fault("it is not valid JSON (or too long, or has a key twice, or a number that is none)") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError
    return found


def _integer(text: str) -> int:
    if len(text) > 40:
        raise ValueError
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def canonical_json(content: Any) -> str:
    """Return the one text of `content` that is hashed and signed."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise Fault("it has no canonical JSON") from None


def get(content: Json, name: str, wanted: type | re.Pattern[str]) -> Any:
    """Return the value of `content` under the name, of this type, or a text of this pattern; raises `Fault` for any other."""
    value = find_member(content, name)
    right = isinstance(value, wanted) if isinstance(wanted, type) else isinstance(value, str) and wanted.fullmatch(value)
    if not right or isinstance(value, bool):
        raise Fault(f"'{name}' is missing or is not what it must be")
    return value


def find_member(content: Json, name: str) -> Json:
    """Return the value of `content` under the name, of any type; None where there is none, or `content` has no names."""
    return content.get(name) if isinstance(content, dict) else None


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Fault(Exception):
    """Something is not as it must be; `what` describes it."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


def printable(words: str) -> str:
    """Return the words in one line that cannot play tricks on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words[:2000])


class WrongUsage(ValueError):
    """The given path or fingerprint cannot be right; `what` says why."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


def read_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        raise Fault("there is a moment that is none") from None
