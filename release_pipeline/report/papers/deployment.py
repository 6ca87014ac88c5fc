"""An entry for the OpenDP Differential Privacy Deployments Registry: the same statements as a paper, and as the YAML file that
the registry takes, by its schema of July 2026 (commit 3e9c812). It says nothing but public facts.

The registry has no name for individual differential privacy: an entry of such a release is `Custom`, and says what it is wherever
a parameter stands. Releases without a claim of either kind have no entry, nor have those that are not published, or were
retracted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias, cast

from release_pipeline.privacy.catalogue.definitions import DP, IDP, ZCDP
from release_pipeline.privacy.figures import count_of
from release_pipeline.report.escaping import escape_markdown
from release_pipeline.report.papers.common import (
    SYNTHESISED,
    state_after,
    state_each,
    state_looks,
    state_noise,
    state_sums,
    state_unstated,
    state_wider,
)
from release_pipeline.report.papers.statements import (
    RETRACTED,
    Item,
    Paper,
    Section,
    Statement,
    make_item,
    make_paper,
    state_fact,
)
from release_pipeline.report.papers.view import Bound, Fields, PaperView
from release_pipeline.sentences import PAPERS

NAME = "deployment"
FILE = "dp_deployment.yaml"  # the registry takes lowercase letters, numbers and underscores alone
CUSTOM = "Custom"
VARIANTS = {DP.key: "Pure DP", ZCDP.key: "Zero-concentrated DP", IDP.key: CUSTOM}
TABLE, CENTROID = "table", "centroid"
_AS_THEY_ARE = ("basic.name",)  # which the address of an entry is made of
Tree: TypeAlias = dict[str, Any]


def has_entry(view: PaperView) -> bool:
    """Whether a release can have an entry: it is published and not retracted, says what its data are, and claims DP or individual
    DP."""
    return view.claims_dp and view.published is not None and view.public.about is not None and view.state != RETRACTED


def write_deployment(view: PaperView) -> Paper:
    """The entry as a paper: each field with what it was read from; or why there is none."""
    fields = Fields(view)
    sections = _list_sections(fields) if has_entry(view) else (_explain_absence(fields),)
    titles = PAPERS("deployment.title"), PAPERS("deployment.standard"), PAPERS("deployment.limits")
    notice = PAPERS("paper.handed_in") if has_entry(view) else PAPERS("paper.no_entry")
    return make_paper(view, NAME, sections, *titles, edition="public", notice=notice)


def write_entry(view: PaperView) -> str:
    """The entry as the registry takes it: its words are those of the paper, its numbers the claim's own."""
    public, about = view.public, view.public.about
    if about is None or view.published is None or not has_entry(view):
        raise ValueError("there is no entry for such a release")
    tree: Tree = {}
    for section in write_deployment(view).sections:
        for item in section.items:
            _put(tree, item.field, _join(item, as_it_is=item.field in _AS_THEY_ARE))
    parameters = {"epsilon": public.epsilon, "delta": public.delta, "rho": public.rho}
    basic, day = tree["basic"], view.published[:10]
    basic |= {"data_curators": [about.publisher[0]], "publication_date": day, "data_product_type": _find_type(view)}
    tree["dp_variant"]["variant_name"] = VARIANTS[public.definition] if public.scope == TABLE else CUSTOM
    tree["privacy_loss"]["privacy_parameters"] = {
        name: Decimal(value)
        for name, value in parameters.items()
        if value is not None and _is_number(value) and public.scope != CENTROID  # of one mean alone: no loss of a release
    }
    tree["deployment_model"] |= {"model_name": "Central", "access_type": "Non-interactive"}
    tree["administrative"]["registry_authors"] = [about.publisher[0]]
    slug = _make_slug(about.title, about.publisher[0], day[:4])
    entry = {"url_slug": slug, "status": "Draft", "tier": 2, "deployment": tree}
    return "".join(f"{line}\n" for line in _write_yaml(entry))


