"""`explore`: the settings of a policy, tried before anything is spent: on records that tell nothing, or in a noted look."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.exploring.document import DomainView, ExploreDocument, RefusedView, SettingView, SolvedView, SplitView
from release_pipeline.flow.exploring.domains import Shorter, find_dear_domains
from release_pipeline.flow.exploring.looks import On, note_look
from release_pipeline.flow.exploring.made_up import make_up
from release_pipeline.flow.exploring.ranges import round_figure
from release_pipeline.flow.exploring.records import Tried, read_like, read_records
from release_pipeline.flow.exploring.shares import split_best
from release_pipeline.flow.exploring.targets import Target, read_target, solve
from release_pipeline.flow.exploring.trials import Bench, Tested, Written, try_settings
from release_pipeline.flow.exploring.views import view_column, view_setting
from release_pipeline.flow.reading import open_source
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.states import PUBLISHED, SUPERSEDED, read_statuses
from release_pipeline.flow.status.check import check_policy
from release_pipeline.flow.status.headroom import HeadroomView, read_headrooms, view_headroom
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import ask_for_near, decimal_text
from release_pipeline.policy.settings import Axes, Setting, list_settings, write_setting
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.compiling import cache_folder
from release_pipeline.privacy.figures import show_figure
from release_pipeline.verify import examine

Progress = Callable[[str], None]
PUBLIC_STATES = (PUBLISHED, SUPERSEDED)  # of packages whose data anybody may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know. Exactly one of `like`, `shape` and `source`; `public`: where anybody finds the file `like`."""

    like: Path | None = None
    public: str = ""
    shape: bool = False
    source: bool = False
    release: str | None = None
    rows: int | None = None
    axes: Axes = field(default_factory=Axes)
    targets: Sequence[str] = ()
    home: Path | None = None
    by: str = ""
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Explored:
    """What came out, and what it was made of."""

    document: ExploreDocument
    tested: tuple[Tested, ...]
    written: Written
    site: Site | None


def explore(file: Path, asked: Asked, *, progress: Progress = lambda _: None) -> Explored:
    """Every setting of the policy in `file` that was asked for, with what releases would be like, and what they would cost."""
    check = check_policy(file, rows=None, home=asked.home)
    policy, written = check.plan.policy, Written.of(file)
    site = None if check.home is None else find_site(check.home)
    if not policy.noise_columns:
        raise WrongUsage("no column of this policy is masked.", where=str(file), remedy="There is nothing to choose.")
    for name in asked.axes.methods:
        if name not in METHODS:
            remedy = ask_for_near(name, METHODS, f"There are: {', '.join(METHODS)}.")
            raise WrongUsage(f"there is no method '{name}'.", where="--methods", remedy=remedy)
    targets = [read_target(text, policy) for text in asked.targets]
    settings = list(list_settings(written.raw, policy, asked.axes))
    tried, on_words, is_look = _find_records(policy, asked, site, settings, file, progress)
    bench = Bench(
        written,
        policy,
        tried.records,
        asked.rows or tried.records.count,
        _find_secret(site, policy, is_look=is_look),
        resampled=not asked.source,
        kept=_find_folder(site, is_look=is_look),
    )
    progress(f"{tried.records.count:,} records, {len(settings)} settings, {bench.draws} simulated releases of each")
    tested = try_settings(bench, settings, workers=asked.workers, progress=progress)
    solved = tuple(_solve(bench, targets, tested, progress)) if targets else ()
    splits = list(split_best(bench, tested))
    for setting in (setting for setting, _ in solved if setting is not None):
        if not _has(tested, setting):
            tested += try_settings(bench, [setting], workers=1, progress=lambda _: None)
    tested += [split.tested for split in splits if not _has(tested, split.tested.setting)]
    ledgers = _read_ledgers(site, tested, bench.rows)
    views = tuple(_view_all(bench, tested, ledgers))
    numbers = {view.words: view.number for view in views}
    progress("looking for domains that cost much")
    document = ExploreDocument(
        policy=policy.policy,
        hash=policy.canonical_hash(),
        population=policy.population,
        on="source" if asked.source else "shape" if asked.shape else "like",
        on_words=on_words,
        is_look=is_look,
        rows=bench.rows,
        warnings=tried.warnings,
        groupings=bench.groupings,
        columns=tuple(view_column(bench, name, tried.clamped.get(name, 0.0)) for name in policy.noise_columns),
        settings=views,
        refused=tuple(RefusedView(one.setting.words, one.refused) for one in tested if one.found is None),
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
            DomainView(one.column, one.low, one.high, round_figure(one.times), round_figure(one.clamped), _say_domain(one))
            for one in find_dear_domains(bench, tried.as_came)
        ),
    )
    return Explored(document, tuple(tested), written, site)


def _has(tested: Sequence[Tested], setting: Setting) -> bool:
    return any(setting.words == known.setting.words for known in tested)


def choose_setting(explored: Explored, number: int | None) -> SettingView:
    """The setting of this number; without one that of the policy's own method which meets the targets."""
    views = {view.number: view for view in explored.document.settings}
    if number is None:
        own = explored.document.settings[0].method if explored.document.settings else ""
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
        raise WrongUsage(f"there is no setting {number}.", where="--choose", remedy=f"There are 1 to {len(views)}.")
    return views[number]


