"""The settings that were tried, as one table for the terminal, made from the document that `explore --json` prints."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.explore.data import Asked, Data, read_data
from release_pipeline.explore.document import ExploreDocument, RefusedView, view_setting
from release_pipeline.explore.simulating import Bench, Refused, Tried, Written, try_settings
from release_pipeline.ledger.policies import read_caps
from release_pipeline.masking.simulation import LINKED
from release_pipeline.mechanisms.basis.figures import count_of, format_number, format_share, percent
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.pipeline.cap import HeadroomView, read_headrooms, view_headroom
from release_pipeline.pipeline.check import check_policy
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.settings import Axes, Changed, Setting, Strength, find_best, list_settings
from release_pipeline.policy.values.formats import ask_for_near, decimal_text
from release_pipeline.sentences import EXPLORE
from release_pipeline.store.site import Site, find_site

Plain = Mapping[str, Any]  # a part of a document, as a script reads it
Draw = Callable[[Sequence[Sequence[str]]], Iterable[str]]  # a table of rows, the head first, as lines
SHOWN = 12  # settings in the terminal, where not all are asked for
MOST_COLUMNS = 6  # whose errors have a separate column in the terminal
DIGITS = 2
_AMOUNT_DIGITS, _LONG_AMOUNT = 4, re.compile(r"(?<![\d.])\d+\.\d{7,}(?!\d)")  # of rho, and of its epsilon


@dataclass(frozen=True, slots=True)
class Table:
    """A table as text: the heads of its columns, and the cells of each setting. `is_best`: whether no other beats it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_best: tuple[bool, ...]


def tabulate(document: Plain) -> Table:
    """Return the table with a row for every setting: its claim, how near to the records it is, who is linked, and the remaining
    budget."""
    settings: Sequence[Plain] = document["settings"]
    heads = EXPLORE.read_section("head")
    is_best = _find_best(settings)
    names = document["columns"] if len(document["columns"]) <= MOST_COLUMNS else ()
    parts: dict[str, Callable[[Plain], str]] = {
        heads["number"]: lambda setting: str(setting["number"]),
        heads["setting"]: lambda setting: setting["words"] + (EXPLORE("mark.own") if setting["number"] == 1 else ""),
        heads["claims"]: describe_claim,
    }
    for name in names:
        parts[EXPLORE("column.error", column=name)] = lambda setting, name=name: say_range(setting["columns"][name]["error"])
    if not names:
        parts[heads["error"]] = lambda setting: say_range(setting["error"])
    if any(setting["correlation"]["middle"] is not None for setting in settings):
        parts[heads["correlations"]] = lambda setting: say_range(setting["correlation"])
    parts[heads["linked"]] = describe_linkage
    parts[heads["after"]] = lambda setting: describe_ledger(setting["ledger"])
    rows = tuple(tuple(write(setting) for write in parts.values()) for setting in settings)
    return Table(tuple(parts), rows, tuple(is_best))


def describe_exploration(document: Plain, *, every: bool, draw: Draw | None = None) -> Iterator[str]:
    """Yield the document in lines for a person; the policy's own setting and the best, or every one. `draw` draws the table in
    another way."""
    yield EXPLORE("line.tried", policy=document["policy"], words=document["on_words"], rows=count_of(document["rows"], "record"))
    yield from (EXPLORE("line.note", words=words) for words in document["warnings"])
    table = tabulate(document)
    shown = list(range(len(table.rows))) if every else _choose(document, table)
    if shown:
        yield ""
        yield from (draw or align)([table.head, *(table.rows[number] for number in shown)])
    yield from describe_figures(document)
    yield from _say_lines(document["settings"][number] for number in shown)
    if left := len(table.rows) - len(shown):
        yield EXPLORE("line.beaten", settings=count_of(left, "setting"))
    if every:
        yield from (EXPLORE("line.refused", words=one["words"], why=one["why"]) for one in document["refused"])
    else:
        yield from _sum_up(document)


def describe_figures(document: Plain) -> Iterator[str]:
    """Yield the meaning of the table's figures, and what would lower the risks that it shows."""
    settings: Sequence[Plain] = document["settings"]
    if not settings:
        yield EXPLORE("line.nothing")
        return
    yield EXPLORE("line.errors")
    if any(setting["correlation"]["middle"] is not None for setting in settings):
        yield EXPLORE("line.correlations")
    if any(setting["linkage_ladder"] for setting in settings):
        yield EXPLORE("line.linked")
    if any(setting.get("linked_at_most") is not None for setting in settings):
        yield EXPLORE("line.swapped")
    if over := [setting for setting in settings if setting.get("linkage_limit") is not None]:
        limit = percent(Decimal(str(over[0]["linkage_limit"])))
        yield EXPLORE("line.over_gate", settings=_say_numbers(over), limit=limit)
    for proposal in dict.fromkeys(setting["proposal"] for setting in settings if setting.get("proposal")):
        proposed = [setting for setting in settings if setting.get("proposal") == proposal]
        yield EXPLORE("line.proposal", settings=_say_numbers(proposed), proposal=proposal)