def _list_sections(fields: Fields) -> tuple[Section, ...]:
    titles, tool = PAPERS.read_section("deployment.item"), fields("public.tool")
    day = fields("published", str(fields.view.published)[:10])

    def item(key: str, field: str, *statements: Statement | Iterator[Statement]) -> Item:
        return make_item(key, titles, *statements, field=field)

    basic = (
        item("name", "basic.name", state_fact("said.as_is", words=fields("public.about.title"))),
        item("curator", "basic.data_curators", state_fact("said.as_is", words=fields("public.about.publisher.0"))),
        item("description", "basic.description", state_fact("said.as_is", words=fields("public.about.description"))),
        item("use", "basic.intended_use", _state_or_not(fields("public.about.intended_use"))),
        item("type", "basic.data_product_type", _state_type(fields)),
        item("region", "basic.data_product_region", _state_region(fields)),
        item("date", "basic.publication_date", state_fact("said.as_is", words=day)),
    )
    variant = (
        item("variant", "dp_variant.variant_name", _state_variant(fields)),
        item("domain", "dp_variant.data_domain", _state_domain(fields)),
        item(
            "unprotected",
            "dp_variant.unprotected_quantities",
            state_each(fields, "public.not_protected"),
            state_wider(fields),
        ),
    )
    loss = (
        item("unit", "privacy_loss.privacy_unit", _state_unit(fields)),
        item(
            "unit_details",
            "privacy_loss.privacy_unit_details",
            state_fact("deployment.neighbours", words=fields("public.neighbours"), records=fields("public.records_per_person")),
        ),
        item("parameters", "privacy_loss.privacy_parameters_details", _state_parameters(fields)),
    )
    model = (
        item("model", "deployment_model.model_name_details", state_fact("deployment.central", tool=tool)),
        item("release", "deployment_model.release_type_details", state_fact("deployment.series", policy=fields("public.policy"))),
        item("access", "deployment_model.access_type_details", state_fact("deployment.access", tool=tool)),
    )
    accounting = (
        item("composition", "accounting.composition", state_sums(fields)),
        item("post_processing", "accounting.post_processing", _state_after(fields)),
    )
    made = (
        item("preprocessing", "implementation.preprocessing_and_hyperparameter_tuning", state_looks(fields)),
        item("mechanisms", "implementation.mechanisms", _state_mechanisms(fields)),
    )
    record = (
        item("sources", "administrative.sources", _state_sources(fields)),
        item("notes", "administrative.notes", _state_notes(fields)),
    )
    return (
        Section(PAPERS("deployment.basic"), basic),
        Section(PAPERS("deployment.variant"), variant),
        Section(PAPERS("deployment.loss"), loss),
        Section(PAPERS("deployment.model"), model),
        Section(PAPERS("deployment.accounting"), accounting),
        Section(PAPERS("deployment.made"), made),
        Section(PAPERS("deployment.record"), record),
    )


def _explain_absence(fields: Fields) -> Section:
    titles = PAPERS.read_section("deployment.item")
    definition, published, about = fields("public.definition"), fields("published"), fields("public.about")
    said: list[Statement] = []
    if not fields.view.claims_dp:
        said.append(state_fact("deployment.no_claim", definition, words=fields("public.definition_words")))
    if published.value is None:
        said.append(state_fact("deployment.no_date", published))
    if fields.view.state == RETRACTED:
        said.append(state_fact("deployment.retracted", state=fields("state")))
    if about.value is None:
        said.append(state_fact("about.none", about))
    return Section(PAPERS("deployment.absent"), (make_item("absent", titles, said),))


def _state_or_not(said: Bound) -> Statement:
    return state_fact("said.as_is", words=said) if said else state_unstated(said)


def _state_region(fields: Fields) -> Iterator[Statement]:
    places = fields("public.about.places")
    if not places:
        yield state_unstated(places)
    yield from state_each(fields, "public.about.places")


def _find_type(view: PaperView) -> str:
    is_synthetic = any(column.done == SYNTHESISED for column in view.public.columns)
    return "Synthetic data" if is_synthetic else "Dataset"


def _state_type(fields: Fields) -> Statement:
    made = sum(column.done == SYNTHESISED for _, column in fields.each("public.columns"))
    if made:
        return state_fact("deployment.synthetic", columns=fields("public.columns", count_of(made, "column")))
    return state_fact("deployment.dataset", fields("public.columns"))


