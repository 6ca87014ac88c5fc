"""Settings that were tried, in words: their claims, what the ledger says, what a reader is left with, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from release_pipeline.privacy.dates import Clock
from release_pipeline.privacy.figures import count_of, format_number, format_share
from release_pipeline.report.charts.drawing import Picture
from release_pipeline.report.charts.explored import Drawn, add_release, height_of
from release_pipeline.report.charts.frontier import Point
from release_pipeline.report.escaping import format_name
from release_pipeline.report.exploring.ledger import is_refused, round_amounts, tell_ledger, tell_ledger_shortly
from release_pipeline.report.exploring.measures import Plain, Write, write_range
from release_pipeline.report.prose import is_number
from release_pipeline.report.values import format_value
from release_pipeline.sentences import EXPLORE

_MOST_GROUPS, _FEW_GROUPS, _MANY = 6, 2, 300  # of a column; fewer where there are more than so many columns of settings
_LONGEST = 60  # characters of a group's label


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a column."""

    what: str
    original: str
    released: str


@dataclass(frozen=True, slots=True)
class ColumnTold:
    """A column under a setting. `place`: among all; `picture`: where it is drawn without the script."""

    place: int
    name: str
    error: str
    ks: str
    means: tuple[str, str]
    epsilon: str
    rows: tuple[Row, ...]
    further: int
    picture: Picture | None


@dataclass(frozen=True, slots=True)
class Told:
    """A setting in words. `sorting`: what its row is sorted by, empty where there is nothing. `is_refused`: by the ledger;
    `is_over_gate`: by the gate on linkage."""

    number: int
    words: str
    style: int
    kind: str
    epsilon: str
    claim: str
    not_covered: tuple[str, ...]
    covers_table: bool
    changes: tuple[str, ...]
    block: str
    cells: tuple[str, ...]
    sorting: tuple[str, ...]
    ledger: tuple[str, ...]
    left: tuple[str, ...]
    columns: tuple[ColumnTold, ...]
    is_own: bool
    is_best: bool
    is_chosen: bool
    is_refused: bool
    is_over_gate: bool


def tell_setting(setting: Plain, point: Point, document: Plain, drawn: Sequence[Drawn | None] | None, *, is_best: bool) -> Told:
    """A setting in words; `drawn`: the pictures of its columns, where its releases are drawn too."""
    epsilon = _describe_epsilon(setting)
    short, key = tell_ledger_shortly(setting["ledger"])
    cells = (
        write_range(setting["error"]),
        format_number(setting["mean_error"]) if is_number(setting["mean_error"]) else "",
        write_range(setting["correlation"]) if is_number(setting["correlation"]["middle"]) else "",
        format_share(setting["linkage"]) if is_number(setting["linkage"]) else "",
        short,
    )
    sorted_by = (setting["error"]["middle"], setting["mean_error"], setting["correlation"]["middle"], setting["linkage"], key)
    few = len(document["columns"]) * len(document["settings"]) > _MANY
    columns = [
        _tell_column(
            i,
            column,
            setting["columns"][column["name"]],
            None if drawn is None else drawn[i],
            _FEW_GROUPS if few else _MOST_GROUPS,
        )
        for i, column in enumerate(document["columns"])
        if column["name"] in setting["columns"]
    ]
    return Told(
        number=setting["number"],
        words=setting["words"],
        style=point.style,
        kind=point.kind,
        epsilon=epsilon,
        claim=round_amounts(setting["claim"]),
        not_covered=tuple(setting["not_covered"]),
        covers_table=setting["covers_table"],
        changes=tuple(setting["changes"]),
        block=setting["block"],
        cells=cells,
        sorting=tuple(f"{value:.6g}" if is_number(value) else "" for value in (point.epsilon, *sorted_by)),
        ledger=tuple(tell_ledger(setting["ledger"])),
        left=tuple(_tell_left(setting)),
        columns=tuple(columns),
        is_own=setting["number"] == 1,
        is_best=is_best,
        is_chosen=setting["number"] == document.get("chosen"),
        is_refused=is_refused(setting["ledger"]),
        is_over_gate=setting.get("linkage_limit") is not None,
    )


def _describe_epsilon(setting: Plain) -> str:
    if setting["epsilon"] is None:
        return EXPLORE("claim.none")
    if setting["delta"] is None:
        return str(setting["epsilon"])
    return EXPLORE("claim.at_delta", epsilon=round_amounts(setting["epsilon"]), delta=setting["delta"])


