"""PRS20's random parts: what they cost, drawn and judged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from release_pipeline.experiments.measuring.prs20 import HASHED
from release_pipeline.experiments.reporting.claims import (
    DEFINITIONS,
    Cases,
    Chapter,
    Finding,
    Loss,
    list_names,
    show,
    show_range,
    table,
)
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.runs import Results
from release_pipeline.privacy.catalogue import METHODS

DEFINED = {name: spec.claims[0].definition.key for name, spec in METHODS.items()}
LISTED_PARTS = (1, 10, 100)
EXACT = 1e-9  # of a sum of fractions as a floating-point number
ROUNDED = 2e-9  # a charge is rounded up to nano-epsilon

WORDS = """\
Records are drawn at random into parts over the **slots** of a frozen table, by a keyed permutation of their numbers, and each
part is masked on its own with noise of its own. Three things are shown. *Together*: a replaced record stays in the part of its
slot, so that neighbours differ in one part, and all parts cost as much as the dearest one, under replace-one. *Alone*: a part
whose members nobody knows costs less than epsilon (amplification), and this holds for **eps-DP only**. *Errors*: parts have
fewer records, so that their clusters are less alike.

Errors are of 100,000 made-up records in 4 skewed, correlated columns; the error of a column is the mean of (x - y)^2 over its
variance, and the mean over columns is shown; 1 is no better than publishing the means. Epsilon is split equally over the columns.
`dp-um` is eps-DP, `idp-ls` and `idp-cbls` are **eps-iDP**, all three with k 25 for the list of each column (`scope: column`),
with or without isotonic means. `dp-mdav` is eps-DP for the whole table with k 400. `mdav` and the other clusters without noise
have no epsilon at all. Epsilon of iDP is not that of DP, and lines of both stand in one picture only to show what parts do to
each. Bands are the least and the greatest of the runs, each with parts of its own."""


def report(results: Results) -> Chapter:
    """The chapter of the page."""
    return Chapter(
        "PRS20: random parts",
        WORDS,
        (_draw_costs(results), _draw_losses(results), _draw_errors(results), _draw_clusters(results)),
        tuple(_judge(results)),
        (
            ("A hash of the identity: two neighbours", _report_hash(results)),
            ("Amplification and iDP: two neighbours", _report_membership(results)),
            ("Error by number of parts", _report_errors(results)),
        ),
        tuple(_list_losses(results)),
    )


def _list_losses(results: Results) -> Iterator[Loss]:
    for one in results.of("error"):
        method, epsilon, parts = one.setting.text("method"), one.setting.text("epsilon"), one.setting.number("parts")
        if parts not in LISTED_PARTS or "isotonic" in method:
            continue
        together = method.startswith("dp-mdav")
        name = f"{method}{' (at most)' if together else ''}, {parts} part{'s' if parts > 1 else ''}"
        scope, k = ("table", 400) if together else ("column", 25)
        definition = DEFINED[method.partition(",")[0]]
        yield Loss("made up, 4 columns", name, definition, scope, k, epsilon, float(one.runs("loss").max()))


def _draw_costs(results: Results) -> Picture:
    def by_share(measure: str, name: str, epsilon: str, look: int) -> Series:
        shares = results.values("one part", "thousandths")
        found = [results.runs("one part", measure, epsilon=epsilon, thousandths=share) for share in shares]
        return Series(name, [share / 1000 for share in shares], found, look)

    def by_parts(measure: str, name: str, look: int) -> Series:
        out = results.values("charge", "published", parts=50)
        found = [results.runs("charge", measure, epsilon="1", parts=50, published=number) for number in out]
        return Series(name, out, found, look)

    panels = [
        Panel(
            f"one part, epsilon {epsilon}",
            "share of the records, beta",
            "cost, epsilon of DP",
            [
                by_share("bbg18", "BBG18, charged", epsilon, 0),
                by_share("prs20", "PRS20, Theorem 2", epsilon, 1),
                Series("epsilon", [1], [np.array([float(epsilon)])], 7),
            ],
            log_x=True,
        )
        for epsilon in ("1", "4")
    ]
    charges = Panel(
        "r of 50 parts, epsilon 1",
        "parts published, r",
        "cost, epsilon of DP",
        [
            by_parts("together", "r parts together, charged", 2),
            by_parts("one_by_one", "r times one part", 3),
            Series("epsilon", [1], [np.array([1.0])], 7),
        ],
        log_y=False,
    )
    return Picture("prs20-cost", "What parts cost whose members nobody knows, for eps-DP methods: formulas", [*panels, charges])


def _draw_losses(results: Results) -> Picture:
    parts = results.values("error", "parts")
    composed = Panel(
        "idp-cbls, epsilon 1: all parts",
        "parts",
        "loss by the accountant, iDP",
        [
            Series(
                name,
                parts,
                [results.runs("error", measure, method="idp-cbls", epsilon="1", parts=number) for number in parts],
                look,
            )
            for measure, name, look in (("loss", "greatest", 0), ("sum_of_losses", "sum", 1))
        ],
        log_x=True,
    )
    names = {("dp-um", 0): ("dp-um (DP)", 2), ("idp-ls", 1): ("idp-ls (iDP)", 3)}
    beyond = results.values("membership", "beyond")
    charged = results.mean("membership", "charged", method="dp-um", others=0, beyond=0)
    alone = Panel(
        "3 of 30 records, epsilon 1",
        "noisy sum beyond that of the other records",
        "log of the ratio of densities",
        [
            Series(
                name,
                beyond,
                [results.runs("membership", "log_ratio", method=method, others=others, beyond=z) for z in beyond],
                look,
            )
            for (method, others), (name, look) in names.items()
        ],
        log_y=False,
        level=(charged, "amplified charge"),
    )
    return Picture(
        "prs20-loss",
        "Left: the greatest loss of a part and the sum over all parts, 100,000 records; the greatest is what all parts lose. "
        "Right: one part of a small table, published: the ratio stays under the amplified charge for DP and passes it for "
        "iDP",
        [composed, alone],
        across=2,
    )


def _draw_errors(results: Results) -> Picture:
    parts = results.values("error", "parts")
    looks = {
        "dp-um": 1,
        "dp-um, isotonic": 5,
        "idp-ls, isotonic": 2,
        "idp-cbls": 0,
        "idp-cbls, isotonic": 6,
        "dp-mdav, corner": 3,
        "dp-mdav, hilbert": 7,
    }
    return Picture(
        "prs20-error",
        "Error by number of parts. dp-um: DP for each column's list; idp-ls, idp-cbls: iDP for it; dp-mdav: DP for the table",
        [
            Panel(
                f"epsilon {epsilon}",
                "parts",
                "error, mean over columns",
                [
                    Series(
                        f"{method} ({'iDP' if method.startswith('idp') else 'DP'})",
                        parts,
                        [results.runs("error", "error", method=method, epsilon=epsilon, parts=number) for number in parts],
                        look,
                    )
                    for method, look in looks.items()
                ],
                log_x=True,
            )
            for epsilon in results.values("error", "epsilon")
        ],
        across=2,
    )


def _draw_clusters(results: Results) -> Picture:
    looks = {"rank, k 25": 0, "mdav, k 25": 5, "mdav, k 400": 6, "corner, k 25": 3, "hilbert, k 25": 2}
    series: list[Series] = []
    for name, look in looks.items():
        parts = results.values("clusters", "parts", clusters=name)
        found = [results.runs("clusters", "error", clusters=name, parts=number) for number in parts]
        series.append(Series(name, parts, found, look))
    return Picture(
        "prs20-clusters",
        "Error of clusters without noise by number of parts",
        [Panel("clusters without noise", "parts", "error, mean over columns", series, log_x=True)],
    )


def _judge(results: Results) -> list[Finding]:
    return [
        *_judge_composition(results),
        *_judge_amplification(results),
        *_judge_errors(results),
    ]


def _judge_composition(results: Results) -> list[Finding]:
    cases, sums = Cases(least=1 - EXACT, most=1 + EXACT), list[float]()
    worst = 0.0
    for one in results.of("neighbours", split="slots"):
        name = f"{one.setting.text('method')}, {one.setting.number('clusters')} clusters in each part"
        cases.add(name, one.runs("worst") / one.runs("greatest"))
        sums += (one.runs("sum") / one.runs("worst")).tolist()
        worst = max(worst, float(one.runs("worst").max()))
    by_slots = cases.find(
        "All parts together cost as much as the dearest of them, not their sum: eps, whatever the dates (parallel composition).",
        "PRS20",
        more="The worst loss over all neighbours of small tables, by going through them (8 or 14 records in two parts, "
        "values 0 to 6, every record replaced by every value, scales frozen, epsilon 1, the noisy sums of both parts at "
        "once), over the greatest of the accountant's figures for the parts: said to hold if equal. The worst of all is "
        f"{show(worst)}; adding the parts up would say {show(min(sums))} to {show(max(sums))} times as much. dp-um DP, idp-ls "
        "and idp-cbls iDP",
        why=f"Not in {list_names(cases.failed)}.",
    )
    large = Cases(least=0, most=1 + EXACT)
    for one in results.of("error"):
        if "isotonic" not in one.setting.text("method"):
            name = ", ".join(str(value) for _, value in one.setting.fields)
            large.add(name, one.runs("loss") / float(one.setting.text("epsilon")))
    most = max(results.values("error", "parts"))
    whole = results.mean("error", "sum_of_losses", method="idp-cbls", epsilon="1", parts=most)
    on_data = large.find(
        "On 100,000 records no part loses more than epsilon.",
        "this project",
        more="The greatest of the parts over epsilon, by the accountant: columns of the rank methods added up (column "
        "claims; links across columns are not covered), dp-mdav's whole table by its bound. Of its own definition each. The "
        f"sum over {most} parts of idp-cbls would be {show(whole)}",
    )
    moved = Cases(least=1 + EXACT)
    for one in results.of("neighbours", split="identity"):
        clusters = one.setting.number("clusters")
        moved.add(f"{clusters} cluster{'s' if clusters > 1 else ''} in each part", one.runs("worst"))
    by_hash = moved.find(
        "Parts by a hash of the identity cost more than eps: a replaced person may change part.",
        "this project",
        more="The worst loss of the same small tables, dp-um (DP) with epsilon 1, the new person in either part. And these "
        "are losses of noisy sums alone: the number of records of each part, which a reader sees, changes by one without any "
        "noise",
        why=f"Not in {list_names(moved.failed)}.",
    )
    bounded = Cases(least=0, most=2 + EXACT, ratios=dict(moved.ratios))
    for example in results.values("counterexample", "example"):
        bounded.add(f"the counterexample with {example}", results.runs("counterexample", "loss", example=example))
    by_two = Finding(
        "Such parts cost 2 eps at the most.",
        "this project",
        bounded.verdict,
        "Losses with epsilon 1: " + "; ".join(f"{name} {show_range(runs)}" for name, runs in bounded.ratios.items()),
        f"Not with {list_names(bounded.failed)}. It holds where each part has one cluster. In a longer list one that leaves or "
        "joins shifts every cluster after it, by up to twice the width of the domain in all: 2 eps in each of two parts (table "
        "below)."
        if bounded.failed
        else "",
    )
    return [by_slots, on_data, by_hash, by_two]


def _judge_amplification(results: Results) -> list[Finding]:
    cases, above = Cases(), 0
    for one in results.of("one part"):
        epsilon = one.setting.text("epsilon")
        cases.add(f"epsilon {epsilon}, beta {one.setting.number('thousandths') / 1000:g}", one.runs("prs20") / one.runs("bbg18"))
        above += float(one.runs("prs20")[0]) > float(epsilon)
    tenth = {measure: results.mean("one part", measure, epsilon="1", thousandths=100) for measure in ("bbg18", "prs20")}
    bounds = cases.find(
        "By formula, for eps-DP methods: PRS20's Theorem 2 charges a part alone more than ln(1 + beta (e^eps - 1)) "
        "(BBG18), everywhere.",
        "PRS20 Theorem 2; BBG18",
        more="Theorem 2 over BBG18, one figure for each epsilon and beta, since these are formulas: it is -ln(1 - beta) "
        f"more. At epsilon 1 and beta 0.1 {tenth['bbg18']:.4f} against {tenth['prs20']:.4f}. Theorem 2 is more than epsilon "
        f"itself in {above} of {len(cases.ratios)} settings, those of large beta",
        why=f"Not at {list_names(cases.failed)}.",
    )

    last, order = Cases(least=1 - ROUNDED, most=1 + ROUNDED), True
    for epsilon, parts in product(results.values("charge", "epsilon"), results.values("charge", "parts")):
        together = np.concatenate(
            [results.runs("charge", "together", epsilon=epsilon, parts=parts, published=out) for out in range(1, int(parts) + 1)]
        )
        last.add(f"epsilon {epsilon}, {parts} parts", together[-1:] / float(epsilon))
        order = order and bool(np.all(np.diff(together) > 0))
    once = results.mean("charge", "one_by_one", epsilon="1", parts=10, published=10)
    steps = [results.mean("charge", "together", epsilon="1", parts=10, published=out) for out in (1, 5, 10)]
    charges = Finding(
        "By formula, for eps-DP methods: ln(1 + (r/P)(e^eps - 1)) after r of P parts never falls, and is epsilon after all.",
        "this project",
        last.verdict if order else "does not hold",
        f"Epsilon 1, 10 parts: {steps[0]:.4f} after one, {steps[1]:.4f} after five, {steps[2]:.4f} after all, where ten times "
        f"the first would be {once:.4f}. The r parts are a sample of r/P of the records, and together cost epsilon by "
        "parallel composition; the charge never falls. It holds while nobody knows who is in which part",
    )

    charged = results.mean("membership", "charged", method="dp-um", others=0, beyond=0)

    def ratios(method: str, others: int) -> np.ndarray:
        return np.concatenate([one.runs("log_ratio") for one in results.of("membership", method=method, others=others)])

    dp, idp = np.concatenate([ratios("dp-um", 0), ratios("dp-um", 1)]), ratios("idp-ls", 1)
    fails = float(idp.max()) > charged * (1 + ROUNDED)
    far = max(results.values("membership", "beyond"))
    keeps = float(np.abs(dp).max()) <= charged * (1 + ROUNDED)
    seen = results.mean("noise seen", "probability")
    example = Finding(
        "Amplification fails for iDP: the sample's scale reveals membership.",
        "this project",
        "holds" if fails and keeps else "does not hold",
        "Two neighbours of 30 records, one part of 3 published with epsilon 1, exact densities (table below). The amplified "
        f"charge would be {charged:.4f}. For dp-um, eps-DP, the log-ratio is {float(np.abs(dp).max()):.4f} at the most: met, "
        "and not passed. For idp-ls, eps-iDP, with the scale of each sample of the first table frozen in both, it is "
        f"{float(idp.max()):.4f} at a sum {far} beyond, and tends to 1, all of epsilon: far out only the sample with the "
        "wider noise is likely, so that whoever sees such a sum knows that the one record is in it, and nothing is saved. "
        f"For idp-cbls a sample of equal records has no noise: here a sum with noise, probability {seen:.4f}, proves that the "
        "one different record is in the part",
        "" if fails and keeps else "The example does not show it.",
    )
    return [bounds, charges, example]


def _judge_errors(results: Results) -> list[Finding]:
    most = 100
    found: list[Finding] = []

    def clusters(name: str, parts: int) -> np.ndarray:
        return results.runs("clusters", "error", clusters=name, parts=parts)

    mdav = Cases(least=5, most=20)
    if 1 in results.values("clusters", "parts", clusters="mdav, k 25"):
        mdav.add("k 25", clusters("mdav, k 25", most) / clusters("mdav, k 25", 1))
        larger = show(float(np.mean(clusters("mdav, k 400", most) / clusters("mdav, k 400", 1))))
        more = f"k 25, 100 parts over one, no noise; said to hold from 5 to 20 times. At k 400 it is {larger} times"
    else:
        more = ""
    found.append(
        mdav.find("Random parts of 1,000 rows raise MDAV's SSE about tenfold at n = 100,000.", "this project", more=more)
    )

    rank = Cases(most=1.5, least=0)
    if most in results.values("error", "parts"):
        for method, epsilon in product(results.values("error", "method"), results.values("error", "epsilon")):
            if method.startswith("dp-mdav"):
                continue
            rank.add(
                f"{method}, epsilon {epsilon}",
                results.runs("error", "error", method=method, epsilon=epsilon, parts=most)
                / results.mean("error", "error", method=method, epsilon=epsilon, parts=1),
            )
    alone = ""
    if most in results.values("clusters", "parts", clusters="rank, k 25"):
        few, many = (float(clusters("rank, k 25", parts).mean()) for parts in (1, most))
        alone = f"Rank clusters without noise go from {show(few)} to {show(many)}, {show(many / few)} times: more than MDAV's. "
    found.append(
        rank.find(
            "Rank methods hardly notice random parts of 1,000 rows.",
            "this project",
            more=f"The error in {most} parts over the mean in one; said to hold below 1.5 times" if rank.ratios else "",
            why=f"It holds for {list_names(rank.held)}: where noise is most of the error, in one part or in many. "
            f"{alone}At epsilon 10 that shows, "
            "and isotonic means have fewer clusters to smooth together; all of it is in the table below.",
        )
    )

    gains = Cases()
    for method, epsilon in product(("dp-mdav, corner", "dp-mdav, hilbert"), results.values("error", "epsilon")):
        one, several = (results.runs("error", "error", method=method, epsilon=epsilon, parts=parts) for parts in (1, 10))
        gains.add(f"{method}, epsilon {epsilon}", one / several)
    found.append(
        gains.find(
            "dp-mdav for the whole table gains by parts: fewer clusters can change.",
            "this project",
            more="The error in one part over that in ten, eps-DP, k 400. A larger k does the same without parts",
            why="Where the grouping is most of the error, parts cost.",
        )
    )
    return found


def _report_hash(results: Results) -> str:
    rows: list[list[str]] = []
    for example, ((a, left), (b, joined)) in HASHED.items():
        before = f"A {', '.join(map(str, a))}; B {', '.join(map(str, b))}"
        loss = results.mean("counterexample", "loss", example=example)
        rows.append([example, before, f"{left} leaves A, {joined} enters B", show(loss)])
    return (
        table(["", "values", "the neighbour", "loss, epsilon 1"], rows)
        + "\n\n`dp-um`, k 3, domain 0 to 6, noise of scale 6 on each cluster's sum; the loss is the sum over clusters of |change "
        "of the sum| / 6. With two clusters the new person even has the same value as the old one. Under replace-one with parts "
        "by slot no neighbour loses more than 1."
    )


def _report_membership(results: Results) -> str:
    rows: list[list[str]] = []
    for one in results.of("membership"):
        method, others, beyond = one.setting.text("method"), one.setting.number("others"), one.setting.number("beyond")
        if beyond in (0, 2, 5, 10, 15, 25):
            kind = DEFINITIONS[DEFINED[method]]
            figures = [f"{float(one.runs(measure)[0]):.4g}" for measure in ("probability", "neighbour", "log_ratio")]
            rows.append([f"{method} ({kind})", str(others), str(beyond), *figures])
    return (
        table(["method", "29 others", "sum beyond theirs by", "P, the one is 2", "P, the one is 0", "log of the ratio"], rows)
        + "\n\nDomain 0 to 2, grid 1, k 3: a part of 3 of 30 records is one cluster. With all others 1, `idp-ls` has scale 1 for "
        "three of them and 2 for a sample with the one of value 2 (Prop. 8); `dp-um` has 2 always."
    )


def _report_errors(results: Results) -> str:
    rows: list[list[str]] = []
    parts = results.values("error", "parts")
    for name in results.values("clusters", "clusters"):
        there = results.values("clusters", "parts", clusters=name)
        cells = [
            show(results.mean("clusters", "error", clusters=name, parts=number)) if number in there else "" for number in parts
        ]
        rows.append([f"{name}, no noise", "none", "", *cells])
    for method, epsilon in product(results.values("error", "method"), results.values("error", "epsilon")):
        kind = "iDP, column" if method.startswith("idp") else "DP, table" if method.startswith("dp-mdav") else "DP, column"
        cells = [show(results.mean("error", "error", method=method, epsilon=epsilon, parts=number)) for number in parts]
        rows.append([method, kind, epsilon, *cells])
    return table(["method", "claim", "epsilon", *(f"{number} part{'s' if number > 1 else ''}" for number in parts)], rows)