def _state_variant(fields: Fields) -> Iterator[Statement]:
    definition = fields("public.definition")
    if definition.value == IDP.key:
        yield state_fact("deployment.custom", definition, scope=fields("public.scope"))
    else:
        yield _state_scope(definition, fields("public.scope"))
    yield state_fact("said.as_is", words=fields("public.definition_words"))


def _state_scope(definition: Bound, scope: Bound) -> Statement:
    if definition.value == ZCDP.key:
        if scope.value == TABLE:
            return state_fact("deployment.zcdp", definition, scope)
        return state_fact("deployment.zcdp_in_scope", definition, scope=scope)
    if scope.value == TABLE:
        return state_fact("deployment.pure", definition, scope)
    return state_fact("deployment.pure_in_scope", definition, scope=scope)


def _state_domain(fields: Fields) -> Iterator[Statement]:
    yield state_fact("deployment.table", records=fields("public.rows_in"))
    for at, column in fields.each("public.columns"):
        if column.domain is not None:
            low, high = fields(f"{at}.domain.0"), fields(f"{at}.domain.1")
            yield state_fact("deployment.column", column=fields(f"{at}.name"), low=low, high=high)


def _state_unit(fields: Fields) -> Statement:
    unit, count = fields("public.privacy_unit"), fields("public.record_count")
    if count.value is None:
        return state_fact("deployment.unit", unit=unit)
    return state_fact("deployment.unit_of_several", unit=unit, count=count)


def _state_parameters(fields: Fields) -> Iterator[Statement]:
    yield state_fact("said.as_is", words=fields("public.claim"))
    yield state_fact("said.as_is", words=fields("public.statement"))
    delta, definition = fields("public.delta"), fields("public.definition")
    if delta.value is not None:
        epsilon, rho, scope = fields("public.epsilon"), fields("public.rho"), fields("public.scope")
        yield state_fact("nist.epsilon_at_delta", epsilon=epsilon, delta=delta, rho=rho, scope=scope)
    if definition.value == IDP.key:
        yield state_fact("claim.individual", definition, scope=fields("public.scope"))


def _state_after(fields: Fields) -> Iterator[Statement]:
    yield from state_after(fields)
    yield state_fact("nist.suppression", words=fields("public.suppression"))


def _state_mechanisms(fields: Fields) -> Iterator[Statement]:
    yield state_fact("nist.method", method=fields("public.method"), words=fields("public.method_words"))
    yield state_fact("nist.paper", paper=fields("public.paper"))
    yield from state_noise(fields)
    yield state_fact("nist.integers", tool=fields("public.tool"))
    yield state_fact("nist.timing", tool=fields("public.tool"))


def _state_sources(fields: Fields) -> Iterator[Statement]:
    yield state_fact("deployment.package", release=fields("public.release"), hash=fields("public.candidate_hash"))
    address = fields("public.about.publisher.1")
    if address.value is not None:
        yield state_fact("said.as_is", words=address)


def _state_notes(fields: Fields) -> Iterator[Statement]:
    yield state_fact("deployment.drafted", tool=fields("public.tool"), policy=fields("public.policy_hash"))
    definition = fields("public.definition")
    if definition.value == IDP.key:
        yield state_fact("deployment.custom", definition, scope=fields("public.scope"))


def _join(item: Item, *, as_it_is: bool) -> str:
    """The words of a field, or a list of them, in Markdown, as the registry shows it: what is said stays a text."""
    words = [statement.words if as_it_is else escape_markdown(statement.words) for statement in item.statements]
    return words[0] if len(words) == 1 else "\n".join(f"- {sentence}" for sentence in words)


def _put(tree: Tree, field: str, words: str) -> None:
    group, _, name = field.partition(".")
    tree.setdefault(group, {})[name] = words


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def _make_slug(*parts: str) -> str:
    """The address of an entry, as the registry makes it of name, curators and year."""
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


def _write_yaml(tree: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """As YAML: texts as JSON has them, so that none is anything else."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and not value:
            yield f"{indent}{name}: {{}}"
        elif isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _write_yaml(cast(Tree, value), f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {json.dumps(entry, ensure_ascii=False)}" for entry in cast(list[str], value))
        else:
            yield f"{indent}{name}: {_write_scalar(value)}"


def _write_scalar(value: str | int | Decimal) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)  # never with an exponent, which YAML may read as a text
