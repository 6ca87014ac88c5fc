"""KEA18's experiment, drawn and judged, with OLA's classes beside Mondrian's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from release_pipeline.experiments.measuring.kea18 import GROUPINGS, LABELS, QUASI
from release_pipeline.experiments.reporting.claims import Cases, Chapter, Finding, list_names, show, table
from release_pipeline.experiments.reporting.pictures import Panel, Picture, Series
from release_pipeline.experiments.runs import Results

WORDS = """\
**(k,epsilon)-anonymity is not differential privacy**, nor individual differential privacy. Epsilon is here of
*indistinguishability within a class*: any two records of a class could have given one released number with probabilities within
a factor e^epsilon, for discrete Laplace noise of scale ceil(diam / epsilon). diam is the greatest less the least number of the
class. Classes, scales and what is suppressed are read off the data, and nothing bounds what a changed record does to them. So
this page has no exact loss of it.

UCI Adult, 32,561 records; age, sex, race and marital status are generalised, and a height is masked. Ages have the paper's Table
I: years, 2, 4, 8 years, nothing. Heights are made up: normal, by sex and age, in whole millimetres, domain 1 to 2.5 m. `ola`
gives a column one level of its hierarchy in all records: the node of least loss among those where at most 5% of the records are
in classes below k, and these are dropped. `mondrian` recodes class by class and drops nobody; age is cut between any two years.
`mondrian-labels`, without noise and for comparison only, cuts age by the hierarchy that `ola` has.

- **Error**: the mean over records in classes of (released - original) / original, without its sign. It is measured after numbers
  were moved back into the domain; the closed form is of the noise before that.
- **Linking risk**: of a released record 1/|G| if its own original is among those nearest to it in its class, G, else 0; the mean
  over records in classes. The attacker knows everybody's exact height and class. **Chance**, classes / records, is the risk of a
  guess within the class. Records of small classes or at their edges are linked more often.
- **Suppression by confidence**: the box around a released number that holds its original with 99% confidence; the record goes if
  some of its class's originals are in the box, and fewer than k; then what is left of classes with fewer than k. Shares are of
  all records, and come on top of what the grouping dropped. The decision reads the originals.
