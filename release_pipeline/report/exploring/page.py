"""The page of `explore`: many settings of a policy, tried before anything is spent, a pure function of the document that
`explore --json` prints.

Everything can be read without a script. With the page's own one, which needs no network, a reader chooses another measure, picks
a mark, sorts and copies; it knows no axis and writes no figure, for all that it may show is laid out and written here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from release_pipeline.policy.strength import Strength, find_best
from release_pipeline.privacy.figures import count_of, format_number, format_share
from release_pipeline.report.charts.explored import Drawn, add_release, draw_column
from release_pipeline.report.charts.frontier import (
    COLOURS,
    LAYOUTS,
    Frame,
    Point,
    Scene,
    draw_measure,
    lay_out,
    list_styles,
    shorten_names,
    sign_of,
)
from release_pipeline.report.escaping import Ready, format_text, load_templates
from release_pipeline.report.exploring.measures import Measure, Plain, list_measures, tell_missing
from release_pipeline.report.exploring.settings import clock_of, list_heights, tell_setting, tell_solved
from release_pipeline.sentences import EXPLORE

MOST_DRAWN, _MOST_PICTURES = 8, 50  # settings whose distributions are drawn without the script, and the pictures of that


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
    measures = list_measures(document)
    claims, epsilons = [one.claim for one in points], [one.epsilon for one in points]
    best = find_best(claims, epsilons, [one.middle for one in measures[0].figures]) if measures else []
    drawn = [_draw(column, document["on"]) for column in document["columns"]]
    most = max(1, min(MOST_DRAWN, _MOST_PICTURES // max(len(drawn), 1)))
    shown = _list_drawn(points, best, document.get("chosen"), most)
    told = [
        tell_setting(setting, point, document, drawn if setting["number"] in shown else None, is_best=is_best)
        for setting, point, is_best in zip(settings, points, best, strict=True)
    ]
    frames = [lay_out(points, layout) for layout in LAYOUTS] if points else []
    scenes = [[draw_measure(points, one.figures, frame, errors=one.errors) for frame in frames] for one in measures]
    missing = [tell_missing(document, one) for one in measures]
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
        "solved": [tell_solved(one) for one in document.get("solved", ())],
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


def _draw(column: Plain, on: str) -> Drawn | None:
    return draw_column(column["name"], column["places"], column["curve"], EXPLORE.read_section("tried")[on], clock_of(column))


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
            "".join(f"{height:02x}" for height in list_heights(setting["columns"][column["name"]]))
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
