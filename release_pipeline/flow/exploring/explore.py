"""`explore`: the settings of a policy, tried before anything is spent: on records that tell nothing, or in a noted look."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from release_pipeline import __version__
from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.flow.exploring.document import DomainView, ExploreDocument, RefusedView, SettingView, SolvedView, SplitView
from release_pipeline.flow.exploring.domains import Shorter, find_dear_domains
from release_pipeline.flow.exploring.grounds import Asked, Ground, find_ground, find_site_of
from release_pipeline.flow.exploring.kept import DOCUMENT, keep_document, read_document
from release_pipeline.flow.exploring.places import check_page, find_folder
from release_pipeline.flow.exploring.ranges import round_figure
from release_pipeline.flow.exploring.records import Tried
from release_pipeline.flow.exploring.shares import split_best
from release_pipeline.flow.exploring.targets import Target, check_told, read_target, solve
from release_pipeline.flow.exploring.trials import RESULTS, Bench, Refused, Tested, Written, pick_tested, try_settings
from release_pipeline.flow.exploring.views import view_column, view_setting
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.status.check import check_policy
from release_pipeline.flow.status.headroom import HeadroomView, read_headrooms, view_headroom
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import ask_for_near, decimal_text
from release_pipeline.policy.settings import Axes, Changed, Setting, list_settings, write_setting
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.compiling import cache_folder
from release_pipeline.privacy.figures import show_figure, show_share
from release_pipeline.stages.simulation import describe_samples

Progress = Callable[[str], None]
HIDDEN = "in a look figures that fewer than ten records stand for are not shown"
AXES = tuple(field.name for field in fields(Axes))


@dataclass(frozen=True, slots=True)
class Explored:
    """What came out, and what it was made of. `changed`: what the policy would be under each setting of the document."""

    document: ExploreDocument
    changed: tuple[Changed, ...]
    written: Written
    site: Site | None


def explore(file: Path, asked: Asked, *, progress: Progress = lambda _: None) -> Explored:
    """Every setting of the policy in `file` that was asked for, with what releases would be like, and what they would cost."""
    check = check_policy(file, rows=None, home=asked.home)
    policy, written = check.plan.policy, Written.of(file)
    site = find_site_of(policy, asked, None if check.home is None else find_site(check.home), file)
    if site is not None:
        read_caps(site).of(policy)  # refused before anything is noted or simulated
    check_page(site, asked.output, is_look=asked.is_look, overwrite=asked.overwrite)
    if not policy.noise_columns:
        raise WrongUsage("no column of this policy is masked.", where=str(file), remedy="There is nothing to choose.")
    for name in asked.axes.methods:
        if name not in METHODS:
            remedy = ask_for_near(name, METHODS, f"There are: {', '.join(METHODS)}.")
            raise WrongUsage(f"there is no method '{name}'.", where="--methods", remedy=remedy)
    targets = [read_target(text, policy) for text in asked.targets]
    settings = list(list_settings(written.raw, policy, asked.axes))
    ground = find_ground(policy, asked, site, settings, file, progress)
    folder = _find_folder(site, is_look=ground.is_look)
    refused = [] if site is None or asked.refused else _ask_ledger(site, written, settings, asked.rows)
    kept = folder / "documents" / f"{_name_request(written, asked, ground, refused)}{DOCUMENT}"
    if ground.stamp and (known := read_document(kept)) is not None:
        progress("this was found before: nothing is read or simulated anew")
        document = known[0]
        changed = tuple(written.change(setting) for setting in known[1])
    else:
        tried = ground.read()
        bench = Bench(
            written,
            policy,
            tried.records,
            asked.rows or tried.records.count,
            _find_secret(site, policy, is_look=ground.is_look),
            resampled=not asked.source,
            kept=folder,
            is_look=ground.is_look,
        )
        document, changed = _explore(bench, asked, ground, tried, settings, refused, targets, progress)
        if ground.stamp:
            keep_document(kept, document, [one.setting for one in changed])
    ledgers = _read_ledgers(site, changed, document.rows)
    views = tuple(replace(view, ledger=ledger) for view, ledger in zip(document.settings, ledgers, strict=True))
    return Explored(replace(document, settings=views), changed, written, site)


def _explore(
    bench: Bench,
    asked: Asked,
    ground: Ground,
    tried: Tried,
    settings: Sequence[Setting],
    refused: Sequence[Refused],
    targets: Sequence[Target],
    progress: Progress,
) -> tuple[ExploreDocument, tuple[Changed, ...]]:
    """All that is found of these records, without ledgers, and the policies of its settings."""
    policy = bench.policy
    check_told(targets, bench)
    said = f"{tried.records.count:,} records, {len(settings)} settings, {bench.draws} simulated releases of each"
    progress(said + (f"; {len(refused)} of them are not tried, which the ledger would refuse" if refused else ""))
    results = _try_others(bench, settings, refused, workers=asked.workers, progress=progress)
    solved = tuple(_solve(bench, targets, results, progress)) if targets else ()
    splits = list(split_best(bench, pick_tested(results)))
    for setting in (setting for setting, _ in solved if setting is not None):
        if not _has(results, setting):
            results += try_settings(bench, [setting], workers=1, progress=lambda _: None)
    results += [split.tested for split in splits if not _has(results, split.tested.setting)]
    tested = pick_tested(results)
    first = 2 if isinstance(results[0], Refused) else 1  # 1 is the policy as it is, tried or not
    views = tuple(view_setting(bench, one, number) for number, one in enumerate(tested, first))
    numbers = {view.words: view.number for view in views}
    progress("looking for domains that cost much")
    document = ExploreDocument(
        policy=policy.policy,
        hash=policy.canonical_hash(),
        population=policy.population,
        on="source" if asked.source else "shape" if asked.shape else "like",
        on_words=ground.words,
        is_look=ground.is_look,
        rows=bench.rows,
        warnings=(
            *tried.warnings,
            *describe_samples(bench.attacked.records.count),
            *([HIDDEN] if ground.is_look else []),
        ),
        groupings=bench.groupings,
        columns=tuple(view_column(bench, name, tried.clamped.get(name, 0.0)) for name in policy.noise_columns),
        settings=views,
        refused=tuple(RefusedView(one.setting.words, one.why, one.by_ledger) for one in results if isinstance(one, Refused)),
        targets=tuple(target.text for target in targets),
        solved=tuple(replace(view, number=numbers.get(view.words)) for _, view in solved),
        splits=tuple(
            SplitView(
                split.tested.setting.words,
                split.tested.setting.block,
                round_figure(split.before),
                round_figure(split.after),
                numbers.get(split.tested.setting.words),
            )
            for split in splits
        ),
        domains=tuple(
            DomainView(
                one.column,
                one.low,
                one.high,
                round_figure(one.times),
                round_figure(one.clamped),
                round_figure(one.total),
                round_figure(one.variance),
                _say_domain(one),
            )
            for one in find_dear_domains(bench, tried.as_came)
        ),
    )
    return document, tuple(one.changed for one in tested)


def _ask_ledger(site: Site, written: Written, settings: Sequence[Setting], rows: int | None) -> list[Refused]:
    """The settings of which the ledger would refuse a release, as it is now."""
    changed: list[Changed] = []
    for setting in settings:
        with suppress(PolicyInvalid):  # it is refused for what is wrong with it
            changed.append(written.change(setting, rows=rows))
    if not changed:
        return []
    rooms = map(view_headroom, read_headrooms(site, [one.policy for one in changed], rows=rows))
    return [Refused(one.setting, why, by_ledger=True) for one, room in zip(changed, rooms, strict=True) if (why := _refuse(room))]


def _refuse(room: HeadroomView) -> str:
    """Why the ledger would refuse the next release; empty where it would not, or where that is not known."""
    if room.needs:
        return f"the ledger would refuse it: {room.needs}"
    if room.next is None or room.next.fits:
        return ""
    return f"the ledger would refuse it: it takes {room.next.amount}, of which {room.remaining} is left"


def _try_others(
    bench: Bench, settings: Sequence[Setting], refused: Sequence[Refused], *, workers: int | None, progress: Progress
) -> list[Tested | Refused]:
    """What each setting comes to, in their order; those that are refused already are not tried."""
    known = {one.setting.words: one for one in refused}
    tried = iter(try_settings(bench, [one for one in settings if one.words not in known], workers=workers, progress=progress))
    return [known.get(setting.words) or next(tried) for setting in settings]


def _has(results: Sequence[Tested | Refused], setting: Setting) -> bool:
    return any(setting.words == known.setting.words for known in results)


def choose_setting(explored: Explored, number: int | None) -> SettingView:
    """The setting of this number; without one that of the policy's own method which meets the targets."""
    views = {view.number: view for view in explored.document.settings}
    if number is None:
        own = views[1].method if 1 in views else ""
        met = [one for one in explored.document.solved if one.met and one.number is not None]
        mine = [one for one in met if views[one.number or 0].method == own]
        if len(mine) == 1:
            return views[mine[0].number or 0]
        raise WrongUsage(
            "it does not follow which setting is meant.",
            where="--write",
            remedy="Name its number with --choose, as the list of settings has it.",
        )
    if number not in views:
        raise WrongUsage(
            f"there is no setting {number}.",
            where="--choose",
            remedy=f"There are {min(views, default=0)} to {max(views, default=0)}.",
        )
    return views[number]