- **Information loss**: the normalised certainty penalty. For a record and a column, (values that occur in the table and that its
  label stands for - 1) / (values that occur - 1); the mean over the four columns and over records: 0 is published as it is, 1
  tells nothing. Over all records, one that was dropped counts as 1. `ola` searches by another metric: the mean over columns of
  level / (levels - 1)."""

OMITTED = (
    "Figures 1 and 2 (the curse of dimensionality; noise of one scale, and uniform noise): only the one scale is compared here. "
    "The rest needs a table of many quasi-identifiers and a method of uniform noise, which this project does not have.",
    "Figures 7 and 8 (OLA is 14 to 32 times faster): times of the authors' program on their machine. The CPU times below compare "
    "other things, in compiled code.",
    "Florida and Michigan: registers of voters that name people, with weights; this project does not use them. Adult has no "
    "weights, so that heights are made up and absolute risks cannot be compared.",
    "30 runs: 10 are enough, as runs hardly differ. (epsilon, delta) within classes: this project has no such method.",
)
PAPER, OURS = "KEA18", "ours, not the paper's"
LINKED_AT_MOST, SUPPRESSED_AT_MOST = 0.05, 0.02
DROPPED = (0.0167, 0.048)  # the paper's Table IV, from the least to the greatest
AT = ("ola", 5, "10")  # where the paper links less than 5% at an error of 2.5%
ERROR_AT = 0.025
SMALL, LARGE = 1.0, 5.0  # epsilon: where suppression is said to be little, and from where on it is compared
FLOOR = 1e-6  # below one record in all runs

Runs = Callable[[str, int, str], np.ndarray]


def report(results: Results) -> Chapter:
    """The chapter of the page."""
    tables = [("Classes by k", _report_classes(results)), ("How far epsilon reaches", _report_reach(results))]
    if results.of("time"):
        tables.append(("CPU time over CPU time", _report_times(results)))
    return Chapter(
        "KEA18: (k,epsilon)-anonymity with OLA and with Mondrian",
        WORDS,
        (_draw_by_epsilon(results), *_draw_by_k(results)),
        (*_judge_paper(results), *_judge_groupings(results)),
        tuple(tables),
        omitted=OMITTED,
    )


def _measured(results: Results, measure: str) -> Runs:
    """A measure in all runs, by grouping, k and epsilon; `suppressed` is all that confidence suppresses."""
    parts = ("exposed", "left_too_small") if measure == "suppressed" else (measure,)
    found = {one.setting.fields: np.sum([one.runs(part) for part in parts], axis=0) for one in results.of("noise")}
    return lambda grouping, k, epsilon: found[("grouping", grouping), ("k", k), ("epsilon", epsilon)]


def _groups(results: Results) -> Iterator[tuple[str, int, list[str]]]:
    """Each grouping with each k, and the epsilons it was measured with."""
    for grouping in results.values("noise", "grouping"):
        for k in results.values("noise", "k", grouping=grouping):
            yield grouping, k, results.values("noise", "epsilon", grouping=grouping, k=k)


def _both(results: Results) -> Iterator[tuple[int, str]]:
    """Each k and epsilon that both groupings were measured with."""
    for grouping, k, epsilons in _groups(results):
        if grouping == "ola":
            yield from ((k, epsilon) for epsilon in epsilons if results.of("noise", grouping="mondrian", k=k, epsilon=epsilon))


def _draw_by_epsilon(results: Results) -> Picture:
    drawn = [name for name in results.values("noise", "grouping") if len(results.values("noise", "epsilon", grouping=name)) > 1]

    def lines(grouping: str, measure: str, *, thin: bool = False) -> list[Series]:
        runs = _measured(results, measure)
        return [
            Series(f"k = {k}", [float(x) for x in epsilons], [runs(name, k, x) for x in epsilons], thin=thin)
            for name, k, epsilons in _groups(results)
            if name == grouping
        ]

    error = [
        Panel(
            f"{name}: error",
            "epsilon",
            "relative error of a height",
            [*lines(name, "measured_error"), *lines(name, "expected_error", thin=True)],
            log_x=True,
            percent=True,
        )
        for name in drawn
    ]
    linking = [
        Panel(
            f"{name}: linking",
            "epsilon",
            "linking risk",
            [*lines(name, "linking"), *lines(name, "chance", thin=True)],
            log_x=True,
            percent=True,
            level=(LINKED_AT_MOST, "5%"),
            level_left=True,
        )
        for name in drawn
    ]
    suppressed = [
        Panel(
            f"{name}: suppressed by confidence",
            "epsilon",
            "share of all records",
            lines(name, "suppressed"),
            log_x=True,
            percent=True,
            level=(SUPPRESSED_AT_MOST, "2%"),
            level_left=True,
            floor=FLOOR,
        )
        for name in drawn
    ]
    return Picture(
        "kea18-epsilon",
        "Error, linking risk and suppression by epsilon of (k,epsilon)-anonymity, which is not DP. Thin lines: the closed form "
        "of the error, before numbers are moved back into the domain, and the linking risk of a guess within the class; without "
        "a mark: none in any run",
        [*error, *linking, *suppressed],
        across=len(drawn),
        alike=True,
    )


def _draw_by_k(results: Results) -> list[Picture]:
    names = [name for name in results.values("grouping", "grouping") if len(results.values("grouping", "k", grouping=name)) > 1]

    def lines(find: Callable[[str, int], np.ndarray]) -> list[Series]:
        made: list[Series] = []
        for look, name in enumerate(names, 5):
            ks = results.values("grouping", "k", grouping=name)
            made.append(Series(name, ks, [find(name, k) for k in ks], look=look))
        return made

    def penalty(measure: str) -> list[Series]:
        return lines(lambda name, k: results.runs("grouping", measure, grouping=name, k=k))

    def size(name: str, k: int) -> np.ndarray:
        return results.runs("grouping", "records", grouping=name, k=k) / results.runs("grouping", "classes", grouping=name, k=k)

    loss = "normalised certainty penalty"
    return [
        Picture(
            "kea18-loss",
            "Information loss of the generalised columns and size of classes by k: what is dropped counts as 1 in the middle, "
            "and not at all on the left",
            [
                Panel("information loss, records in classes", "k", loss, penalty("penalty"), log_x=True, log_y=False),
                Panel("information loss, all records", "k", loss, penalty("penalty_all"), log_x=True, log_y=False),
                Panel("records in a class, mean", "k", "records", lines(size), log_x=True),
            ],
        )
    ]


def _judge_paper(results: Results) -> list[Finding]:
    return [
        _judge_error(results),
        _judge_global(results),
        _judge_dropped(results),
        _judge_linking(results),
        _judge_one_setting(results),
        _judge_suppression(results),
        _judge_use(results),
        _judge_strength(),
        _judge_k(results),
        _judge_left(results),
    ]


def _judge_error(results: Results) -> Finding:
    error, expected = _measured(results, "measured_error"), _measured(results, "expected_error")
    cases, closed, off = Cases(), list[float](), list[float]()
    fallen = 0
    for grouping, k, epsilons in _groups(results):
        for one, more in pairwise(epsilons):
            before, after = error(grouping, k, one), error(grouping, k, more)
            cases.add(f"{grouping}, k {k}, epsilon {one} to {more}", before / after)
            fallen += bool(before.mean() > after.mean())
            closed.append(float((expected(grouping, k, one) / expected(grouping, k, more)).mean() / (float(more) / float(one))))
        off += [float(np.abs(error(grouping, k, x) / expected(grouping, k, x) - 1).max()) for x in epsilons if float(x) >= LARGE]
    more = (
        "The error at one epsilon over that at the next; said to hold above 1. The mean over runs fell in "
        f"{fallen} of {len(cases.ratios)} steps"
    )
    if closed:
        more += (
            f". The closed form falls from step to step by {show(min(closed))} to {show(max(closed))} of the factor of epsilon, "
            "as scales are rounded up"
        )
    if off:
        more += f", and what is measured from epsilon {LARGE:g} on is within {max(off):.1%} of it, run by run"
    more += _compare_mean(results)
    why = f"Where noise fills the domain whatever epsilon is, single runs can lie on either side: {list_names(cases.failed)}."
    return cases.find("The error falls as epsilon grows.", PAPER, more=more, why=why)


def _judge_global(results: Results) -> Finding:
    by_class, over_all, cases = _measured(results, "expected_error"), _measured(results, "global_error"), Cases()
    for grouping, k, epsilons in _groups(results):
        for x in epsilons:
            cases.add(f"{grouping}, k {k}, epsilon {x}", over_all(grouping, k, x) / by_class(grouping, k, x))
    more = "The error with the diameter of the whole table over that with the class's, closed forms"
    claim = "Noise by the class has less error than noise by the whole table."
    return cases.find(claim, PAPER, more=more, why=_name_failed(cases))


def _judge_dropped(results: Results) -> Finding:
    least, most = DROPPED
    cases, words = Cases(least=least - 0.00005, most=most + 0.00005), list[str]()
    for one in results.of("grouping", grouping="ola"):
        cases.add(f"k {one.setting.number('k')}", one.runs("dropped"))
        words.append(f"k {one.setting.number('k')}: {one.rows[0]['dropped']:.2%}")
    return Finding(
        f"OLA drops {100 * least:.2f} to {100 * most:.2f} percent of the records.",
        "KEA18, Table IV",
        cases.verdict,
        "; ".join(words),
        f"Not at {list_names(cases.failed)}: with all ages in one class fewer records are left over." if cases.failed else "",
        cases.share,
    )


def _judge_one_setting(results: Results) -> Finding:
    linked, grouping, k, epsilon = Cases(), *AT
    words = "not measured in a quick run"
    if results.of("noise", grouping=grouping, k=k, epsilon=epsilon):
        runs, error = (_measured(results, measure)(*AT) for measure in ("linking", "measured_error"))
        linked.add(f"{grouping}, k {k}, epsilon {epsilon}", np.minimum(LINKED_AT_MOST / runs, (ERROR_AT + 0.0005) / error))
        words = f"Linked {runs.mean():.1%}, error {error.mean():.1%}, means over runs"
    why = "The heights are made up here, and linking depends on them." if linked.failed else ""
    claim = f"At k {k} and epsilon {epsilon} less than 5% are linked, at an error of {ERROR_AT:.1%}."
    return Finding(claim, PAPER, linked.verdict, words, why, linked.share)


def _compare_mean(results: Results) -> str:
    """From which epsilon on every run has a smaller error than the class's mean has, by grouping and k."""
    error, found, means = _measured(results, "measured_error"), dict[str, list[str]](), list[float]()
    for grouping, k, epsilons in _groups(results):
        if results.of("grouping", grouping=grouping, k=k):
            means.append(results.mean("grouping", "mean_error", grouping=grouping, k=k))
            least = next((x for x in epsilons if np.all(error(grouping, k, x) < means[-1])), "none")
            found.setdefault(least, []).append(f"{grouping}, k {k}")
    if not found:
        return ""
    where = "; ".join(f"{least} ({'everywhere' if len(found) == 1 else ', '.join(its)})" for least, its in found.items())
    return (
        f". Whoever takes its class's mean for each height errs by {min(means):.1%} to {max(means):.1%}; a released number errs "
        f"by less only from an epsilon of {where}"
    )