def _say_lines(settings: Iterable[Plain]) -> Iterator[str]:
    """Yield, for each setting except the policy's own, the lines that a person would put into the policy file."""
    for setting in settings:
        if setting["number"] != 1:
            lines = "; ".join((setting["block"], *setting["changes"]))
            yield EXPLORE("line.take", number=setting["number"], lines=lines)


def align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.rjust(widths[0]), *cells]).rstrip()


def describe_claim(setting: Plain) -> str:
    """Return the kind of claim, in a cell."""
    kinds = EXPLORE.read_section("definition")
    scopes = EXPLORE.read_section("scope")
    scope = scopes["table" if setting["covers_table"] else setting["scope"]]
    return EXPLORE("cell.claim", definition=kinds[setting["definition"]], scope=scope)


def describe_linkage(setting: Plain) -> str:
    """Return the ladder of linkage in a cell, and whether the gate would refuse it."""
    if not (ladder := setting["linkage_ladder"]):
        return EXPLORE("cell.nobodys")
    linked = " / ".join(format_share(rung["linked"], DIGITS) for rung in ladder)
    return EXPLORE("cell.over_gate", linked=linked) if setting.get("linkage_limit") is not None else linked


def describe_ledger(ledger: Plain | None) -> str:
    """Return the remaining budget of the ledger after a release, in a cell."""
    if ledger is None:
        return EXPLORE("ledger.none")
    if ledger["rows_needed"]:
        return EXPLORE("ledger.rows")
    first = ledger["next"]
    if first is None:
        return EXPLORE("ledger.charged")
    if not first["fits"]:
        amount, remaining = round_amounts(first["amount"]), round_amounts(ledger["remaining"], up=False)
        return EXPLORE("ledger.refused", amount=amount, remaining=remaining)
    after, fitting, ahead = round_amounts(first["after"]), ledger["fitting"], len(ledger["ahead"])
    return EXPLORE("ledger.fits", after=after, cap=ledger["cap"], fitting=fitting, ahead=ahead)


def say_range(figure: Plain) -> str:
    """Return a figure, and the range of 99 of 100 releases."""
    middle, low, high = (format_number(figure[key], DIGITS) for key in ("middle", "low", "high"))
    if figure["middle"] is not None and figure["low"] is None:
        return EXPLORE("cell.few", middle=middle)
    if figure["low"] == 0:
        return EXPLORE("cell.up_to", middle=middle, high=high)
    return middle if low == high else EXPLORE("cell.range", middle=middle, low=low, high=high)


def round_amounts(text: str, *, up: bool = True) -> str:
    """Return the text with four significant digits in amounts of seven decimals and more. A rho is that of a declared epsilon,
    rounded down, so that both have as many digits as the ledger counts. Amounts stay true when rounded up; remaining budget is
    rounded down.

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


def _find_best(settings: Sequence[Plain]) -> list[bool]:
    claims = [Strength(one["definition"], one["scope"], one["covers_table"], one["k"]) for one in settings]
    epsilons = [None if one["epsilon"] is None else float(one["epsilon"]) for one in settings]
    return find_best(claims, epsilons, [one["error"]["middle"] for one in settings])


def _choose(document: Plain, table: Table) -> list[int]:
    """Return the policy's own setting, and of those that no other beats the first, method by method."""
    settings: Sequence[Plain] = document["settings"]
    best = [at for at, one in enumerate(settings) if table.is_best[at] and one["number"] != 1]
    best.sort(key=lambda at: (settings[at]["method"], float(settings[at]["epsilon"] or 0)))
    return [*(at for at, one in enumerate(settings) if one["number"] == 1), *best[:SHOWN]]


def _sum_up(document: Plain) -> Iterator[str]:
    """Yield what was not tried: for a method that was not tried at all, the reason that would refuse most of its settings."""
    tried = {setting["method"] for setting in document["settings"]}
    reasons: dict[str, Counter[str]] = {}
    for refused in document["refused"]:
        reasons.setdefault(refused["words"].partition(",")[0], Counter())[refused["why"]] += 1
    for method, whys in reasons.items():
        if method not in tried:
            yield EXPLORE("line.method_refused", method=method, why=whys.most_common(1)[0][0])
    by_ledger = sum(refused["by_ledger"] for refused in document["refused"])
    if by_ledger:
        yield EXPLORE("line.by_ledger", settings=count_of(by_ledger, "setting"))
    if others := len(document["refused"]) - by_ledger:
        yield EXPLORE("line.others_refused", settings=count_of(others, "setting"))


def _say_numbers(settings: Sequence[Plain]) -> str:
    """Return the numbers of settings; successive ones by the first and the last.

    >>> _say_numbers([{"number": number} for number in (1, 3, 4, 5, 9)])
    '1, 3-5, 9'
    """
    runs: list[list[int]] = []
    for setting in settings:
        if runs and setting["number"] == runs[-1][-1] + 1:
            runs[-1].append(setting["number"])
        else:
            runs.append([setting["number"]])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# `explore`: the settings of a policy, tried before anything is spent on records that are public or
