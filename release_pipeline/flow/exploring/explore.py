"""`explore`: the settings of a policy, tried before anything is spent on records that are public or made up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.flow.exploring.data import Asked, Data, read_data
from release_pipeline.flow.exploring.document import ExploreDocument, RefusedView
from release_pipeline.flow.exploring.simulating import FEWEST, Bench, Refused, Tried, Written, try_settings
from release_pipeline.flow.exploring.targets import (
    Target,
    count_draws,
    count_sequences,
    find_met,
    read_target,
)
from release_pipeline.flow.exploring.views import view_setting
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.status.check import check_policy
from release_pipeline.flow.status.headroom import HeadroomView, read_headrooms, view_headroom
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.formats import ask_for_near
from release_pipeline.policy.settings import Axes, Changed, Setting, list_settings, write_setting
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.report.exploring import Draw, describe_exploration
from release_pipeline.stages.simulation import LINKED

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Explored:
    """What came out, of a policy with the method `own`."""

    document: ExploreDocument
    own: str


def explore(file: Path, asked: Asked, *, progress: Progress = lambda _: None) -> Explored:
    """Every setting of the policy in `file` that was asked for, with what releases would be like,
    and what they would cost."""
    check = check_policy(file, rows=None, home=asked.home)
    policy, written = check.plan.policy, Written.of(file)
    site = None if check.home is None else find_site(check.home)
    if site is not None:
        read_caps(site).of(policy)  # refused before anything is noted or simulated
    settings = list_asked(written, policy, asked.axes)
    targets = [read_target(text, policy) for text in asked.targets]
    refused = [] if site is None or asked.refused else _ask_ledger(site, written, settings, asked.rows)
    data = read_data(policy, asked, site, settings, file)
    bench = Bench(
        written,
        policy,
        data.records,
        asked.rows or data.records.count,
        hashlib.sha256(f"explored: {policy.policy}".encode()).digest(),  # the same noise each time
        fewest=count_draws(count_sequences(settings)) if targets else FEWEST,
    )
    results = _try_others(bench, settings, refused, workers=asked.workers, progress=progress)
    return Explored(_make_document(bench, asked, data, results, targets, site), policy.protect.method)


def list_asked(written: Written, policy: Policy, axes: Axes) -> list[Setting]:
    """The settings that are asked for, in the order of their numbers."""
    if not policy.noise_columns:
        raise WrongUsage("no column of this policy is masked.", where=written.name, remedy="There is nothing to choose.")
    for name in axes.methods:
        if name not in METHODS:
            remedy = ask_for_near(name, METHODS, f"There are: {', '.join(METHODS)}.")
            raise WrongUsage(f"there is no method '{name}'.", where="--methods", remedy=remedy)
    return list_settings(written.raw, policy, axes)


def write_choice(written: Written, policy: Policy, axes: Axes, number: int) -> tuple[Setting, str]:
    """The setting of this number, and the text of the policy file with it. No record is read for
    it."""
    settings = list_asked(written, policy, axes)
    if not 1 <= number <= len(settings):
        raise WrongUsage(f"there is no setting {number}.", where="--choose", remedy=f"There are 1 to {len(settings)}.")
    changed = written.change(settings[number - 1])
    return changed.setting, write_setting(written.text, changed, name=written.name, read=written.files.__getitem__)


def choose_met(explored: Explored) -> int:
    """The number of the setting that surely meets the targets with the least epsilon, by the
    policy's own method."""
    for one in explored.document.met:
        if one.method == explored.own and one.number is not None:
            return one.number
    raise WrongUsage(
        f"no setting of {explored.own} that was tried surely meets the targets.",
        where="--write",
        remedy="Name a setting of another method with --choose, as the list has it, or try larger epsilons.",
    )


def describe_explored(explored: Explored, *, every: bool, draw: Draw | None = None) -> Iterator[str]:
    """The results in lines for a person; the best settings, or every one."""
    return describe_exploration(to_json(explored.document), every=every, draw=draw)


def _ask_ledger(site: Site, written: Written, settings: Sequence[Setting], rows: int | None) -> list[Refused]:
    """The settings of which the ledger would refuse a release, as it is now."""
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
    """Why the ledger would refuse the next release; empty where it would not, or where that is not
    known."""
    if room is None:
        return ""
    if room.needs:
        return f"the ledger would refuse it: {room.needs}"
    if room.next is None or room.next.fits:
        return ""
    return f"the ledger would refuse it: it takes {room.next.amount}, of which {room.remaining} is left"


def _try_others(
    bench: Bench, settings: Sequence[Setting], refused: Sequence[Refused], *, workers: int | None, progress: Progress
) -> list[Tried | Refused]:
    """What each setting comes to, in their order; those that are refused already are not tried."""
    known = {one.setting.words: one for one in refused}
    tried = iter(try_settings(bench, [one for one in settings if one.words not in known], workers=workers, progress=progress))
    return [known.get(setting.words) or next(tried) for setting in settings]


def _make_document(
    bench: Bench,
    asked: Asked,
    data: Data,
    results: Sequence[Tried | Refused],
    targets: Sequence[Target],
    site: Site | None,
) -> ExploreDocument:
    numbered = list(enumerate(results, 1))  # 1 is the policy as it is
    tested = [(number, one) for number, one in numbered if isinstance(one, Tried)]
    ledgers = _read_ledgers(site, [one.changed for _, one in tested], bench.rows)
    views = [view_setting(one, number, targets) for number, one in tested]
    warnings = [*data.warnings]
    if bench.rows > LINKED and any(view.linkage_ladder for view in views):
        warnings.append(f"linkage is of {LINKED:,} among {bench.linked.records.count:,} records of one simulated release")
    return ExploreDocument(
        policy=bench.policy.policy,
        hash=bench.policy.canonical_hash(),
        population=bench.policy.population,
        on="shape" if asked.shape else "like",
        on_words=data.words,
        rows=bench.rows,
        warnings=tuple(warnings),
        groupings=bench.groupings,
        columns=tuple(bench.policy.noise_columns),
        settings=tuple(replace(view, ledger=ledger) for view, ledger in zip(views, ledgers, strict=True)),
        refused=tuple(
            RefusedView(number, one.setting.words, one.why, one.by_ledger) for number, one in numbered if isinstance(one, Refused)
        ),
        targets=tuple(target.text for target in targets),
        met=tuple(find_met(targets, tested)) if targets else (),
    )
