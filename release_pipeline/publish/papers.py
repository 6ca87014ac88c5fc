"""The papers that an officer files about a release, each from its own template: an annex to a DPIA, an evaluation by NIST SP
800-226, and an entry for the OpenDP Differential Privacy Deployments Registry by its schema of July 2026 (commit 3e9c812).

The registry has no name for individual differential privacy: such an entry is `Custom` and describes it next to each parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.formats.card import Claim
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.formats.internal_view import GateView, InternalView
from release_pipeline.formats.package import PackageView
from release_pipeline.ledger.policies import policy_of
from release_pipeline.ledger.states import PUBLISHING, SUPERSEDED, ReleaseStatus, read_statuses
from release_pipeline.ledger.states import RETRACTED as RETRACTED_STATE
from release_pipeline.mechanisms.basis.figures import format_apart, format_number, format_share
from release_pipeline.mechanisms.catalogue import find_definition
from release_pipeline.mechanisms.catalogue.spec import DP, IDP, ZCDP
from release_pipeline.pages.escaping import Format, Ready, load_templates
from release_pipeline.pages.prose import format_interval, format_tried
from release_pipeline.policy.file.about import Assessment
from release_pipeline.publish.method_texts import find_texts
from release_pipeline.publish.public_view import build_view
from release_pipeline.report.page import build_internal_view
from release_pipeline.store.files import is_whole, make_private_folder, write_text
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.site import Site

NIST, DPIA, ENTRY = "nist-sp-800-226.html", "dpia-annex.html", "dp_deployment.yaml"
PUBLIC_PAPERS = (NIST, ENTRY)
RETRACTED = "retracted"
TABLE, CENTROID = "table", "centroid"
CUSTOM = "Custom"  # the registry's name for a variant that it does not list
VARIANTS = {DP.key: "Pure DP", ZCDP.key: "Zero-concentrated DP", IDP.key: CUSTOM}


@dataclass(frozen=True, slots=True)
class WithdrawalView:
    """The retraction or supersession of a release: by whom, when, and why."""

    name: str
    moment: str
    why: str


@dataclass(frozen=True, slots=True)
class PaperView:
    """One release, for its papers. `internal` and `assessment` are None in what the public gets; `assessment` has None for each
    part that the policy does not state. `published`: when, or None before; `state`: of the release, by the events."""

    package: PackageView
    state: str
    published: str | None = None
    assessment: Mapping[str, str | None] | None = None
    internal: InternalView | None = None
    withdrawn: WithdrawalView | None = None

    @property
    def claims_dp(self) -> bool:
        """Return whether the claim is differential privacy, in one of its forms, or individual differential privacy."""
        return find_definition(self.package.card.claim.definition.name).composes

    @property
    def has_entry(self) -> bool:
        """Return whether the registry may have an entry: a published DP or iDP release that was not retracted."""
        return self.claims_dp and self.published is not None and self.state != RETRACTED


def render_papers(view: PaperView) -> dict[str, str]:
    """Return every paper of a release for the people of its site, by the name of its file."""
    papers = {name: render_paper(name, view) for name in (NIST, DPIA)}
    return papers | ({ENTRY: render_entry(view)} if view.has_entry else {})


def render_public_papers(package: PackageView) -> dict[str, str]:
    """Return the papers of the package, from public facts only; none for a release that may have no entry."""
    view = PaperView(package, "published", package.card.published)
    return {NIST: render_paper(NIST, view), ENTRY: render_entry(view)} if view.has_entry else {}


def render_paper(name: str, view: PaperView) -> str:
    """Return one paper as a self-contained page."""
    return _render("html", name, view)


def render_entry(view: PaperView) -> str:
    """Return the registry's entry as YAML, whose texts are Markdown; raises ValueError for a release that may have none."""
    card, published = view.package.card, view.published
    about = card.about
    if published is None or not view.has_entry:
        raise ValueError("there is no entry for such a release")
    variant = VARIANTS[card.claim.definition.name] if card.claim.scope.name == TABLE else CUSTOM
    slug = _make_slug(about.title, about.publisher.name, published[:4])
    is_synthetic = any(column.done == "synthesise" for column in card.columns)
    parameters = list(_list_parameters(card.claim))
    return _render("markdown", ENTRY, view, variant=variant, slug=slug, is_synthetic=is_synthetic, parameters=parameters)


@cache
def _load_papers(form: Format) -> jinja2.Environment:
    environment = load_templates(form).overlay()
    environment.filters = environment.filters | {
        "sentences": _split_sentences,
        "field": _write_field,
        "json": _write_text,
        "interval": format_interval,
        "tried": format_tried,
        "share": format_share,
        "number": format_number,
    }
    return environment


