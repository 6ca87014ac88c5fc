"""IDP24's figures 3 to 6, drawn and judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from release_pipeline.experiments.reporting.claims import DEFINITIONS, Cases, Chapter, Finding, Loss, list_names, show, table
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.runs import Results
from release_pipeline.privacy.catalogue import find_claim

WORDS = """\
Mean SSE is the paper's: (1/n) sum over records of (1/m^2) sum over columns of ((x - y) / variance)^2. It divides by the variance
itself, so that columns with a small one decide it: compare methods, not tables. `idp-ls` and `idp-cbls` are **eps-iDP for each
centroid** (`scope: centroid`). `laplace` and `dp-um` are **eps-DP**, for the whole list of a column too. So one epsilon promises
different things; the last chapter compares methods at equal losses. 9 columns of census and 12 of wine share epsilon equally.
Domain [0, alpha max], grid half of the data's resolution, no consistency, released values moved back into the domain. On wine k
goes to 400, as in the paper.

Classes (figures 5, 6): a random forest learns from the first 66% of the released records and is tested on the remaining original
ones; census ERNVAL above 30,000, wine quality above 6. The class is masked like the other columns (10 and 12 share epsilon) and
read off the masked value. The paper does not say whether it masked the class, so census also has releases that keep it."""

NEAR, FLAT, LINKED = 5.0, 1.3, 50.0  # times; times; percent of the records
WORSE = {  # the share of the original's F-measure that the paper loses on census, by epsilon
    "idp-cbls": {"1": 0.0, "0.1": 0.03, "0.01": 0.1},
    "idp-ls": {"1": 0.05, "0.1": 0.1, "0.01": 0.2},
}
ROUNDING = 0.02  # by which an F-measure may be below the paper's
LISTED_KS = (1, 5, 25, 100, 400)


def report(results: Results) -> Chapter:
    """The chapter of the page."""
    return Chapter(
        "IDP24: individual differential privacy with microaggregation",
        WORDS,
        (*_draw_errors(results), _draw_classes(results)),
        tuple(_judge(results)),
        (
            ("Least mean SSE, and its k: means over runs, alpha 1.5, claims as above", _report_best(results)),
            ("Records that idp-cbls leaves linked, percent, by all columns", _report_linkage(results)),
        ),
        tuple(_list_losses(results)),
    )


def _list_losses(results: Results) -> Iterator[Loss]:
    for one in results.of("error", alpha="1.5"):
        if one.setting.number("k") not in LISTED_KS:
            continue
        name, method, epsilon = (one.setting.text(field) for field in ("table", "method", "epsilon"))
        definition = find_claim(method, "column").definition.key
        scope = "column" if definition == "dp" else "centroid"  # what dp-um claims of one centroid holds for the list
        yield Loss(name, method, definition, scope, one.setting.number("k"), epsilon, float(one.runs("loss")[0]))


def _series(results: Results, kind: str, measure: str, **fields: str | int) -> list[Series]:
    made: list[Series] = []
    for method in results.values(kind, "method", **fields):
        ks = results.values(kind, "k", method=method, **fields)
        made.append(
            Series(
                f"{method} ({DEFINITIONS[find_claim(method, 'column').definition.key]})",
                ks,
                [results.runs(kind, measure, method=method, k=k, **fields) for k in ks],
            )
        )
    return made


def _draw_errors(results: Results) -> list[Picture]:
    alphas = results.values("error", "alpha")
    return [
        Picture(
            f"idp24-{name}",
            f"Mean SSE on {name} by k, by epsilon (across) and domain [0, alpha max] (down)",
            [
                Panel(
                    f"epsilon {epsilon}, alpha {alpha}",
                    "k",
                    "mean SSE",
                    _series(results, "error", "sse", table=name, epsilon=epsilon, alpha=alpha),
                )
                for alpha in alphas
                for epsilon in results.values("error", "epsilon")
            ],
            across=len(results.values("error", "epsilon")),
            alike=True,
        )
        for name in results.values("error", "table")
    ]


def _draw_classes(results: Results) -> Picture:
    panels: list[Panel] = []
    for name in results.values("f-measure", "table"):
        for measure, words in (("above", "above"), ("not_above", "not above")):
            original = float(results.mean("f-measure", measure, table=name, method="original"))
            for epsilon in [value for value in results.values("f-measure", "epsilon") if value != "inf"]:
                panels.append(
                    Panel(
                        f"{name}, {words}, epsilon {epsilon}",
                        "k",
                        "F-measure",
                        _series(results, "f-measure", measure, table=name, epsilon=epsilon),
                        log_y=False,
                        level=(original, "learned from the original"),
                        band=(0.25, 0.75),
                    )
                )
    return Picture(
        "idp24-classes",
        "F-measures of both classes by k: learned from released records, tested on original ones; bands are the middle half "
        "of runs",
        panels,
        across=len(results.values("f-measure", "epsilon")) - 1,
        alike=True,
    )


def _judge(results: Results) -> list[Finding]:
    tables = results.values("error", "table")
    epsilons, alphas = results.values("error", "epsilon"), results.values("error", "alpha")
    all_ks = {name: results.values("error", "k", table=name, method="dp-um") for name in tables}
    series = list(product(tables, alphas, epsilons))
    cells = [(*one, k) for one in series for k in all_ks[one[0]]]
    source, found = "figures 3, 4", list[Finding]()

    measured = {tuple(dict(one.setting.fields).values()): one.runs("sse") for one in results.of("error")}

    def sse(name: str, method: str, k: int, epsilon: str, alpha: str) -> np.ndarray:
        return measured[name, method, k, epsilon, alpha]

    def by_k(name: str, method: str, epsilon: str, alpha: str) -> dict[int, float]:
        return {k: float(np.median(sse(name, method, k, epsilon, alpha))) for k in all_ks[name]}

    cases = Cases(least=0.9, most=1.2)
    for name, alpha in product(tables, alphas):
        cases.add(f"{name}, alpha {alpha}", sse(name, "laplace", 1, "0.01", alpha) / sse(name, "laplace", 1, "1", alpha))
    more = "The SSE at 0.01 over that at 1; holds from 0.9 to 1.2. At both epsilons values lie anywhere in the domain"
    found.append(cases.find("Plain laplace hardly improves from epsilon 0.01 to 1.", source, more=more))

    cases = Cases(least=0.5, most=2)
    better = Cases()
    for name, alpha, epsilon, k in cells:
        ratio = sse(name, "dp-um", k, epsilon, alpha) / sse(name, "idp-ls", k, epsilon, alpha)
        cases.add(f"{name}, alpha {alpha}, epsilon {epsilon}, k {k}", ratio)
        if epsilon == "1" and k >= 10:
            better.add(f"{name}, alpha {alpha}, k {k}", ratio)
    more = "The SSE of dp-um over that of idp-ls; holds within a factor of 2"
    why = f"The two differ by more where k is large, on wine, and in single runs of few clusters: {list_names(cases.failed, 2)}."
    found.append(cases.find("dp-um and idp-ls are alike.", source, more=more, why=why))
    why = f"Not in every single run: {list_names(better.failed, 2)}."
    found.append(better.find("idp-ls is the better of the two.", source, more="At epsilon 1 and k of 10 or more", why=why))

    for method in ("dp-um", "idp-ls"):
        cases, rises, steps = Cases(), 0, 0
        for name, alpha, epsilon in series:
            medians, ks = [*by_k(name, method, epsilon, alpha).values()], all_ks[name]
            rises, steps = rises + sum(b > a for a, b in pairwise(medians)), steps + len(medians) - 1
            ends = [sse(name, method, k, epsilon, alpha) for k in (ks[0], ks[-1])]
            cases.add(f"{name}, alpha {alpha}, epsilon {epsilon}", ends[0] / ends[1])
        more = f"The SSE at the least k over that at the greatest. The median rises in {rises} of {steps} steps from k to k"
        why = f"At small epsilon values lie anywhere in the domain whatever k is ({list_names(cases.failed, 2)})."
        found.append(cases.find(f"{method} improves with k.", source, more=more, why=why))

    def compare_alphas(methods: Sequence[str], least: float, most: float) -> Cases:
        cases = Cases(least, most)
        for name, method, epsilon in product(tables, methods, epsilons) if len(alphas) > 1 else ():
            for k in (1,) if method == "laplace" else all_ks[name]:
                narrow, wide = (sse(name, method, k, epsilon, alpha) for alpha in (alphas[0], alphas[-1]))
                cases.add(f"{name}, {method}, epsilon {epsilon}, k {k}", wide / narrow)
        return cases

    cases = compare_alphas(("laplace", "dp-um", "idp-ls"), 1.2, np.inf)
    wider = f"The SSE at alpha {alphas[-1]} over that at alpha {alphas[0]}; holds"
    why = f"Not in: {list_names(cases.failed, 2)}."
    found.append(cases.find("laplace, dp-um and idp-ls all worsen with alpha.", source, more=f"{wider} above 1.2", why=why))

    cases = Cases(least=100)
    for name, alpha, epsilon, k in cells:
        rivals = [sse(name, other, 1 if other == "laplace" else k, epsilon, alpha) for other in ("laplace", "dp-um", "idp-ls")]
        ratio = np.min(rivals, axis=0) / sse(name, "idp-cbls", k, epsilon, alpha)
        cases.add(f"{name}, alpha {alpha}, epsilon {epsilon}, k {k}", ratio)
    census = sum(name.startswith("census") for name in cases.failed)
    more = "The SSE of the best of the other three over that of idp-cbls; holds above 100"
    why = (
        f"{census} of the {len(cases.failed)} settings where it fails in some run are of census: at epsilon 0.01, where noise of "
        "single heavy-tailed clusters fills the domain, and at large k, where the others have caught up. The claims are unequal: "
        "at equal exact loss the distance is far smaller (last chapter)."
    )
    found.append(cases.find("idp-cbls is orders of magnitude better than the others.", source, more=more, why=why))

    cases = compare_alphas(("idp-cbls",), 0.5, 2)
    why = (
        "Scales do not depend on alpha. But a wider domain leaves more error where noise of single clusters is as wide as the "
        f"domain ({list_names(cases.failed, 2)})."
    )
    found.append(cases.find("idp-cbls hardly depends on alpha.", source, more=f"{wider} up to 2", why=why))

    cases = Cases(least=0, most=FLAT)
    for name, alpha, epsilon in series:
        medians = by_k(name, "idp-cbls", epsilon, alpha)
        if len(medians) > 4:
            small = min(median for k, median in medians.items() if 5 <= k <= 15)
            cases.add(f"{name}, alpha {alpha}, epsilon {epsilon}", np.array([small / min(medians.values())]))
    more = f"The least SSE of k 5 to 15 over that of all k, medians over runs; holds below {FLAT}, as curves are flat"
    why = (
        "Noise falls with k for longer, most of all on wine: "
        f"{list_names([f'{name} ({show(cases.ratios[name][0])})' for name in cases.failed], 8)}."
    )
    found.append(cases.find("idp-cbls is best at small k, 5 to 15.", source, more=more, why=why))

    cases = Cases(least=1 / NEAR, most=NEAR)
    for name, alpha, other in product(tables, alphas, ("dp-um", "idp-ls")):
        medians = by_k(name, "idp-cbls", "0.01", alpha)
        best, last = min(medians, key=lambda k, medians=medians: medians[k]), all_ks[name][-1]
        ratio = sse(name, other, last, "1", alpha) / sse(name, "idp-cbls", best, "0.01", alpha)
        cases.add(f"{name}, alpha {alpha}, {other} with k {last}", ratio)
    words = "; ".join(f"{name} {show(float(np.median(runs)))}" for name, runs in cases.ratios.items())
    more = f"The SSE of the others at their largest k over that of idp-cbls at its best; holds within {NEAR:g} times. {words}"
    why = "On census the others are better, on wine idp-cbls. The two epsilons are of different definitions and unequal claims."
    claim = "idp-cbls at epsilon 0.01 is similar to dp-um and idp-ls at epsilon 1 with large k."
    found.append(cases.find(claim, source, more=more, why=why))
    return [*found, *_judge_classes(results), _judge_linkage(results)]


def _judge_classes(results: Results) -> list[Finding]:
    tables, source = results.values("f-measure", "table"), "figures 5, 6"
    epsilons = [value for value in results.values("f-measure", "epsilon") if value != "inf"]
    ks = results.values("f-measure", "k", method="dp-um")

    def both(kind: str = "f-measure", **fields: str | int) -> np.ndarray:
        return np.mean([results.runs(kind, measure, **fields) for measure in ("above", "not_above")], axis=0)

    def keep(kind: str, **fields: str) -> np.ndarray:
        """The share of the original's F-measure in each run, at the k of the best mean."""
        ks = results.values(kind, "k", **fields)
        best = max((both(kind, k=k, **fields) for k in ks), key=np.mean)
        return best / both(table=fields["table"], method="original", k=0, epsilon="inf").mean()

    cases = Cases()
    for name, epsilon, k in product(tables, epsilons, ks):
        fields: dict[str, str] = {"table": name, "epsilon": epsilon}
        rivals = [both(method=other, k=1 if other == "laplace" else k, **fields) for other in ("laplace", "dp-um", "idp-ls")]
        cases.add(f"{name}, epsilon {epsilon}, k {k}", both(method="idp-cbls", k=k, **fields) / np.max(rivals, axis=0))
    more = "The mean of both F-measures over that of the best of the other three"
    why = f"Where noise hides all else a forest guesses, and now and then guesses well: {list_names(cases.failed, 3)}."
    claim = "Classifiers learn more from idp-cbls than from the other methods."
    found = [cases.find(claim, source, more=more, why=why)]

    for method, worse in WORSE.items():
        cases, words = Cases(least=1 - ROUNDING), list[str]()
        for epsilon in [value for value in worse if value in epsilons]:
            masked, known = (keep(kind, table="census", method=method, epsilon=epsilon) for kind in ("f-measure", "class-kept"))
            cases.add(f"epsilon {epsilon}", masked / (1 - worse[epsilon]))
            words.append(f"epsilon {epsilon}: {masked.mean():.0%} ({known.mean():.0%})")
        paper = ", ".join(f"{share:.0%}" for share in worse.values())
        found.append(
            cases.find(
                f"With {method} classifiers lose at most {paper} at epsilon 1, 0.1 and 0.01, on census.",
                source,
                more="The share of the original's F-measure that is left, at the best k, over the paper's; holds if at most "
                f"{ROUNDING:.0%} below. Left, means over runs (with the class released as it is): {'; '.join(words)}",
                why=f"Not in every run at {list_names(cases.failed)}, nor with the class released as it is."
                if method == "idp-ls"
                else f"Not in every run at {list_names(cases.failed)}.",
            )
        )

    cases, words = Cases(), list[str]()
    for epsilon in epsilons if "wine" in tables else ():
        cases.add(f"epsilon {epsilon}", keep("f-measure", table="wine", method="idp-cbls", epsilon=epsilon))
        fields = {"table": "wine", "method": "idp-cbls", "epsilon": epsilon}
        larger = max(results.mean("f-measure", "not_above", k=k, **fields) for k in ks)
        words.append(f"epsilon {epsilon}: {larger / results.mean('f-measure', 'not_above', table='wine', method='original'):.1%}")
    more = f"The mean of both F-measures at the best k over the original's. Of the larger class only: {'; '.join(words)}"
    why = f"Not in every run of {list_names(cases.failed)}."
    claim = "On wine classifiers learn slightly more from idp-cbls than from the original."
    return [*found, cases.find(claim, source, more=more, why=why)]