def _judge_linking(results: Results) -> Finding:
    linking, error = _measured(results, "linking"), _measured(results, "measured_error")
    cases, reached, never = Cases(), list[str](), list[str]()
    for grouping, k, epsilons in _groups(results):
        least = min(epsilons, key=lambda x, grouping=grouping, k=k: float(linking(grouping, k, x).max()))
        cases.add(f"{grouping}, k {k}", LINKED_AT_MOST / linking(grouping, k, least))
        last = _reach(linking, grouping, k, epsilons, LINKED_AT_MOST)
        if last is None:
            never.append(f"{grouping}, k {k}: {float(linking(grouping, k, least).max()):.1%} at the least")
        else:
            cost = float(error(grouping, k, last).mean())
            reached.append(f"{grouping}, k {k}: {last} (error {cost:.1%})")
    guess = {name: results.mean("noise", "chance", grouping=name, k=k, epsilon=x[0]) for name, k, x in _groups(results) if k == 2}
    more = "5% over the risk, at the epsilon of least risk. In every run under 5% up to an epsilon of: " + "; ".join(reached)
    if guess:
        more += ". A guess within the class alone links, with k 2, " + " and ".join(f"{x:.1%} ({n})" for n, x in guess.items())
    more += ". By itself this is no feat: a guess links less than 5% for every k here, and so does noise without end"
    return cases.find("A linking risk under 5% is reachable.", PAPER, more=more, why=f"{list_names(never)}.")