# made up.


Progress = Callable[[str], None]


def explore(file: Path, asked: Asked, *, progress: Progress) -> ExploreDocument:
    """Return every setting of the policy in `file` that was asked for, with predictions of its releases and their cost."""
    check = check_policy(file, rows=None, home=asked.home)
    policy, written = check.plan.policy, Written.of(file)
    site = None if check.home is None else find_site(check.home)
    if site is not None:
        read_caps(site).of(policy)  # refused before anything is recorded or simulated
    settings = list_asked(written, policy, asked.axes)
    refused = [] if site is None or asked.refused else _ask_ledger(site, written, settings, asked.rows)
    data = read_data(policy, asked, site, settings, file)
    bench = Bench(
        written,
        policy,
        data.records,
        asked.rows or data.records.count,
        hashlib.sha256(f"explored: {policy.policy}".encode()).digest(),  # the same noise each time
    )
    results = _try_others(bench, settings, refused, progress=progress)
    return _make_document(bench, asked, data, results, site)


def list_asked(written: Written, policy: Policy, axes: Axes) -> list[Setting]:
    """Return the settings that are asked for, in the order of their numbers."""
    if not policy.noise_columns:
        raise WrongUsage("no column of this policy is masked.", where=written.name, remedy="There is nothing to choose.")
    for name in axes.methods:
        if name not in METHODS:
            remedy = ask_for_near(name, METHODS, f"There are: {', '.join(METHODS)}.")
            raise WrongUsage(f"there is no method '{name}'.", where="--methods", remedy=remedy)
    return list_settings(written.raw, policy, axes)


def _ask_ledger(site: Site, written: Written, settings: Sequence[Setting], rows: int | None) -> list[Refused]:
    """Return the settings of which the ledger would refuse a release, as it is now."""
    changed: list[Changed] = []
    for setting in settings:
        with suppress(PolicyInvalid):  # it is refused for what is wrong with it
            changed.append(written.change(setting))
    rooms = _read_ledgers(site, changed, rows)
    return [Refused(one.setting, why, by_ledger=True) for one, room in zip(changed, rooms, strict=True) if (why := _refuse(room))]


def _read_ledgers(site: Site | None, changed: Sequence[Changed], rows: int | None) -> list[HeadroomView | None]:
    if site is None or not changed:
        return [None] * len(changed)
    return [view_headroom(room) for room in read_headrooms(site, [one.policy for one in changed], rows=rows)]


def _refuse(room: HeadroomView | None) -> str:
    """Return why the ledger would refuse the next release; empty where it would not, or where that is not known."""
    if room is None:
        return ""
    if room.needs:
        return f"the ledger would refuse it: {room.needs}"
    if room.next is None or room.next.fits:
        return ""
    return f"the ledger would refuse it: it takes {room.next.amount}, of which {room.remaining} is left"


def _try_others(
    bench: Bench, settings: Sequence[Setting], refused: Sequence[Refused], *, progress: Progress
) -> list[Tried | Refused]:
    """Return the result of each setting, in their order; those that are refused already are not tried."""
    by_words = {refusal.setting.summary: refusal for refusal in refused}
    open_settings = [setting for setting in settings if setting.summary not in by_words]
    tried = iter(try_settings(bench, open_settings, progress=progress))
    return [by_words.get(setting.summary) or next(tried) for setting in settings]


def _make_document(
    bench: Bench,
    asked: Asked,
    data: Data,
    results: Sequence[Tried | Refused],
    site: Site | None,
) -> ExploreDocument:
    numbered = list(enumerate(results, 1))  # 1 is the policy as it is
    tested = [(number, result) for number, result in numbered if isinstance(result, Tried)]
    ledgers = _read_ledgers(site, [result.changed for _, result in tested], bench.rows)
    views = [view_setting(result, number) for number, result in tested]
    warnings = [*data.warnings]
    if bench.rows > LINKED and any(view.linkage_ladder for view in views):
        warnings.append(f"linkage is of {LINKED:,} among {bench.linked.records.count:,} records of one simulated release")
    return ExploreDocument(
        policy=bench.policy.policy,
        hash=bench.policy.canonical_hash(),
        population=bench.policy.population,
        on="shape" if asked.shape else "like",
        on_words=data.description,
        rows=bench.rows,
        warnings=tuple(warnings),
        groupings=bench.groupings,
        columns=tuple(bench.policy.noise_columns),
        settings=tuple(replace(view, ledger=ledger) for view, ledger in zip(views, ledgers, strict=True)),
        refused=tuple(
            RefusedView(number, result.setting.summary, result.why, result.by_ledger)
            for number, result in numbered
            if isinstance(result, Refused)
        ),
    )