def _judge_linkage(results: Results) -> Finding:
    cases, others = Cases(), list[float]()
    for one in results.of("linkage", epsilon="1"):
        name, method, k = (one.setting.text(field) for field in ("table", "method", "k"))
        if method == "idp-cbls":
            cases.add(f"{name}, k {k}", one.runs("linkage") / LINKED)
        else:
            others.append(float(one.runs("linkage").mean()))
    return cases.find(
        "At epsilon 1 idp-cbls leaves more than half of the records linked to their originals.",
        "this project",
        more=f"The percentage linked by all columns, over {LINKED:g}. The other methods link at most {max(others):.1f}% there. "
        "So at that epsilon anyone who holds the originals identifies most of the records. The claim covers each centroid, not "
        "which values belong together",
        why=f"Not at {list_names(cases.failed)}.",
    )


def _report_linkage(results: Results) -> str:
    epsilons = results.values("linkage", "epsilon")
    rows: list[list[str]] = []
    for name in results.values("linkage", "table"):
        for k in results.values("linkage", "k", table=name, method="idp-cbls"):
            means = (results.mean("linkage", "linkage", table=name, method="idp-cbls", k=k, epsilon=e) for e in epsilons)
            rows.append([name, str(k), *(f"{mean:.1f}" for mean in means)])
    return table(["table", "k", *(f"epsilon {epsilon}" for epsilon in epsilons)], rows)


def _report_best(results: Results) -> str:
    rows: list[list[str]] = []
    for name, epsilon in product(results.values("error", "table"), results.values("error", "epsilon")):
        row = [name, epsilon]
        for method in results.values("error", "method"):
            ks = results.values("error", "k", table=name, method=method)
            means = {k: results.mean("error", "sse", table=name, method=method, k=k, epsilon=epsilon, alpha="1.5") for k in ks}
            k = min(means, key=lambda k, means=means: means[k])
            row.append(f"{means[k]:.2g}" if method == "laplace" else f"{means[k]:.2g} (k {k})")
        rows.append(row)
    return table(
        [
            "table",
            "epsilon",
            *(f"{method} ({_definition_of(method)})" for method in results.values("error", "method")),
        ],
        rows,
    )


def _definition_of(method: str) -> str:
    return DEFINITIONS[find_claim(method, "column").definition.key]