def _judge_use(results: Results) -> Finding:
    """Where a release is of use and safe at once: no worse than the class's mean, linked less than 5%, suppressed less than
    2%."""
    error, linking, suppressed = (_measured(results, measure) for measure in ("measured_error", "linking", "suppressed"))
    cases, words = Cases(), list[str]()
    for grouping, k, epsilons in _groups(results):
        if not results.of("grouping", grouping=grouping, k=k):
            continue
        rough = results.mean("grouping", "mean_error", grouping=grouping, k=k)
        useful = [x for x in epsilons if float(error(grouping, k, x).max()) < rough]
        safe = [x for x in useful if float(linking(grouping, k, x).max()) < LINKED_AT_MOST]
        both = [x for x in safe if float(suppressed(grouping, k, x).max()) < SUPPRESSED_AT_MOST]
        cases.add(f"{grouping}, k {k}", np.array([2.0 if both else 0.0]))
        words.append(
            f"{grouping}, k {k}: {' to '.join(dict.fromkeys((safe[0], safe[-1]))) if safe else 'none'}"
            f" ({' to '.join(dict.fromkeys((both[0], both[-1]))) if both else 'none'})"
        )
    return Finding(
        "There is an epsilon at which released numbers are nearer than the class's mean, linking is under 5% and "
        "suppression under 2%.",
        OURS,
        cases.verdict,
        f"Epsilons, in every run, with error and linking alone (with suppression, too): {'; '.join(words)}",
        f"Where noise is small enough to be of use, it links and stands out. None for {list_names(cases.failed, 12)}."
        if cases.failed
        else "",
        cases.share,
    )