def write_choice(explored: Explored, view: SettingView) -> str:
    """The text of the policy file with this setting in it."""
    written, changed = explored.written, explored.changed[explored.document.settings.index(view)]
    return write_setting(written.text, changed, name=written.name, read=written.files.__getitem__)


def _name_request(written: Written, asked: Asked, ground: Ground, refused: Sequence[Refused]) -> str:
    """What tells an exploration from all others: what is asked, of which policy, and on what."""
    axes = {name: [str(one) for one in getattr(asked.axes, name)] for name in AXES}
    told = [ExploreDocument.FORMAT, __version__, RESULTS, written.text, sorted(written.files.items()), ground.words, ground.stamp]
    asked_for = [
        asked.release,
        asked.rows,
        axes,
        list(asked.targets),
        str(written.name),
        [[one.setting.words, one.why] for one in refused],
    ]
    return hashlib.sha256(json.dumps([*told, *asked_for]).encode()).hexdigest()


def _find_secret(site: Site | None, policy: Policy, *, is_look: bool) -> bytes:
    """What simulated noise is drawn with: always alike, so that nobody looks until a figure is as it should be."""
    if is_look and site is not None:
        return bytes.fromhex(site.keyed_hash(f"explored: {policy.policy}".encode()))
    return hashlib.sha256(f"explored: {policy.policy}".encode()).digest()


