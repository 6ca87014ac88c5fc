"""The page of `explore`: many settings of a policy, tried before anything is spent, a pure function of the document that
`explore --json` prints.

Everything can be read without a script. With the page's own one, which needs no network, a reader chooses another measure, picks
a mark, sorts and copies; it knows no axis and writes no figure, for all that it may show is laid out and written here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any

from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.strength import Strength, find_best
from release_pipeline.privacy.dates import Clock
from release_pipeline.privacy.figures import MISSING, count_of, format_number, format_share
from release_pipeline.report.charts.drawing import Picture
from release_pipeline.report.charts.explored import Drawn, add_release, draw_column, height_of
from release_pipeline.report.charts.frontier import (
    COLOURS,
    LAYOUTS,
    Frame,
    Measured,
    Point,
    Scene,
    draw_measure,
    lay_out,
    list_styles,
    shorten_names,
    sign_of,
)
from release_pipeline.report.escaping import Ready, format_name, format_text, load_templates
from release_pipeline.report.prose import is_number
from release_pipeline.report.values import format_value
from release_pipeline.sentences import EXPLORE

MOST_DRAWN, _MOST_PICTURES = 8, 50  # settings whose distributions are drawn without the script, and the pictures of that
_MOST_GROUPS, _FEW_GROUPS, _MANY = 6, 2, 300  # of a column; fewer where there are more than so many columns of settings
_LONGEST = 60  # characters of a group's label
_AMOUNT_DIGITS, _LONG_AMOUNT = 4, re.compile(r"(?<![\d.])\d+\.\d{7,}(?!\d)")  # of rho, and of the epsilon that it is

Plain = Mapping[str, Any]  # of a document, as a script reads it
Write = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Measure:
    """What may be shown upwards: its figures by setting, and these in words."""

    title: str
    unit: str
    figures: tuple[Measured, ...]
    words: tuple[str, ...]
    errors: bool = False


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
    """A setting in words. `sorting`: what its row is sorted by, empty where there is nothing."""

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


@dataclass(frozen=True, slots=True)
class Chart:
    """A layout of the frontier, with the measure that stands there at first. `has_one`: whether an error of 1 is ever drawn."""

    frame: Frame
    scene: Scene
    names: tuple[str, ...]
    has_one: bool


def render_exploration(document: Plain) -> str:
    """The page: it needs nothing else and no network. `document`: what `explore --json` prints. The same document gives the same
    text."""
    settings: Sequence[Plain] = document["settings"]
    styles = list_styles([setting["method"] for setting in settings])
    points = [_place(setting, styles) for setting in settings]
    measures = _list_measures(document)
    claims, epsilons = [one.claim for one in points], [one.epsilon for one in points]
    best = find_best(claims, epsilons, [one.middle for one in measures[0].figures]) if measures else []
    drawn = [_draw(column, document["on"]) for column in document["columns"]]
    most = max(1, min(MOST_DRAWN, _MOST_PICTURES // max(len(drawn), 1)))
    shown = _list_drawn(points, best, document.get("chosen"), most)
    told = [
        _tell(setting, point, document, drawn if setting["number"] in shown else None, is_best=is_best)
        for setting, point, is_best in zip(settings, points, best, strict=True)
    ]
    frames = [lay_out(points, layout) for layout in LAYOUTS] if points else []
    scenes = [[draw_measure(points, one.figures, frame, errors=one.errors) for frame in frames] for one in measures]
    missing = [_tell_missing(document, one) for one in measures]
    data = _dump(document, measures, missing, scenes, drawn)
    template = load_templates("html")
    script = template.get_template("explore.js").render()
    nonce = _make_nonce(data, script)
    context: dict[str, Any] = {
        "document": document,
        "told": told,
        "measures": measures,
        "charts": [
            Chart(frame, scenes[0][i], tuple(shorten_names(frame)), any(found[i].one is not None for found in scenes))
            for i, frame in enumerate(frames)
        ],
        "methods": [(method, style, _name_kinds(settings, method)) for method, style in styles.items()],
        "sign": sign_of,
        "colours": COLOURS,
        "drawn": drawn,
        "order": sorted(range(len(told)), key=lambda i: (told[i].is_own, told[i].is_best, -i)),
        "original": EXPLORE.read_section("tried")[document["on"]],
        "heads": _list_heads(document["on"]),
        "counted": count_of,
        "share": format_share,
        "figure": format_number,
        "solved": [_tell_solved(one) for one in document.get("solved", ())],
        "has_own": any(one.is_own for one in told),
        "picture_of": add_release,
        "data": Ready(data),
        "script": Ready(script),
        "nonce": nonce,
        "allowed": Ready(f"; script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"),
        "missing": missing,
    }
    return template.get_template("explore.html").render(context)


def _make_nonce(*texts: str) -> str:
    """A word that the page's own script has and nothing else on it can: who writes a label does not know the page that it will be
    in, and changes the word with every letter."""
    return base64.b64encode(hashlib.sha256("\0".join(texts).encode()).digest()[:18]).decode()


def _place(setting: Plain, styles: Mapping[str, int]) -> Point:
    """A setting in the chart: what it is called without its epsilon tells which others it is joined with."""
    method = setting["method"]
    epsilon = None if setting["epsilon"] is None else float(setting["epsilon"])
    parts = [part for part in format_text(setting["words"]).split(", ") if not part.startswith("epsilon ")]
    rest = ", ".join(part for part in parts if part != method)
    claim = Strength(setting["definition"], setting["scope"], setting["covers_table"], setting["k"])
    return Point(setting["number"], styles[method], ", ".join(parts), rest or method, _describe_kind(setting), epsilon, claim)


def _describe_kind(setting: Plain) -> str:
    definition = EXPLORE.read_section("definition")[setting["definition"]]
    return EXPLORE("claim.kind", definition=definition, scope=EXPLORE.read_section("scope")[setting["scope"]])


def _name_kinds(settings: Sequence[Plain], method: str) -> str:
    """What a method's settings claim."""
    return "; ".join(dict.fromkeys(_describe_kind(setting) for setting in settings if setting["method"] == method))