def _judge_strength() -> Finding:
    """The claim of the paper's abstract."""
    return Finding(
        "(k,epsilon)-anonymity is at least as strong as k-anonymity and epsilon-differential privacy by themselves.",
        PAPER,
        "does not hold",
        "Not measured: counterexamples, which tests compute (docs/guarantees.md). Scales are read off the class, so that "
        "nothing bounds what a changed record does to them; two people exchanged in the class {0, 10} at epsilon 1 are told "
        "apart by a factor of e^2; given that a record was kept the factor can be e^1.31. And numbers with noise of their own "
        "are no longer the same in k records",
        "The scale is calibrated to one record of a class that stays as it is.",
    )


def _judge_suppression(results: Results) -> Finding:
    suppressed = _measured(results, "suppressed")
    cases, reached = Cases(least=-1, most=1), list[str]()
    for grouping, k, epsilons in _groups(results):
        for x in epsilons:
            if float(x) <= SMALL:
                cases.add(f"{grouping}, k {k}, epsilon {x}", suppressed(grouping, k, x) / SUPPRESSED_AT_MOST)
        last = _reach(suppressed, grouping, k, epsilons, SUPPRESSED_AT_MOST)
        if last is not None:
            most = float(suppressed(grouping, k, epsilons[-1]).mean())
            reached.append(f"{grouping}, k {k}: {last} ({most:.1%} at {epsilons[-1]})")
    more = (
        f"What is suppressed, over 2%, for epsilon up to {SMALL:g} (the bound of what is small is ours); said to hold below 1. "
        f"In every run under 2% up to an epsilon of: {'; '.join(reached)}. What the grouping dropped before is not in it"
    )
    return cases.find(
        "99%-confident k-anonymity suppresses under 2% for small epsilon.", PAPER, more=more, why=_name_failed(cases)
    )


def _judge_k(results: Results) -> Finding:
    linking, cases, fallen = _measured(results, "linking"), Cases(), 0
    for grouping in results.values("noise", "grouping"):
        for epsilon in results.values("noise", "epsilon", grouping=grouping):
            for one, more in pairwise(results.values("noise", "k", grouping=grouping, epsilon=epsilon)):
                before, after = linking(grouping, one, epsilon), linking(grouping, more, epsilon)
                cases.add(f"{grouping}, epsilon {epsilon}, k {one} to {more}", before / after)
                fallen += bool(before.mean() > after.mean())
    return cases.find(
        "More k, less linking.",
        OURS,
        more=f"The linking risk at one k over that at the next; the mean over runs fell in {fallen} of {len(cases.ratios)} steps",
        why=f"Classes that are nearly the same, and noise of their own: {list_names(cases.failed, 4)}.",
    )


def _judge_left(results: Results) -> Finding:
    linking, left, cases = _measured(results, "linking"), _measured(results, "linking_left"), Cases()
    for grouping, k, epsilons in _groups(results):
        for x in epsilons:
            rest = left(grouping, k, x)
            if float(x) >= LARGE and rest.all():
                cases.add(f"{grouping}, k {k}, epsilon {x}", linking(grouping, k, x) / rest)
    return cases.find(
        "Who stands out is whom linking finds: without them the risk is lower.",
        OURS,
        more=f"The linking risk of all records in classes over that of those which confidence leaves, from epsilon {LARGE:g} on",
        why=_name_failed(cases),
    )