def _find_folder(site: Site | None, *, is_look: bool) -> Path:
    """Where results are kept: those of a look in the vault."""
    return find_folder(site) / "results" if is_look and site is not None else cache_folder() / "explored"


def _solve(
    bench: Bench, targets: Sequence[Target], results: Sequence[Tested | Refused], progress: Progress
) -> list[tuple[Setting | None, SolvedView]]:
    found: list[tuple[Setting | None, SolvedView]] = []
    for solved in solve(bench, targets, results, progress):
        setting, met = solved.setting, not solved.why
        weights = {name: decimal_text(weight) for name, weight in setting.protect.get("weights", {}).items()}
        epsilon = setting.protect.get("epsilon") if met else None
        view = SolvedView(
            setting.words,
            setting.block,
            None if epsilon is None else decimal_text(epsilon),
            weights,
            {text: round_figure(reached) for text, reached in solved.reached.items()},
            met=met,
            why=solved.why,
            number=None,
        )
        found.append((setting if met else None, view))
    return found


def _read_ledgers(site: Site | None, changed: Sequence[Changed], rows: int) -> list[HeadroomView | None]:
    if site is None or not changed:
        return [None] * len(changed)
    return [view_headroom(room) for room in read_headrooms(site, [one.policy for one in changed], rows=rows)]


def _say_domain(one: Shorter) -> str:
    return (
        f"{one.column}'s domain costs {show_figure(one.times)} times the squared error of [{one.low}, {one.high}], which would "
        f"clamp {show_share(one.clamped)} of the records, and cut off {show_share(one.total)} of the column's total and "
        f"{show_share(one.variance)} of its variance"
    )
