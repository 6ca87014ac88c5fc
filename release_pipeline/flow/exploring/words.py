"""An exploration in lines for a person: what was asked for, and the settings that no other beats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from release_pipeline.flow.exploring.document import ExploreDocument, RefusedView, SettingView
from release_pipeline.flow.exploring.ranges import RangeView
from release_pipeline.policy.strength import Strength, find_best
from release_pipeline.privacy.figures import count_of, show_figure

SHOWN = 12  # settings, where not all are asked for
LISTED = 4  # settings that would be refused for the same; of more their number is told
_KNOWN = ("the kept columns only", "one {} column too", "two {} columns too")
MOST_COLUMNS = 6  # whose errors have a column of their own


def describe_exploration(document: ExploreDocument, *, every: bool) -> Iterator[str]:
    """The document in lines for a person."""
    yield f"{document.policy}: tried on {document.on_words}; releases of {document.rows:,} records"
    if document.is_look:
        yield "This was a look at confidential records: it is noted in the registry, and the cards of later releases tell of it."
    yield from (f"note: {warning}" for warning in document.warnings)
    for solved in document.solved:
        reached = ", ".join(f"{text} gives {show_figure(value)}" for text, value in solved.reached.items())
        if solved.met:
            number = f" (setting {solved.number})" if solved.number else ""
            yield f"target: {solved.words}{number}: {reached}"
        else:
            yield f"target: {solved.words.split(',')[0]}: no: {solved.why.rstrip('.')}"
    for split in document.splits:
        yield (
            f"weights: {split.words}{f' (setting {split.number})' if split.number else ''}: the largest error falls from "
            f"{show_figure(split.before)} to {show_figure(split.after)}"
        )
    yield from (f"domain: {domain.words}" for domain in document.domains)
    shown = list(document.settings) if every else _choose(document)
    yield ""
    yield from _tabulate(document, shown)
    if len(shown) < len(document.settings):
        yield f"{len(document.settings) - len(shown)} settings that others beat are not shown: --all, --json, or -o PAGE.html"
    if document.refused:
        yield from _list_refused(document.refused) if every else _sum_up(document)


def _list_refused(every: Sequence[RefusedView]) -> Iterator[str]:
    """All that was not tried: the settings of a method that would be refused for the same in one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in every:
        method, _, rest = one.words.partition(", ")
        alike.setdefault((method, one.why), []).append(rest)
    for (method, why), settings in alike.items():
        which = "; ".join(settings) if len(settings) <= LISTED else count_of(len(settings), "setting")
        yield f"not tried: {method}{f', {which}' if which else ''}: {why}"


def _sum_up(document: ExploreDocument) -> Iterator[str]:
    """What was not tried: of a method that was not tried at all what most of its settings would be refused for."""
    tried = {one.method for one in document.settings}
    reasons: dict[str, Counter[str]] = {}
    for one in document.refused:
        reasons.setdefault(one.words.partition(",")[0], Counter())[one.why] += 1
    for method, whys in reasons.items():
        if method not in tried:
            yield f"{method} was not tried: {whys.most_common(1)[0][0]}"
    ledger = sum(one.by_ledger for one in document.refused)
    if ledger:
        yield f"{count_of(ledger, 'setting')} would be refused by the ledger: --refused tries them all the same"
    if others := len(document.refused) - ledger:
        yield f"{count_of(others, 'setting')} would be refused: --all says why"


def _choose(document: ExploreDocument) -> list[SettingView]:
    """The policy's own setting, and those that no other beats (`find_best`)."""
    views = document.settings
    claims = [Strength(one.definition, one.scope, one.covers_table, one.k) for one in views]
    epsilons = [None if one.epsilon is None else float(one.epsilon) for one in views]
    is_best = find_best(claims, epsilons, [one.error.middle for one in views])
    best = [one for one, is_one in zip(views, is_best, strict=True) if is_one]
    ordered = sorted(best, key=lambda one: (one.method, float(one.epsilon or 0)))[:SHOWN]
    own = [one for one in document.settings if one.number == 1]
    return [*own, *(one for one in ordered if one.number != 1)]


def _tabulate(document: ExploreDocument, shown: list[SettingView]) -> Iterator[str]:
    names = [column.name for column in document.columns]
    told = names if len(names) <= MOST_COLUMNS else []
    is_linked = any(view.correlation.middle is not None for view in shown)
    head = [
        "",
        "setting",
        "claims",
        *([f"error of {name}" for name in told] or ["largest error", "mean error"]),
        *(["correlations"] if is_linked else []),
        "linked",
        "spent after",
    ]
    rows = [head]
    for view in shown:
        errors = (
            [_say_range(view.columns[name].error) for name in told] if told else [_say_range(view.error), _say(view.mean_error)]
        )
        errors += [_say(view.correlation.middle)] if is_linked else []
        ledger = view.ledger.next if view.ledger is not None else None
        after = "" if ledger is None else f"{ledger.after} of {_cap_of(view)}" if ledger.fits else "refused"
        linked = "nobody's" if view.linkage is None else " / ".join(f"{rung.linked:.1%}" for rung in view.linkage_ladder)
        linked += "" if view.linkage_limit is None else ": refused"
        claims = f"{view.definition}, {'whole table' if view.covers_table else view.scope}"
        rows.append([str(view.number), view.words + " (the policy's)" * (view.number == 1), claims, *errors, linked, after])
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    for number, *rest in rows:
        cells = (cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([number.rjust(widths[0]), *cells]).rstrip()
    yield (
        "Errors are mean squared differences over the variance: 1 is no better than publishing the mean. In brackets: where 99 "
        "of 100 releases should be."
    )
    if is_linked:
        yield "Correlations: how far those of two columns are off, on average."
    ladder = max((view.linkage_ladder for view in shown), key=len, default=())
    if ladder:
        masked = "masked" if all(view.linked_at_most is None for view in shown) else "masked or swapped"
        known = [_KNOWN[rung.masked].format(masked) for rung in ladder[:-1]]
        yield f"Linked: rows found by someone who knows {' / '.join([*known, 'all released columns'])}."
    if over := [view for view in shown if view.linkage_limit is not None]:
        numbers, limit = ", ".join(str(view.number) for view in over), over[0].linkage_limit or 0
        refused = f"refused by the policy's gate linkage, which allows at most {100 * limit:.3g}%. It takes the worst of several "
        refused += "simulated releases, so that what is close to it may be refused too."
        yield f"{count_of(len(over), 'setting')} ({numbers}): {refused}"
    for proposal in dict.fromkeys(view.proposal for view in shown if view.proposal):
        numbers = [str(view.number) for view in shown if view.proposal == proposal]
        yield f"{count_of(len(numbers), 'setting')} ({', '.join(numbers)}): {proposal}"


def _cap_of(view: SettingView) -> str:
    return "" if view.ledger is None else view.ledger.cap


def _say_range(found: RangeView) -> str:
    if found.middle is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{_say(found.middle)} [too few draws]"
    return f"{_say(found.middle)} [{_say(found.low)}, {_say(found.high)}]"


def _say(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value < 100 else f"{value:,.0f}"