def _list_measures(document: Plain) -> list[Measure]:
    """What can be shown upwards; what no setting has is no measure."""
    settings: Sequence[Plain] = document["settings"]
    error, off, linked = EXPLORE("measure.unit_error"), EXPLORE("measure.unit_correlation"), EXPLORE("measure.unit_linkage")

    def measure(title: str, unit: str, figures: Sequence[Any], write: Write = format_number) -> Measure:
        found = [_measured(figure) for figure in figures]
        words = tuple(_format_range(one, write) for one in found)
        return Measure(title, unit, tuple(found), words, errors=unit == error)

    measures = [
        measure(EXPLORE("measure.error"), error, [one["error"] for one in settings]),
        measure(EXPLORE("measure.mean_error"), error, [one["mean_error"] for one in settings]),
    ]
    for column in document["columns"]:
        name = column["name"]
        figures = [one["columns"][name]["error"] if name in one["columns"] else None for one in settings]
        measures.append(measure(EXPLORE("measure.column", column=format_name(name)), error, figures))
    measures += [
        measure(EXPLORE("measure.correlation"), off, [one["correlation"] for one in settings]),
        measure(EXPLORE("measure.worst_correlation"), off, [one["worst_correlation"] for one in settings]),
        measure(EXPLORE("measure.linkage"), linked, [one["linkage"] for one in settings], format_share),
    ]
    return [one for number, one in enumerate(measures) if not number or any(is_number(each.middle) for each in one.figures)]


def _tell_missing(document: Plain, measure: Measure) -> str:
    """Which settings have no mark; empty where all have one."""
    pairs = zip(document["settings"], measure.figures, strict=True)
    lacking = [str(setting["number"]) for setting, figure in pairs if not is_number(figure.middle)]
    return EXPLORE("page.missing", settings=", ".join(lacking)) if lacking else ""