def _render(form: Format, name: str, view: PaperView, **more: Any) -> str:
    def limits(among: tuple[str, ...]) -> Iterator[tuple[GateView, str, str]]:
        """Yield the gates whose name has one of these words, each with its value and limit as they are written."""
        gates = () if view.internal is None else view.internal.gates
        yield from ((gate, *format_apart(gate.value, gate.limit)) for gate in gates if any(word in gate.name for word in among))

    return (
        _load_papers(form)
        .get_template(f"papers/{name}")
        .render(
            card=view.package.card,
            state=view.state,
            published=view.published,
            assessment=view.assessment,
            internal=view.internal,
            withdrawn=view.withdrawn,
            claims_dp=view.claims_dp,
            texts=find_texts(view.package),
            limits=limits,
            **more,
        )
    )


def _split_sentences(rendered: str) -> list[Ready]:
    """Return the non-empty lines of a rendered text, each once; a value has no line end when it is rendered."""
    return list(dict.fromkeys(Ready(line.strip()) for line in rendered.split("\n") if line.strip()))


def _write_field(rendered: str) -> Ready:
    """Return a field of the entry, a sentence or a list of them, as a YAML text that can be nothing else."""
    sentences = _split_sentences(rendered)
    words = sentences[0] if len(sentences) == 1 else "\n".join(f"- {sentence}" for sentence in sentences)
    return Ready(_write_text(words) + "\n")


def _write_text(text: str) -> Ready:
    return Ready(json.dumps(str(text), ensure_ascii=False))


def _list_parameters(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the claim; none at scope centroid, where they are about one mean and no loss of a release."""
    budget = claim.epsilon
    for name, value in (("epsilon", budget.total), ("delta", budget.delta), ("rho", budget.rho)):
        if value is not None and re.fullmatch(r"\d+(\.\d+)?", value) and claim.scope.name != CENTROID:
            yield name, f"{Decimal(value):f}"  # YAML may read an exponent as a text


def _make_slug(*parts: str) -> str:
    """Return the address of an entry, as the registry makes it from name, curators and year."""
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


# The papers of a release for the people of its site: the facts from policy, evidence and events as one view, and the folder for
# an officer.


def write_papers(site: Site, release: ReleaseId, folder: Path) -> list[Path]:
    """Write every paper of a release that has a candidate into a new or empty folder, readable only by its owner."""
    _check_folder(folder)
    files = render_papers(view_papers(site, release))
    try:
        make_private_folder(folder)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    for name, text in files.items():
        write_text(folder / name, text)
    return [folder / name for name in sorted(files)]


def view_papers(site: Site, release: ReleaseId) -> PaperView:
    """Return all that the papers may state about a release, as the registry has it now."""
    with site.open_registry(read_only=True) as registry:
        status = read_statuses(registry.events).get(release, ReleaseStatus(release))
        if status.candidate_hash is None:
            raise Blocked(
                f"it is {status.state}, and has no candidate: there is nothing to write papers about.", where=str(release)
            )
        candidate = site.candidate(str(release))
        if not is_whole(candidate, status.candidate_hash):
            raise Blocked(
                "the candidate's folder is not what was frozen.", where=str(release), remedy="See `verify` of the site."
            )
        policy, evidence = policy_of(registry, status.policy_hash), load_evidence(candidate)
        events = registry.events[: _find_last(registry.events, status)]
        stated = policy.assessment or Assessment()
        return PaperView(
            package=build_view(site, events, status, policy),
            state=status.state,
            published=events[-1].noted if status.package_hash is not None else None,
            assessment={part: getattr(stated, part) for part in Assessment.model_fields},
            internal=build_internal_view(policy, evidence),
            withdrawn=_find_withdrawal(registry.events, status),
        )


def _check_folder(folder: Path) -> None:
    try:
        if folder.exists() and not folder.is_dir():
            raise WrongUsage("this is a file.", where=str(folder), remedy="Name a folder.")
        if folder.is_dir() and any(folder.iterdir()):
            raise WrongUsage("the folder is not empty.", where=str(folder), remedy="Name another.")
        if not folder.parent.is_dir():
            raise WrongUsage("its folder does not exist.", where=str(folder), remedy="Make the folder first.")
    except OSError as error:
        raise WrongUsage(f"the path cannot be used: {error.strerror}.", where=str(folder), remedy="Name another.") from None


def _find_last(events: Sequence[Event], status: ReleaseStatus) -> int:
    """Return how many events there were when it was published, as its package names them; all, if it is not published."""
    if status.package_hash is None:
        return len(events)
    numbers = [event.number for event in events if event.kind == PUBLISHING and event.release == status.id]
    return max(numbers, default=len(events))


def _find_withdrawal(events: Sequence[Event], status: ReleaseStatus) -> WithdrawalView | None:
    """Return who retracted or superseded it, by the event that gave it its state; None if neither."""
    if status.state not in (RETRACTED_STATE, SUPERSEDED):
        return None
    event = next(event for event in reversed(events) if (event.kind, event.release) == (status.state, status.id))
    statement = event.content["signed"]["statement"]
    return WithdrawalView(str(statement["name"]), event.noted, str(statement.get("why") or ""))