def _tell_column(place: int, column: Plain, figures: Plain, drawn: Drawn | None, most: int) -> ColumnTold:
    """A column: its mean, quantiles, shares, and the groups whose means are furthest from what they were."""
    write = partial(format_value, clock=clock_of(column))
    rows = [_tell_share(EXPLORE("column.quantile", at=one["at"]), one, write) for one in figures["quantiles"]]
    rows += [_tell_share(EXPLORE("column.share", at=one["at"]), one, format_share) for one in figures["shares"]]
    groups = sorted(figures["groups"], key=_measure_gap, reverse=True)
    rows += [
        _tell_share(EXPLORE("column.groups_of", by=format_name(one["by"]), label=_shorten(one["label"])), one, write)
        for one in groups[:most]
    ]
    heights = list_heights(figures)
    mean = _tell_share("", figures["mean"], write)
    return ColumnTold(
        place=place,
        name=column["name"],
        error=write_range(figures["error"]),
        ks=write_range(figures["ks"]),
        means=(mean.original, mean.released),
        epsilon=round_amounts(figures.get("epsilon") or ""),
        rows=tuple(rows),
        further=max(len(groups) - most, 0),
        picture=add_release(drawn, heights) if drawn is not None and len(heights) == len(drawn.across) else None,
    )


def list_heights(figures: Plain) -> list[int]:
    """Where the curve of a release is at each place; nothing where it is not known."""
    curve: Sequence[float] = figures["curve"]
    return [height_of(share) for share in curve] if all(map(is_number, curve)) else []


def clock_of(column: Plain) -> Clock | None:
    """By which its values are dates; None where they are numbers."""
    first = column.get("first")
    return None if first is None else Clock.read(first, column["unit"])


def _tell_share(what: str, one: Plain, write: Write) -> Row:
    return Row(what, write(one["original"]), write_range(one["released"], write))


def _measure_gap(group: Plain) -> float:
    before, after = group["original"], group["released"]["middle"]
    return abs(after - before) if is_number(before) and is_number(after) else -1.0


def _shorten(label: str) -> str:
    shown = format_name(label)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _tell_left(setting: Plain) -> list[str]:
    """What a reader is left with, a sentence for each figure that there is."""
    error, mean, most = setting["error"], setting["correlation"], setting["worst_correlation"]
    told = [EXPLORE("left.error", error=write_range(error))]
    if len(setting["columns"]) > 1 and is_number(setting["mean_error"]):
        told.append(EXPLORE("left.mean_error", error=format_number(setting["mean_error"])))
    if is_number(mean["middle"]):
        told.append(EXPLORE("left.correlation", mean=write_range(mean), most=write_range(most)))
    if is_number(setting["suppressed"]) and setting["suppressed"] > 0:
        told.append(EXPLORE("left.suppressed", share=format_share(setting["suppressed"])))
    if is_number(setting["linkage"]):
        most, limit = setting.get("linked_at_most"), setting.get("linkage_limit")
        ladder, is_swapped = setting["linkage_ladder"], most is not None
        told += [_tell_rung(rung, is_top=rung is ladder[-1], is_swapped=is_swapped) for rung in ladder]
        if limit is not None:
            told.append(EXPLORE("left.linkage_refused", limit=format_share(limit)))
        if is_swapped:
            told.append(EXPLORE("left.linkage_swapped", most=format_share(most)))
        if proposal := setting.get("proposal"):
            told.append(EXPLORE("left.linkage_proposed", proposal=proposal))
    else:
        told.append(EXPLORE("left.no_linkage"))
    for name, value in setting["attacks"].items():
        gained = format_share(max(value, 0.0) if is_number(value) else None)
        if name == "linking":
            told.append(EXPLORE("left.attack_linking", share=gained))
        elif name == "inferring":
            told.append(EXPLORE("left.attack_inferring", share=gained))
        else:
            told.append(EXPLORE("left.attack", name=name, share=gained))
    for model in setting["models"]:
        original, released = format_number(model["original"]), format_number(model["released"])
        told.append(EXPLORE("left.model", target=model["target"], original=original, released=released))
    told.append(EXPLORE("left.draws", releases=count_of(setting["draws"], "simulated release")))
    return told


def _tell_rung(rung: Plain, *, is_top: bool, is_swapped: bool) -> str:
    """What somebody finds who knows so much of everybody."""
    share, control, columns = format_share(rung["linked"]), format_share(rung["control"]), ", ".join(rung["columns"])
    if is_top and is_swapped:
        return EXPLORE("left.linkage_of_swapped", share=share, control=control)
    if is_top:
        return EXPLORE("left.linkage", share=share, control=control)
    if not rung["masked"]:
        return EXPLORE("left.linkage_kept", share=share)
    masked = EXPLORE("left.linkage_masked_swapped") if is_swapped else EXPLORE("left.linkage_masked")
    names, median = format_name(columns), format_share(rung["median"])
    if rung["masked"] == 1:
        return EXPLORE("left.linkage_one", share=share, columns=names, median=median, masked=masked)
    return EXPLORE("left.linkage_two", share=share, columns=names, median=median, masked=masked)


def tell_solved(one: Plain) -> tuple[str, ...]:
    """What the targets need with one method: setting, epsilon, shares, what is reached, and why not."""
    weights = ", ".join(EXPLORE("solved.weight", column=name, weight=weight) for name, weight in one["weights"].items())
    reached = "; ".join(
        EXPLORE("solved.reached", target=name, value=format_number(value)) for name, value in one["reached"].items()
    )
    return one["words"], one["epsilon"] or EXPLORE("solved.none"), weights, reached, one["block"]