def _measured(figure: Any) -> Measured:
    """A range, or a figure without one."""
    if not isinstance(figure, Mapping):
        return Measured(figure, figure, figure)
    found: Plain = figure  # pyright: ignore[reportUnknownVariableType]
    return Measured(found["low"], found["middle"], found["high"])


def _format_range(one: Measured, write: Write) -> str:
    """A figure, and where 99 of 100 releases have it."""
    middle, low, high = write(one.middle), write(one.low), write(one.high)
    if is_number(one.middle) and one.low is None and one.high is None:
        return EXPLORE("range.few", middle=middle)
    if MISSING in (middle, low, high) or low == high:
        return middle
    return EXPLORE("range.is", middle=middle, low=low, high=high)


def _write_range(found: Any, write: Write = format_number) -> str:
    return _format_range(_measured(found), write)


def _draw(column: Plain, on: str) -> Drawn | None:
    return draw_column(column["name"], column["places"], column["curve"], EXPLORE.read_section("tried")[on], _clock_of(column))


def _clock_of(column: Plain) -> Clock | None:
    """By which its values are dates; None where they are numbers."""
    first = column.get("first")
    return None if first is None else Clock.read(first, column["unit"])


def _list_drawn(points: Sequence[Point], best: Sequence[bool], chosen: int | None, most: int) -> set[int]:
    """The settings whose distributions are drawn without the script: the chosen one, the policy's own, and of the best as many as
    there is room for, taken evenly from all so that each part of the frontier is there."""
    first: list[int] = [point.number for point in points if point.number in (1, chosen)]
    ranked = sorted(
        (point for point, is_best in zip(points, best, strict=True) if is_best and point.number not in first),
        key=lambda point: (point.kind, point.epsilon is None, point.epsilon or 0.0),
    )
    room = max(most - len(first), 0)
    every = max(len(ranked) / max(room, 1), 1.0)
    return {*first, *(ranked[int(i * every)].number for i in range(room) if int(i * every) < len(ranked))}


def _tell(setting: Plain, point: Point, document: Plain, drawn: Sequence[Drawn | None] | None, *, is_best: bool) -> Told:
    """A setting in words; `drawn`: the pictures of its columns, where its releases are drawn too."""
    epsilon = _describe_epsilon(setting)
    short, key = _tell_ledger_shortly(setting["ledger"])
    cells = (
        _write_range(setting["error"]),
        format_number(setting["mean_error"]) if is_number(setting["mean_error"]) else "",
        _write_range(setting["correlation"]) if is_number(setting["correlation"]["middle"]) else "",
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
        ledger=tuple(_tell_ledger(setting["ledger"])),
        left=tuple(_tell_left(setting)),
        columns=tuple(columns),
        is_own=setting["number"] == 1,
        is_best=is_best,
        is_chosen=setting["number"] == document.get("chosen"),
        is_refused=_is_refused(setting["ledger"]),
    )


def _describe_epsilon(setting: Plain) -> str:
    if setting["epsilon"] is None:
        return EXPLORE("claim.none")
    if setting["delta"] is None:
        return str(setting["epsilon"])
    return EXPLORE("claim.at_delta", epsilon=round_amounts(setting["epsilon"]), delta=setting["delta"])


def round_amounts(text: str, *, up: bool = True) -> str:
    """A text whose amounts of seven decimals and more have four significant digits. A rho is that of a declared epsilon, rounded
    down, so that both have as many as the ledger counts; rounded up they are true still, and what is left is rounded down.

    >>> round_amounts("rho 0.184912345, which is epsilon 2.999999995 at delta 0.000001")
    'rho 0.185, which is epsilon 3 at delta 0.000001'
    >>> round_amounts("0.184912345", up=False)
    '0.1849'
    """

    def rounded(found: re.Match[str]) -> str:
        value = Decimal(found[0])
        unit = Decimal(1).scaleb(value.adjusted() - _AMOUNT_DIGITS + 1)
        return decimal_text(value.quantize(unit, rounding=ROUND_CEILING if up else ROUND_FLOOR)) if value else found[0]

    return _LONG_AMOUNT.sub(rounded, text)