def _judge_groupings(results: Results) -> list[Finding]:
    found: list[Finding] = []
    ks = [k for k in results.values("grouping", "k") if len(results.of("grouping", k=k)) == 3]

    def penalty(name: str, k: int, measure: str = "penalty_all") -> float:
        return results.mean("grouping", measure, grouping=name, k=k)

    cases = Cases()
    for k in ks:
        cases.add(f"k {k}", np.array([penalty("ola", k) / penalty("mondrian", k)]))
    kept = [k for k in ks if penalty("mondrian", k, "penalty") < penalty("ola", k, "penalty")]
    labels = [k for k in ks if penalty(LABELS, k) < penalty("ola", k)]
    found.append(
        Finding(
            "Mondrian loses less of the generalised columns than OLA at the same k, if a dropped record counts as lost.",
            OURS,
            cases.verdict,
            "not measured in a quick run"
            if not ks
            else f"OLA's penalty over Mondrian's: {', '.join(f'{name}: {show(one[0])}' for name, one in cases.ratios.items())}; "
            "without noise, so one figure for each k. Over records in classes alone Mondrian loses less at "
            f"{_list_ks(kept)}; with age cut by OLA's hierarchy ({LABELS}, dropped records counted) at {_list_ks(labels)}: what "
            "it gains comes from dropping nobody and from cutting age anywhere. The two lose different columns (table)",
            "Mondrian cuts a column of labels only if every label that occurs has k records in the class, which rare labels "
            f"forbid; OLA drops such records, and coarsens age alone ({list_names(cases.failed)})."
            if cases.failed
            else "",
        )
    )

    def compare(claim: str, measure: str, words: str, why: str, *, swap: bool = False, least: float = 0) -> None:
        cases, runs = Cases(), _measured(results, measure)
        for k, x in _both(results):
            if float(x) >= least:
                ola, mondrian = runs("ola", k, x), runs("mondrian", k, x)
                cases.add(f"k {k}, epsilon {x}", ola / mondrian if swap else mondrian / ola)
        found.append(cases.find(claim, OURS, more=words, why=f"{why} ({list_names(cases.failed, 4)})."))

    compare(
        "Linking is likelier in Mondrian's classes than in OLA's at the same k.",
        "linking",
        f"Mondrian's linking risk over OLA's. At the same k its classes are smaller{_report_sizes(results)}: k is but the least",
        "Not in every single run, where both are near chance and their classes alike",
    )
    compare(
        "Errors are smaller in Mondrian's classes than in OLA's at the same k.",
        "measured_error",
        "OLA's error over Mondrian's: smaller classes are narrower",
        "Where noise fills the domain, or classes are alike, runs overlap",
        swap=True,
    )
    compare(
        "Confidence suppresses more in Mondrian's classes than in OLA's at the same k.",
        "suppressed",
        f"Mondrian's share over OLA's, from epsilon {LARGE:g} on: the smaller the class, the fewer of it are in a box",
        "Runs overlap",
        least=LARGE,
    )
    return found


def _name_failed(cases: Cases) -> str:
    return f"Not so: {list_names(cases.failed)}."


def _report_sizes(results: Results) -> str:
    """The mean size of classes at the least and at the greatest k, where both groupings were counted."""
    found = {(one.setting.text("grouping"), one.setting.number("k")): one.rows[0] for one in results.of("grouping")}
    ks = sorted(k for name, k in found if name == "ola" and ("mondrian", k) in found)
    sizes = {name: [found[name, k]["records"] / found[name, k]["classes"] for k in ks] for name in GROUPINGS}
    if not ks:
        return ""
    mine, its = sizes["mondrian"], sizes["ola"]
    first, last = (f"{mine[end]:,.0f} records against {its[end]:,.0f} at k {ks[end]}" for end in (0, -1))
    return f" (on average {first}, {last})"


