"""What the page says of KEA18's experiment: verdicts on made-up results that keep the claims, or break one of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from release_pipeline.experiments import agreement
from release_pipeline.experiments.measuring.kea18 import EPSILONS, GROUPINGS, KS, LABELS, QUASI, list_settings, make_ages
from release_pipeline.experiments.names import EXPERIMENTS
from release_pipeline.experiments.reporting.claims import Chapter
from release_pipeline.experiments.reporting.kea18 import report
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.reproduce import CATALOGUE
from release_pipeline.experiments.runs import Measured, Results, Setting

ERROR = "The error falls as epsilon grows."
REACHED = "A linking risk under 5% is reachable."
LITTLE = "99%-confident k-anonymity suppresses under 2% for small epsilon."
USE = (
    "There is an epsilon at which released numbers are nearer than the class's mean, linking is under 5% and "
    "suppression under 2%."
)
STRONG = "(k,epsilon)-anonymity is at least as strong as k-anonymity and epsilon-differential privacy by themselves."
MORE_K = "More k, less linking."
FOUND = "Who stands out is whom linking finds: without them the risk is lower."
LOSS = "Mondrian loses less of the generalised columns than OLA at the same k, if a dropped record counts as lost."
LINKED = "Linking is likelier in Mondrian's classes than in OLA's at the same k."
ERRS = "Errors are smaller in Mondrian's classes than in OLA's at the same k."
SUPPRESSED = "Confidence suppresses more in Mondrian's classes than in OLA's at the same k."
WHOLE = "Noise by the class has less error than noise by the whole table."
DROPPED = "OLA drops 1.67 to 4.80 percent of the records."
AT = "At k 5 and epsilon 10 less than 5% are linked, at an error of 2.5%."
THEIRS = {ERROR, WHOLE, DROPPED, REACHED, AT, LITTLE, STRONG}
CLAIMS = [ERROR, WHOLE, DROPPED, REACHED, AT, LITTLE, USE, STRONG, MORE_K, FOUND, LOSS, LINKED, ERRS, SUPPRESSED]


def make_rows(setting: Setting) -> list[dict[str, float]]:
    """Figures for which every claim holds."""
    name, k = str(dict(setting.fields).get("grouping")), setting.number("k")
    if setting.kind == "node":
        return [{"loss": 0.25, **dict.fromkeys(QUASI, 1.0)}]
    if setting.kind == "time":
        return [{"mondrian_over_ola": 3.0, "noise_over_ola": 4.0, "noise_over_mondrian": 4 / 3}] * setting.runs
    classes = (200 if name == "ola" else 300) / k
    if setting.kind == "grouping":
        penalty = (0.01 if name == "mondrian" else 0.02) * k**0.5
        lost = {"penalty": penalty, **{f"penalty_{column}": penalty for column in QUASI}, "penalty_all": penalty}
        return [{"classes": classes, "records": 10_000.0, "dropped": 0.03, **lost, "same": 0.0, "mean_error": 0.03}]
    epsilon = float(setting.text("epsilon"))
    risk = classes / 10_000 * (1 + epsilon)
    suppressed = 0.0 if epsilon < 1 else epsilon * 1e-4 * (1 if name == "ola" else 2)
    error = 0.2 / epsilon * (1.1 if name == "ola" else 1)
    row = {
        "chance": classes / 10_000,
        "expected_error": error,
        "global_error": 2 * error,
        "measured_error": error,
        "linking": risk,
        "linking_left": risk / 2,
    }
    return [{**row, "exposed": suppressed / 2, "left_too_small": suppressed / 2}] * setting.runs


def make_results(
    measure: str = "", factor: float = 1, *, quick: bool = False, runs: slice = slice(None), **fields: str | int
) -> Results:
    """The same with one measure changed in some runs of the settings with these fields."""
    measured: list[Measured] = []
    for setting in list_settings(quick=quick):
        rows = [dict(row) for row in make_rows(setting)]
        if all(dict(setting.fields).get(name) == value for name, value in fields.items()) and measure in rows[0]:
            for row in rows[runs]:
                row[measure] *= factor
        measured.append(Measured(setting, rows))
    return Results(measured)


def judge(chapter: Chapter) -> dict[str, str]:
    return {finding.claim: finding.verdict for finding in chapter.findings}


def test_every_claim_is_judged_and_can_hold() -> None:
    verdicts = judge(report(make_results()))
    assert verdicts == dict.fromkeys(CLAIMS, "holds") | {USE: "holds in part", STRONG: "does not hold"}


def test_use_and_safety_are_judged_at_the_same_epsilon() -> None:
    """With ten times the linking nothing is left for k = 2; with figures that say no more than the mean, nothing at all."""
    none = "does not hold"
    for measure, factor, verdict in (("linking", 0.1, "holds"), ("measured_error", 1000, none), ("exposed", 1e6, none)):
        assert judge(report(make_results(measure, factor)))[USE] == verdict


@pytest.mark.parametrize(
    ("claim", "measure", "factors"),
    [
        (ERROR, "measured_error", {x: float(x) ** 1.01 for x in EPSILONS}),
        (REACHED, "linking", dict.fromkeys(EPSILONS, 300.0)),
        (AT, "linking", dict.fromkeys(EPSILONS, 2.0)),
        (AT, "measured_error", dict.fromkeys(EPSILONS, 2.0)),
        (WHOLE, "global_error", dict.fromkeys(EPSILONS, 0.4)),
        (LITTLE, "", {}),
        (MORE_K, "linking", {}),
        (FOUND, "linking_left", dict.fromkeys(EPSILONS, 2.01)),
        (LINKED, "linking", {}),
        (ERRS, "measured_error", {}),
        (SUPPRESSED, "", {}),
    ],
)
def test_a_claim_that_is_broken_everywhere_does_not_hold(claim: str, measure: str, factors: dict[str, float]) -> None:
    results = make_results()
    for one in results.of("noise"):
        name, k, epsilon = one.setting.text("grouping"), one.setting.number("k"), one.setting.text("epsilon")
        for row in one.rows:
            if factors:
                row[measure] *= factors[epsilon]
            elif claim == LITTLE:
                row["exposed"] = 0.021
            elif claim == MORE_K:
                row["linking"] *= k**1.01
            elif claim == LINKED:
                row["linking"] *= 1.51 if name == "ola" else 1
            elif claim == ERRS:
                row["measured_error"] *= 1.11 if name == "mondrian" else 1
            elif claim == SUPPRESSED:
                row["left_too_small"] *= 4 if name == "ola" else 1
    assert judge(report(results))[claim] == "does not hold"


def test_a_claim_that_is_broken_in_one_run_holds_by_the_median() -> None:
    """And the page names the setting."""
    cases = [
        (ERROR, make_results("measured_error", 3, runs=slice(1), grouping="ola", k=5, epsilon="1"), "ola, k 5, epsilon 0.5 to 1"),
        (LITTLE, make_results("exposed", 400, runs=slice(1), grouping="mondrian", k=5, epsilon="1"), "mondrian, k 5, epsilon 1"),
        (MORE_K, make_results("linking", 3, runs=slice(1), grouping="ola", k=5, epsilon="2"), "ola, epsilon 2, k 2 to 5"),
        (FOUND, make_results("linking_left", 3, runs=slice(1), grouping="ola", k=5, epsilon="10"), "ola, k 5, epsilon 10"),
        (LOSS, make_results("penalty_all", 3, grouping="mondrian", k=5), "k 5"),
        (DROPPED, make_results("dropped", 0.5, grouping="ola", k=50), "k 50"),
    ]
    for claim, results, named in cases:
        chapter = report(results)
        [finding] = (finding for finding in chapter.findings if finding.claim == claim)
        assert finding.verdict == (
            "holds in part" if claim in (LOSS, DROPPED) else "holds by the median"
        )  # its one figure is a median
        assert named in finding.why


def test_it_is_said_up_to_which_epsilon() -> None:
    """The last one at which every run is below, in a row from the smallest on; a later one that is below again does not count."""
    results = make_results()
    for one in results.of("noise", grouping="mondrian", k=20):
        for row, epsilon in product(one.rows, [float(one.setting.text("epsilon"))]):
            row["linking"] = 0.04 if epsilon != 2 else 0.06
            row["exposed"], row["left_too_small"] = (0.03 if epsilon >= 5 else 0.0), 0.0
    chapter = report(results)
    words = {finding.claim: finding.measured for finding in chapter.findings}
    assert "mondrian, k 20: 1 (error 20.0%)" in words[REACHED]
    assert "mondrian, k 20: 2 (3.0% at 100)" in words[LITTLE]
    [line] = [line for line in dict(chapter.tables)["How far epsilon reaches"].splitlines() if line.startswith("| 20 | mondrian")]
    assert line.split(" | ")[3:5] == ["1", "2"]


def test_a_risk_of_chance_above_five_percent_is_not_reachable() -> None:
    chapter = report(make_results("linking", 100, grouping="mondrian", k=2))
    [finding] = (finding for finding in chapter.findings if finding.claim == REACHED)
    assert finding.verdict == "holds in part"
    assert "mondrian, k 2: 151.5% at the least" in finding.why


def test_the_words_define_what_is_measured_and_mark_what_is_ours() -> None:
    chapter = report(make_results())
    assert "is not differential privacy" in chapter.words
    for word in ("Error", "Linking risk", "Chance", "Suppression by confidence", "Information loss"):
        assert f"**{word}**" in chapter.words
    sources = {finding.claim: finding.source for finding in chapter.findings}
    assert {claim for claim, source in sources.items() if source.startswith("KEA18")} == THEIRS
    assert all("ours" in source for claim, source in sources.items() if claim not in THEIRS)
    assert not chapter.losses
    for left_out in ("Figures 1 and 2", "Figures 7 and 8", "Florida and Michigan", "(epsilon, delta)"):
        assert any(left_out in reason for reason in chapter.omitted)


def test_a_quick_run_is_told_too() -> None:
    """With what it has: no times, and no claim on what it did not measure."""
    chapter = report(make_results(quick=True))
    verdicts = judge(chapter)
    assert list(verdicts) == CLAIMS
    assert verdicts[LOSS] == "not measured"
    assert [heading for heading, _ in chapter.tables] == ["Classes by k", "How far epsilon reaches"]


def test_the_pictures_have_a_line_for_each_k_and_grouping(tmp_path: Path) -> None:
    by_epsilon, by_k = report(make_results()).pictures
    assert (by_epsilon.name, by_k.name) == ("kea18-epsilon", "kea18-loss")
    assert len(by_epsilon.panels) == 3 * len(GROUPINGS)
    for panel in by_epsilon.panels:
        assert [series.name for series in panel.series if not series.thin] == [f"k = {k}" for k in KS]
        assert all(len(series.x) == len(EPSILONS) for series in panel.series)
    assert [panel.level for panel in by_epsilon.panels[::2]] == [None, (0.05, "5%"), (0.02, "2%")]
    assert [series.name for series in by_k.panels[0].series] == [*GROUPINGS, LABELS]
    assert all(file.stat().st_size > 10_000 for file in by_k.save(tmp_path))


def test_it_is_in_the_catalogue_with_all_it_reads() -> None:
    assert list(CATALOGUE) == list(EXPERIMENTS)
    assert set(CATALOGUE["kea18"].tables) == {"adult", *QUASI} - {"age"}


def test_ages_have_the_levels_of_table_1() -> None:
    ages = make_ages()
    at_38 = [ages.labels[level][ages.codes[level, 38]] for level in range(ages.levels)]
    assert at_38 == ["38", "38-39", "36-39", "32-39", "*"]


def test_times_are_neither_committed_nor_compared() -> None:
    """Whatever a file says of them; the others are."""
    results = make_results()
    figures = list(agreement.summarise("kea18", results))
    assert figures
    assert not any(figure.setting.startswith("time") for figure in figures)
    time = agreement.Figure("kea18", results.of("time", k=2)[0].setting.key, "mondrian_over_ola", "log", 10, 99.0, 0.0)
    count, departures = agreement.compare("kea18", results, [*figures, time])
    assert (count, departures) == (len(figures), [])
    shifted = [replace(figure, mean=figure.mean + 1) for figure in figures if figure.setting.startswith("node")]
    assert len(agreement.compare("kea18", results, shifted)[1]) == len(shifted) > 0


def test_none_lies_on_the_floor_without_a_mark() -> None:
    """Zero is drawn at a tick of its own below all shares, and thin lines are not in the legend."""
    shares = [np.zeros(2), np.array([0.0, 0.2]), np.array([0.4, 0.4])]
    panel = Panel(
        "", "", "", [Series("a", [1, 2, 3], shares), Series("a", [1, 3], shares[1:], thin=True)], percent=True, floor=1e-3
    )
    figure = Picture("one", "", [panel])._draw()
    [place] = figure.axes
    line, thin = place.lines
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([0.1, 10, 40])
    assert line.get_markevery() == [False, True, True]
    assert thin.get_marker() == "None"
    assert [place.yaxis.get_major_formatter()(y, 0) for y in (0.1, 1, 100)] == ["none", "1%", "100%"]
    assert not figure.legends