def _tell_column(place: int, column: Plain, figures: Plain, drawn: Drawn | None, most: int) -> ColumnTold:
    """A column: its mean, quantiles, shares, and the groups whose means are furthest from what they were."""
    write = partial(format_value, clock=_clock_of(column))
    rows = [_tell_share(EXPLORE("column.quantile", at=one["at"]), one, write) for one in figures["quantiles"]]
    rows += [_tell_share(EXPLORE("column.share", at=one["at"]), one, format_share) for one in figures["shares"]]
    groups = sorted(figures["groups"], key=_measure_gap, reverse=True)
    rows += [
        _tell_share(EXPLORE("column.groups_of", by=format_name(one["by"]), label=_shorten(one["label"])), one, write)
        for one in groups[:most]
    ]
    heights = _list_heights(figures)
    mean = _tell_share("", figures["mean"], write)
    return ColumnTold(
        place=place,
        name=column["name"],
        error=_write_range(figures["error"]),
        ks=_write_range(figures["ks"]),
        means=(mean.original, mean.released),
        epsilon=round_amounts(figures.get("epsilon") or ""),
        rows=tuple(rows),
        further=max(len(groups) - most, 0),
        picture=add_release(drawn, heights) if drawn is not None and len(heights) == len(drawn.across) else None,
    )


def _list_heights(figures: Plain) -> list[int]:
    """Where the curve of a release is at each place; nothing where it is not known."""
    curve: Sequence[float] = figures["curve"]
    return [height_of(share) for share in curve] if all(map(is_number, curve)) else []


def _tell_share(what: str, one: Plain, write: Write) -> Row:
    return Row(what, write(one["original"]), _write_range(one["released"], write))


def _measure_gap(group: Plain) -> float:
    before, after = group["original"], group["released"]["middle"]
    return abs(after - before) if is_number(before) and is_number(after) else -1.0


def _shorten(label: str) -> str:
    shown = format_name(label)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _tell_left(setting: Plain) -> list[str]:
    """What a reader is left with, a sentence for each figure that there is."""
    error, mean, most = setting["error"], setting["correlation"], setting["worst_correlation"]
    told = [EXPLORE("left.error", error=_write_range(error))]
    if len(setting["columns"]) > 1 and is_number(setting["mean_error"]):
        told.append(EXPLORE("left.mean_error", error=format_number(setting["mean_error"])))
    if is_number(mean["middle"]):
        told.append(EXPLORE("left.correlation", mean=_write_range(mean), most=_write_range(most)))
    if is_number(setting["suppressed"]) and setting["suppressed"] > 0:
        told.append(EXPLORE("left.suppressed", share=format_share(setting["suppressed"])))
    if is_number(setting["linkage"]):
        told.append(EXPLORE("left.linkage", share=format_share(setting["linkage"])))
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


def _is_refused(ledger: Plain | None) -> bool:
    """Whether the ledger would refuse a release."""
    return ledger is not None and (bool(ledger["needs"]) or (ledger["next"] is not None and not ledger["next"]["fits"]))


def _say_missing(ledger: Plain) -> tuple[str, str]:
    """What a release takes, and what is left, which is less."""
    return round_amounts(ledger["next"]["amount"]), round_amounts(ledger["remaining"], up=False)


def _tell_ledger(ledger: Plain | None) -> list[str]:
    """What is spent, what is spent after a release, and how many of those that are planned fit."""
    if ledger is None:
        return [EXPLORE("ledger.none")]
    spent = EXPLORE(
        "ledger.spent", population=ledger["population"], spent=ledger["spent"], cap=ledger["cap"], unit=ledger["unit"]
    )
    if ledger["rows_needed"]:
        return [spent, EXPLORE("ledger.rows")]
    first, ahead = ledger["next"], len(ledger["ahead"])
    if first is None:
        return [spent, EXPLORE("ledger.charged")]
    if first["fits"]:
        told = [spent, EXPLORE("ledger.fits", amount=round_amounts(first["amount"]), after=round_amounts(first["after"]))]
    else:
        amount, remaining = _say_missing(ledger)
        told = [spent, EXPLORE("ledger.refused", amount=amount, remaining=remaining)]
    if ledger["needs"]:
        told.append(ledger["needs"])
    elif ahead > 1 and ledger["fitting"] is not None:
        releases = count_of(ahead, "release")
        fit_all = ledger["fitting"] == ahead
        told.append(
            EXPLORE("ledger.all", ahead=releases)
            if fit_all
            else EXPLORE("ledger.some", ahead=releases, fitting=ledger["fitting"])
        )
    return told