def _list_ks(ks: list[int]) -> str:
    return f"k {', '.join(map(str, ks))}" if ks else "no k"


def _reach(runs: Runs, grouping: str, k: int, epsilons: list[str], most: float) -> str | None:
    """The largest epsilon such that every run of it and of all smaller ones is below; None if there is none."""
    reached: str | None = None
    for epsilon in epsilons:
        if not np.all(runs(grouping, k, epsilon) < most):
            break
        reached = epsilon
    return reached


def _report_classes(results: Results) -> str:
    """What the groupings come to by themselves."""
    rows: list[list[str]] = []
    for one in results.of("grouping"):
        name, k, found = one.setting.text("grouping"), one.setting.number("k"), one.rows[0]
        node = results.of("node", k=k)[0].rows[0]
        ola = name == "ola"
        rows.append(
            [
                str(k),
                name,
                ", ".join(f"{node[column]:g}" for column in QUASI) if ola else "",
                f"{node['loss']:.4f}" if ola else "",
                f"{found['classes']:,.0f}",
                f"{found['records'] / found['classes']:,.0f}",
                f"{found['dropped']:.2%}",
                f"{found['penalty']:.4f}",
                ", ".join(f"{found[f'penalty_{column}']:.3f}" for column in QUASI),
                f"{found['penalty_all']:.4f}",
                f"{found['mean_error']:.2%}",
            ]
        )
    rows.sort(key=lambda row: int(row[0]))
    head = ["k", "grouping", "OLA's levels", "OLA's metric", "classes", "records in a class, mean", "dropped"]
    lost = ["penalty, records in classes", "by column", "penalty, all records", "error of the class's mean"]
    same = max(one.rows[0]["same"] for one in results.of("grouping"))
    return (
        f"Levels and penalties by column are of {', '.join(QUASI).replace('_', ' ')}, in this order. In classes of one height "
        f"only, which is released as it is, are at most {same:.2%} of the records.\n\n{table([*head, *lost], rows)}"
    )


def _report_reach(results: Results) -> str:
    """Up to which epsilon every run keeps to 5% and 2%."""
    rows: list[list[str]] = []
    linking, suppressed = _measured(results, "linking"), _measured(results, "suppressed")
    for name, k, epsilons in _groups(results):
        chance = results.mean("noise", "chance", grouping=name, k=k, epsilon=epsilons[0])
        both: list[str] = []
        for runs, most in ((linking, LINKED_AT_MOST), (suppressed, SUPPRESSED_AT_MOST)):
            last = _reach(runs, name, k, epsilons, most)
            both.append("none" if last is None else f"{last}{'' if last != epsilons[-1] else ' (the largest measured)'}")
        means = (f"{runs(name, k, x).mean():.2%}" for x in (epsilons[0], epsilons[-1]) for runs in (linking, suppressed))
        rows.append([str(k), name, f"{chance:.2%}", *both, *means])
    rows.sort(key=lambda row: int(row[0]))
    head = ["k", "grouping", "chance", "linking under 5% up to epsilon", "suppression under 2% up to epsilon"]
    ends = ("smallest", "largest")
    return table([*head, *(f"{what} at the {end} epsilon" for end in ends for what in ("linking", "suppression"))], rows)


def _report_times(results: Results) -> str:
    """Medians over runs, and their range."""
    heads = {
        "mondrian_over_ola": "Mondrian over OLA",
        "noise_over_ola": "noise over OLA",
        "noise_over_mondrian": "noise over Mondrian",
    }
    rows: list[list[str]] = []
    for one in results.of("time"):
        found = [one.runs(measure) for measure in heads]
        rows.append(
            [str(one.setting.number("k")), *(f"{show(np.median(x))} ({show(x.min())} to {show(x.max())})" for x in found)]
        )
    return (
        "Of one process on the same records, with everything compiled before; noise is scales and noise of the heights, at "
        "epsilon 1. Medians over runs, with their range; they differ from run to run and from machine to machine, and are "
        "compared with nothing.\n\n" + table(["k", *heads.values()], rows)
    )
