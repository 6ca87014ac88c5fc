"""What `--json` prints: a document is a dataclass whose fields are its keys, each described where it stands.

`schemas` makes the JSON Schemas from these descriptions, and `docs/make_json.py` docs/json.md, so that what is printed, promised
and explained is one thing. A description may begin with the shape of the text, like `Hash`. Within a version of a format keys are
added, and none is removed, renamed or given another meaning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, cast

from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.model import Policy
from release_pipeline.privacy.budget import format_nano

Hash: TypeAlias = Annotated[str, "pattern:^[0-9a-f]{64}$"]
Moment: TypeAlias = Annotated[str, "format:date-time"]  # RFC 3339
Exactly: TypeAlias = Annotated[str, "pattern:^[0-9]+(\\.[0-9]{1,9})?$"]  # an epsilon: whole billionths, written out
Delta: TypeAlias = Annotated[str, "pattern:^0\\.[0-9]{1,30}$"]
Amount: TypeAlias = Annotated[str, "pattern:^([0-9]+(\\.[0-9]{1,9})?|infinity)$"]

OPTIONAL: Mapping[str, bool] = {"optional": True}  # of a field that is left out where there is nothing to say


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a file that a person wrote."""

    file: Annotated[str, "as it was named"]
    line: Annotated[int | None, "counted from 1; null where the fault is of the whole file"]
    column: Annotated[int | None, "in the line, counted from 1; null likewise"]
    option: Annotated[str, "which key, like protect.epsilon; empty for the file itself"]
    what: Annotated[str, "what is wrong"]
    remedy: Annotated[str, "what to do; empty where that is plain"]

    def __str__(self) -> str:
        """The fault in one line, as people read it."""
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {f'{self.option}: ' * bool(self.option)}{self.what}{f' {self.remedy}' * bool(self.remedy)}"


@dataclasses.dataclass(frozen=True, slots=True)
class EpsilonView:
    """What one release costs a person, exactly."""

    total: Annotated[Exactly, "in all, for one person"]
    columns: Annotated[dict[str, Exactly], "for each masked column, for one record"]
    records_per_person: Annotated[
        int, "how many records one person may have: columns and tables together, times this, are the total"
    ]
    delta: Annotated[Delta | None, "under zcdp, the delta at which all of these hold; they do not add up then, and rho does"] = (
        dataclasses.field(default=None, metadata=OPTIONAL)
    )
    rho: Annotated[Exactly | None, "under zcdp, what the release costs in all, for one person"] = dataclasses.field(
        default=None, metadata=OPTIONAL
    )
    tables: Annotated[
        dict[str, Exactly] | None, "for each table beside the rows, for one record; under zcdp what it is in rho"
    ] = dataclasses.field(default=None, metadata=OPTIONAL)


def view_epsilon(policy: Policy) -> EpsilonView | None:
    """The epsilon of a release of the policy; None for a method without."""
    if policy.epsilon is None:
        return None
    columns = {name: format_nano(policy.in_epsilon(part.nano)) for name, part in policy.column_epsilon.items()}
    total = format_nano(policy.in_epsilon(policy.epsilon))
    shares = {name: table.in_rho(1) if policy.protect.by_rho else table.share.nano for name, table in policy.tables.items()}
    tables = {name: format_nano(share) for name, share in shares.items()} or None
    if policy.delta is None:
        return EpsilonView(total, columns, policy.records_per_person, tables=tables)
    rho, delta = format_nano(policy.epsilon), decimal_text(policy.delta)
    return EpsilonView(total, columns, policy.records_per_person, delta=delta, rho=rho, tables=tables)


def to_json(view: Any) -> dict[str, Any]:
    """The document as a script reads it; its format first, if it has one of its own."""
    form = getattr(view, "FORMAT", None)
    document: dict[str, Any] = {} if form is None else {"format": form}
    for field in dataclasses.fields(view):
        value = getattr(view, field.name)
        if value is None and field.metadata.get("optional"):
            continue
        document[field.name.rstrip("_")] = _plain(value)  # `in_` is the key `in`
    return document


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(cast(Any, value))
    if isinstance(value, tuple) and hasattr(cast(Any, value), "_asdict"):
        value = cast(Any, value)._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in cast(list[Any], value)]
    return value