def _tell_ledger_shortly(ledger: Plain | None) -> tuple[str, float | None]:
    """The same in a cell of the table, and what that is sorted by: how many fit."""
    if ledger is None:
        return EXPLORE("ledger.short_none"), None
    if ledger["rows_needed"]:
        return EXPLORE("ledger.short_rows"), None
    first = ledger["next"]
    if first is None:
        return EXPLORE("ledger.short_charged"), None
    if not first["fits"]:
        amount, remaining = _say_missing(ledger)
        return EXPLORE("ledger.short_refused", amount=amount, remaining=remaining), 0.0
    fitting, ahead = ledger["fitting"], len(ledger["ahead"])
    words = EXPLORE("ledger.short_fits", after=round_amounts(first["after"]), cap=ledger["cap"], fitting=fitting, ahead=ahead)
    return words, float(fitting or 0)


def _tell_solved(one: Plain) -> tuple[str, ...]:
    """What the targets need with one method: setting, epsilon, shares, what is reached, and why not."""
    weights = ", ".join(EXPLORE("solved.weight", column=name, weight=weight) for name, weight in one["weights"].items())
    reached = "; ".join(
        EXPLORE("solved.reached", target=name, value=format_number(value)) for name, value in one["reached"].items()
    )
    return one["words"], one["epsilon"] or EXPLORE("solved.none"), weights, reached, one["block"]


def _list_heads(on: str) -> dict[str, list[str]]:
    """The heads of the tables."""
    tried = EXPLORE.read_section("tried")[on]
    return {
        "settings": EXPLORE("head.settings").split(" | "),
        "columns": EXPLORE("head.columns", tried=tried).split(" | "),
        "figures": EXPLORE("head.figures", tried=tried).split(" | "),
        "solved": EXPLORE("head.solved").split(" | "),
        "refused": EXPLORE("head.refused").split(" | "),
    }


def _dump(
    document: Plain,
    measures: Sequence[Measure],
    missing: Sequence[str],
    scenes: Sequence[Sequence[Scene]],
    drawn: Sequence[Drawn | None],
) -> str:
    """What the script needs, as JSON that ends no element and begins none."""
    curves = {
        setting["number"]: [
            "".join(f"{height:02x}" for height in _list_heights(setting["columns"][column["name"]]))
            if column["name"] in setting["columns"]
            else None
            for column in document["columns"]
        ]
        for setting in document["settings"]
    }
    data = {
        "words": EXPLORE.read_section("script"),
        "across": [None if one is None else one.across for one in drawn],
        "curves": curves,
        "measures": [
            {
                "title": one.title,
                "unit": one.unit,
                "words": one.words,
                "missing": words,
                "scenes": {layout.name: _scene_data(scene) for layout, scene in zip(LAYOUTS, found, strict=False)},
            }
            for one, words, found in zip(measures, missing, scenes, strict=True)
        ],
        "start": _find_start(document),
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _scene_data(scene: Scene) -> dict[str, Any]:
    return {
        "ticks": scene.ticks,
        "spots": [None if one is None else [one.y, one.top, one.bottom, int(one.best)] for one in scene.spots],
        "names": [None if one is None else [one.x, one.y, one.from_x, one.from_y] for one in scene.names],
        "one": scene.one,
    }


def _find_start(document: Plain) -> int | None:
    """The setting that is picked at first: the chosen one, or the policy's own, or the first."""
    numbers = [setting["number"] for setting in document["settings"]]
    return document.get("chosen") if document.get("chosen") in numbers else next(iter(numbers), None)