def write_choice(explored: Explored, view: SettingView) -> str:
    """The text of the policy file with this setting in it."""
    [one] = [one for one in explored.tested if one.setting.words == view.words and one.changed is not None][:1]
    assert one.changed is not None  # noqa: S101  for the type checker
    written = explored.written
    return write_setting(written.text, one.changed, name=written.name, read=written.files.__getitem__)


def _find_records(
    policy: Policy, asked: Asked, site: Site | None, settings: Sequence[Setting], file: Path, progress: Progress
) -> tuple[Tried, str, bool]:
    """The records to try settings on, what they are in words, and whether they are a look: which is noted before it is taken."""
    if asked.shape:
        return make_up(policy, rows=asked.rows), f"a table made up of the shape in {file.name}", False
    compared = [*(setting.words for setting in settings), *(f"the least epsilon for {text}" for text in asked.targets)]
    if asked.like is not None:
        if asked.like.is_dir():
            words = _check_package(site, asked.like)
            return read_like(policy, asked.like, release=None, progress=progress), words, False
        if asked.public:
            tried = read_like(policy, asked.like, release=asked.release, progress=progress)
            return tried, f"{asked.like.name}, which is public: {asked.public}", False
        _note(site, policy, asked, "file", _hash_file(site, asked.like), compared)
        tried = read_like(policy, asked.like, release=asked.release, progress=progress)
        return tried, f"{asked.like.name}, which nobody says is public", True
    if site is None:
        raise WrongUsage(
            "this policy lies in no site: nobody could note the look.",
            where=str(file),
            remedy="Put it in the policies/ of a site, or use --like with a public file, or --shape.",
        )
    release = asked.release or next(iter(policy.release_names), None)
    release = None if policy.source.release_column is None else release
    _note(site, policy, asked, "source", "", compared)
    source = open_source(site, policy)
    of = f", release {release}" if release is not None else ""
    return read_records(policy, source, source.name, release=release, progress=progress), f"the source{of}", True


def _check_package(site: Site | None, folder: Path) -> str:
    """What a folder is, if it is a package of this site, as it was published."""
    if site is not None:
        with site.open_registry(read_only=True) as registry:
            statuses = read_statuses(registry.events)
        for release, status in statuses.items():
            if site.package(str(release)).resolve() == folder.resolve() and status.state in PUBLIC_STATES:
                found = examine(folder)
                if found.package_hash == status.package_hash and not found.failed:
                    return f"the published package {release}"
                break
    raise WrongUsage(
        "this folder is no package of this site, as it was published.",
        where=str(folder),
        remedy="Name a folder of releases/, or a file.",
    )


def _note(site: Site | None, policy: Policy, asked: Asked, on: On, digest: str, compared: Sequence[str]) -> None:
    if site is None:
        raise WrongUsage(
            "nobody says that this file is public, and the policy lies in no site that could note the look.",
            where=str(asked.like),
            remedy="Say where anybody finds it with --public WHERE, or put the policy in the policies/ of a site.",
        )
    note_look(site, policy, by=asked.by, on=on, digest=digest, compared=compared)


def _hash_file(site: Site | None, file: Path) -> str:
    """What tells whoever has the file that it was this one, and nobody else anything: its plain hash would tell guesses apart."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return "" if site is None else site.keyed_hash(f"looked at: {digest}".encode())


def _find_secret(site: Site | None, policy: Policy, *, is_look: bool) -> bytes:
    """What simulated noise is drawn with: always alike, so that nobody looks until a figure is as it should be."""
    if is_look and site is not None:
        return bytes.fromhex(site.keyed_hash(f"explored: {policy.policy}".encode()))
    return hashlib.sha256(f"explored: {policy.policy}".encode()).digest()


def _find_folder(site: Site | None, *, is_look: bool) -> Path:
    """Where results are kept: those of a look in the vault."""
    return site.vault / "looks" / "results" if is_look and site is not None else cache_folder() / "explored"


def _solve(
    bench: Bench, targets: Sequence[Target], tested: Sequence[Tested], progress: Progress
) -> list[tuple[Setting | None, SolvedView]]:
    found: list[tuple[Setting | None, SolvedView]] = []
    for solved in solve(bench, targets, tested, progress):
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


def _read_ledgers(site: Site | None, tested: Sequence[Tested], rows: int) -> dict[int, HeadroomView]:
    if site is None:
        return {}
    with_policy = {number: one.changed.policy for number, one in enumerate(tested) if one.changed is not None}
    rooms = read_headrooms(site, list(with_policy.values()), rows=rows) if with_policy else []
    return {number: view_headroom(room) for number, room in zip(with_policy, rooms, strict=True)}


def _view_all(bench: Bench, tested: Sequence[Tested], ledgers: dict[int, HeadroomView]) -> list[SettingView]:
    views: list[SettingView] = []
    for number, one in enumerate(tested):
        if one.found is not None:
            views.append(view_setting(bench, one, len(views) + 1, ledgers.get(number)))
    return views


def _say_domain(one: Shorter) -> str:
    return (
        f"{one.column}'s domain costs {show_figure(one.times)} times the squared error of [{one.low}, {one.high}]; "
        f"{one.clamped:.1%} of the records would be clamped"
    )
