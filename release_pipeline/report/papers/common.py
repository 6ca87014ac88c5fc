"""Statements that several papers make."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.catalogue.definitions import IDP
from release_pipeline.privacy.figures import count_of, format_apart, format_count, format_moment, format_share
from release_pipeline.report.families import find_texts
from release_pipeline.report.internal_view import AttackView
from release_pipeline.report.papers.statements import Statement, state_fact
from release_pipeline.report.papers.view import Bound, Fields
from release_pipeline.report.prose import format_interval, format_tried
from release_pipeline.sentences import PAPERS

KEPT, SWAPPED, GENERALISED, SYNTHESISED = "keep", "swap", "generalise", "synthesise"


def state_claim(fields: Fields) -> Iterator[Statement]:
    """What is claimed, with the words that keep its kinds apart."""
    claim, definition, scope = fields("public.claim"), fields("public.definition"), fields("public.scope")
    yield state_fact("claim.words", claim=claim)
    if definition.value == IDP.key:
        yield state_fact("claim.individual", definition, scope=scope)
    elif not fields.view.claims_dp:
        yield state_fact("claim.no_dp", definition, words=fields("public.definition_words"))


def state_each(fields: Fields, path: str) -> Iterator[Statement]:
    """Every sentence of a list of the view, as it is there."""
    yield from (state_fact("said.as_is", words=fields(at)) for at, _ in fields.each(path))


def state_wider(fields: Fields) -> Iterator[Statement]:
    """What is known of every scope that is wider than the claim."""
    for at, _ in fields.each("public.wider"):
        yield state_fact("claim.wider", scope=fields(f"{at}.0"), bound=fields(f"{at}.1"))


def state_columns_as_they_are(fields: Fields) -> Iterator[Statement]:
    """The columns that are released without noise."""
    for at, column in fields.each("public.columns"):
        name, done = fields(f"{at}.name"), fields(f"{at}.done")
        if column.done == KEPT:
            yield state_fact("columns.kept", done, column=name)
        elif column.done == SWAPPED:
            yield state_fact("columns.swapped", done, column=name, people=fields("public.swap.k"))
        elif column.done == GENERALISED:
            yield state_fact("columns.generalised", done, column=name)


def state_sums(fields: Fields) -> Iterator[Statement]:
    """What adds up over the releases about the same people."""
    population, cap, unit = fields("public.population"), fields("public.cap"), fields("public.cap_unit")
    yield state_fact("sums.cap", population=population, cap=cap, unit=unit, spent=fields("public.population_spent"))
    series = fields("public.series_epsilon")
    if series.value is None:
        yield state_fact("sums.no_series", series)
    else:
        yield state_fact("sums.series", policy=fields("public.policy"), series=series)


def state_looks(fields: Fields) -> Iterator[Statement]:
    """Whether parameters were chosen with knowledge of the data."""
    looks = fields("public.looks")
    if looks.value is None:
        yield state_fact("looks.none", looks)
    else:
        count = fields("public.looks.count", count_of(looks.value.count, "look"))
        runs = fields("public.looks.runs", format_count(looks.value.runs))
        yield state_fact("looks.some", looks=count, runs=runs, last=fields("public.looks.last"))


def state_recipients(fields: Fields) -> Iterator[Statement]:
    """Who may have the data, on which terms and for what, as the package tells everybody."""
    about = fields("public.about")
    if about.value is None:
        yield state_fact("about.none", about)
        return
    yield state_fact("about.licence", title=fields("public.about.licence.1"), address=fields("public.about.licence.2"))
    recipients, use = fields("public.about.recipients"), fields("public.about.intended_use")
    yield state_fact("about.recipients", words=recipients) if recipients else state_unstated(recipients)
    yield state_fact("about.intended_use", words=use) if use else state_unstated(use)


def state_unstated(said: Bound) -> Statement:
    """That the policy says nothing of something under `about`."""
    return state_fact("said.not_in_about", said)


def state_attacks(fields: Fields, kinds: tuple[str, ...]) -> Iterator[Statement]:
    """Every attack whose name begins so, beside its control group; that none was measured, where it is so."""
    found = [(at, attack) for at, attack in fields.each("internal.attacks") if attack.name.startswith(kinds)]
    if not found:
        yield state_fact("attack.none", fields("internal.attacks"))
    for at, attack in found:
        yield state_attack(fields, at, attack)
    internal, clusters = fields.view.internal, fields("internal.clusters")
    if found and clusters.value and internal is not None and not internal.generalises and not internal.is_nobodys:
        yield state_fact("attack.clusters", clusters)


def state_attack(fields: Fields, at: str, attack: AttackView) -> Statement:
    """One attack: how often it succeeds, on the control group, by guessing, and what is beyond the control."""
    name, tried = fields(f"{at}.name"), fields(f"{at}.attack.tried")
    if not attack.attack.tried:
        return state_fact("attack.untried", tried, name=name)
    success = fields(f"{at}.attack", format_interval(attack.attack))
    of = fields(f"{at}.attack", format_tried(attack.attack))
    control = fields(f"{at}.control", format_interval(attack.control))
    guess, risk = fields(f"{at}.guess", format_share(attack.guess)), fields(f"{at}.risk", format_interval(attack.risk))
    low = fields(f"{at}.risk.low")
    if attack.risk.low > 0:
        return state_fact("attack.beyond", low, name=name, attack=success, tried=of, control=control, guess=guess, risk=risk)
    return state_fact("attack.not_beyond", low, name=name, attack=success, tried=of, control=control, guess=guess, risk=risk)


def state_gates(fields: Fields, among: tuple[str, ...] = ()) -> Iterator[Statement]:
    """Every limit of the policy with its figure, whatever it is on; or those alone whose name has one of these words."""
    for at, gate in fields.each("internal.gates"):
        if among and not any(word in gate.name for word in among):
            continue
        value, limit = format_apart(gate.value, gate.limit)
        name, passed, basis = fields(f"{at}.name"), fields(f"{at}.passed"), fields(f"{at}.basis")
        least, shown = fields(f"{at}.at_least"), fields(f"{at}.value", value)
        words = PAPERS("gate.at_least", limit=limit) if gate.at_least else PAPERS("gate.at_most", limit=limit)
        bound = fields(f"{at}.limit", words)
        if gate.passed:
            yield state_fact("gate.passed", passed, least, name=name, value=shown, limit=bound, basis=basis)
        else:
            yield state_fact("gate.failed", passed, least, name=name, value=shown, limit=bound, basis=basis)
    if not among and not fields("internal.gates"):
        yield state_fact("gate.none", fields("internal.gates"))


def state_rows(fields: Fields) -> Statement:
    """How many records went in and how many rows came out."""
    public, method = fields.view.public, fields("public.method")
    population = fields("public.population")
    rows_in = fields("public.rows_in", format_count(public.rows_in))
    rows_out = fields("public.rows_out", format_count(public.rows_out))
    if find_texts(public).describe_kind_of_rows() is not None:
        return state_fact("rows.synthetic", method, population=population, rows_in=rows_in, rows_out=rows_out)
    return state_fact("rows.count", method, population=population, rows_in=rows_in, rows_out=rows_out)


def state_noise(fields: Fields) -> Iterator[Statement]:
    """How large the noise of each column is, from declared facts alone; of synthetic rows, which have none, where it is."""
    method, texts = fields("public.method"), find_texts(fields.view.public)
    said: list[Statement] = []
    if texts.describe_kind_of_rows() is not None:
        said.append(state_fact("said.as_is", method, words=fields("public.counts", texts.describe_noise_inside())))
    for at, column in fields.each("public.columns"):
        if column.noise is not None:
            said.append(state_fact("nist.noise", column=fields(f"{at}.name"), noise=fields(f"{at}.noise")))
    for at, _ in fields.each("public.tables"):
        for level, _ in fields.each(f"{at}.levels"):
            said.append(state_fact("nist.table_noise", table=fields(f"{at}.name"), noise=fields(f"{level}.words")))
    yield from said or [state_fact("nist.noise_none", fields("public.columns"), fields("public.tables"))]


def state_after(fields: Fields) -> Iterator[Statement]:
    """What was done after the noise, as it is for the family of the method: it costs nothing, and readers must know it."""
    method, texts = fields("public.method"), find_texts(fields.view.public)
    if texts.describe_kind_of_rows() is not None:
        yield state_fact("nist.synthetic", method)
        return
    if not texts.has_noisy_values:
        yield state_fact("nist.counts", method)
        return
    values, grid, consistency = fields("public.values"), fields("public.grid"), fields("public.consistency")
    if values.value == "anywhere":
        yield state_fact("nist.values_anywhere", values)
    else:
        yield state_fact("nist.values_inside", values)
    if grid.value == "on":
        yield state_fact("nist.grid_on", grid)
    else:
        yield state_fact("nist.grid_off", grid)
    if texts.restores_order:
        yield state_fact("nist.order", method, consistency=consistency)
    else:
        yield state_fact("nist.no_order", method)


def state_hashes(fields: Fields) -> Iterator[Statement]:
    """What binds the release to its policy, its candidate and the chain of events."""
    yield state_fact(
        "hashes.all",
        release=fields("public.release"),
        policy=fields("public.policy_hash"),
        candidate=fields("public.candidate_hash"),
        tool=fields("public.tool"),
    )
    yield state_fact("hashes.head", event=fields("public.head_event"), hash=fields("public.head_hash"))


def state_publication(fields: Fields) -> Statement:
    """When it was published, or that it is not."""
    published, state = fields("published"), fields("state")
    if published.value is None:
        return state_fact("state.not_published", published, state=state)
    return state_fact("state.published", state=state, moment=fields("published", format_moment(published.value)))
