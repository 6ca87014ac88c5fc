"""The texts of a public package, each a pure function of one `PackageView`: card, page and note.

Only fields of the view can get into them. Besides the view's own texts and numbers there are only the sentences of the catalogue
(`sentences`), which the templates and the method's family choose from. Nothing here knows a policy, a table, a clock or the
environment. datapackage.json is made in `datapackage`; how texts are escaped is in `escaping`.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from release_pipeline.formats.about import About, list_facts
from release_pipeline.formats.card import Card, Claim, ColumnBudget, ColumnView, Looks, TableBudget, WiderScope
from release_pipeline.formats.package import PackageView, render_csv
from release_pipeline.mechanisms.basis.dates import DATE, MOMENT, read_moment
from release_pipeline.mechanisms.basis.figures import count_things, format_count, is_instant, join_names
from release_pipeline.pages.escaping import end_sentence, load_templates, say_amount
from release_pipeline.policy.documents import make_object, to_json
from release_pipeline.publish.method_texts import find_texts
from release_pipeline.publish.texts import FamilyTexts
from release_pipeline.sentences import POLICY, PUBLIC


def make_card_schema() -> dict[str, Any]:
    """Return the JSON Schema of `privacy-card.json`, with what its parts must agree on."""
    definition = {"properties": {"name": {"enum": ["k-epsilon", "k-anonymity"]}}}
    with_classes = {
        "k": {"properties": {"is_k_anonymity": {"const": True}}},
        "series": {"properties": {"epsilon": {"type": "null"}}},
    }
    with_clusters = {
        "k": {"properties": {"is_k_anonymity": {"const": False}}},
        "series": {"properties": {"epsilon": {"type": "string"}}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:release-pipeline:privacy-card:1",
        "title": "Privacy card",
        **make_object(Card, is_closed=True),
        "if": {"properties": {"claim": {"properties": {"definition": definition}}}},
        "then": {"properties": with_classes},
        "else": {"properties": with_clusters},
    }


CARD_SCHEMA = make_card_schema()


def render_card_json(card: Card) -> str:
    """Return privacy-card.json: ASCII, in one fixed order."""
    return json.dumps(to_json(card), indent=2, ensure_ascii=True) + "\n"


def render_card_html(package: PackageView) -> str:
    """Return privacy-card.html: the same facts as one self-contained page, for an analyst and for a citizen."""
    return load_templates("html").get_template("privacy-card.html").render(_context(package))


def render_note(package: PackageView) -> str:
    """Return RELEASE_NOTE.md: what an analyst must know to use the data and to verify the package."""
    return load_templates("markdown").get_template("RELEASE_NOTE.md").render(_context(package))


def _context(package: PackageView) -> dict[str, Any]:
    return {
        "package": package,
        "card": package.card,
        "texts": find_texts(package),
        "list_facts": list_facts,
        "law_words": PUBLIC("values.law"),
    }


def complete_card(package: PackageView) -> PackageView:
    """Return the package, its card with the sentences that follow from its facts and from the family of its method."""
    card, texts = package.card, find_texts(package)
    k = replace(card.k, is_k_anonymity=texts.is_k_anonymity, why_not=None if texts.is_k_anonymity else texts.describe_k())
    completed = replace(
        card,
        looks=None if card.looks is None else replace(card.looks, words=_describe_looks(card.looks)),
        claim=_complete_claim(card, texts),
        k=k,
        anonymity_k=replace(card.anonymity_k, words=texts.describe_anonymity()),
        series=replace(card.series, of=PUBLIC("card.series_of"), words=texts.describe_series()),
        rows=replace(card.rows, kind=texts.kind_of_rows),
        noise=texts.describe_noise(),
    )
    return replace(package, card=completed)


def _complete_claim(card: Card, texts: FamilyTexts) -> Claim:
    """Return the claim with the object of epsilon, and with what is not covered: by the policy, and by how its parameters were
    chosen."""
    claim, of_column = card.claim, PUBLIC("card.epsilon_of_column")
    columns = tuple(
        ColumnBudget(column=column.name, epsilon=column.epsilon, rho=column.rho, of=of_column)
        for column in card.columns
        if column.epsilon is not None or column.rho is not None
    )
    tables = tuple(TableBudget(table=table.name, epsilon=table.epsilon, rho=table.rho) for table in card.tables)
    uncovered = () if card.looks is None else (PUBLIC("looks.uncovered"),)
    scope_words = PUBLIC.read_section("scope").get(claim.scope.name, claim.scope.name)
    return replace(
        claim,
        epsilon=replace(claim.epsilon, of=texts.describe_epsilon_of(), columns=columns, tables=tables),
        scope=replace(claim.scope, words=scope_words),
        wider=tuple(_list_wider(card, texts)),
        not_protected=(*claim.not_protected, *uncovered),
        caveats=tuple(texts.list_caveats()),
    )


def _describe_looks(looks: Looks) -> str:
    """Return a text: parameters may have been chosen with knowledge of the data, and what follows from it."""
    trials, runs = count_things(looks.count, "trial"), format_count(looks.runs)
    others = format_count(looks.count - looks.runs)
    return PUBLIC("looks.words", trials=trials, others=others, runs=runs, last=looks.last)


def _list_wider(card: Card, texts: FamilyTexts) -> Iterator[WiderScope]:
    """Yield each wider scope with its bound, and the reason why there is none where the bound is that of the table."""
    why = texts.no_bound if card.swap is None else PUBLIC("no_bound.swapped")
    for wider in card.claim.wider:
        is_unbounded = wider.scope == "table" and wider.bound.startswith(POLICY("bound.none"))
        yield replace(wider, why=why if is_unbounded else None)


# datapackage.json, which describes the files of a package to programs, and the lists of labels;
# pure functions of a package.


_FORMATS = {"parquet": "apache-parquet", "dta": "stata", "sav": "spss"}
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "dta": "application/x-stata-dta",
    "sav": "application/x-spss-sav",
}


def render_datapackage(package: PackageView, hashes: Mapping[str, tuple[str, int]]) -> str:
    """Return datapackage.json (Data Package v2): one resource for each file of each format of the package, all with the same
    schema. The only difference: Stata and SPSS files have reasons for no number in the cells of the number itself.

    The CSV file is a tabular resource. The others carry their own types; only their length and hash are validated. Labels of
    entries are in the field's description, and in the `categories` of version 2. `hashes`: SHA-256 in hex and length in bytes of
    each data file, by name. Raises ValueError for a format, type, bound or value that the standard cannot express, and KeyError
    for a file without its hash.
    """
    card = package.card
    anywhere = card.method.values == "anywhere"
    fields = [_make_field(column, anywhere=anywhere) for column in card.columns]
    schema = {"fields": fields, "missingValues": [""]}
    coded = {"fields": [field for field in fields if field["name"] not in list_coded(package)], "missingValues": [""]}
    descriptor: dict[str, Any] = {
        "$schema": PROFILE,
        "profile": "data-package",
        "name": re.sub(r"[^a-z0-9._/-]+", "-", card.release.lower()) or "release",
        "id": card.release,
        "version": card.release.rpartition("/")[2] or card.release,
    }
    if is_instant(card.published):
        descriptor["created"] = card.published
    descriptor |= _tell_about(card.about, package)
    descriptor["resources"] = [
        _make_resource(name, form, *hashes[name], coded if form in ("dta", "sav") else schema, package)
        for form in card.formats
        for name in package.name_data(form)
    ]
    descriptor["resources"] += [_make_list(file, *hashes[file], PUBLIC("package.hierarchy")) for file, _ in package.hierarchies]
    descriptor["resources"] += [_make_list(file, *hashes[file], PUBLIC("package.counts")) for file in package.counts]
    descriptor["resources"] += [_make_list(table.file, *hashes[table.file], table.words) for table in package.card.tables]
    return json.dumps(descriptor, indent=2, ensure_ascii=True) + "\n"


def _tell_about(about: About, package: PackageView) -> dict[str, Any]:
    """Return the description of the data, in the terms of the standard, with extra keys where it has no term."""
    licence, publisher = about.licence, about.publisher
    claim = PUBLIC("package.description", claim=end_sentence(package.card.claim.words))
    contributors: list[dict[str, Any]] = [
        {"title": person.name, "roles": [person.role], **({"organization": person.organisation} if person.organisation else {})}
        | ({"path": f"https://orcid.org/{person.orcid}"} if person.orcid else {})
        for person in about.contributors
    ]
    contributors.append({"title": publisher.name, "roles": ["publisher"], **({"path": publisher.url} if publisher.url else {})})
    contact = {"title": about.contact.name, "email": about.contact.email, "path": about.contact.url}
    contributors.append({**{key: stated for key, stated in contact.items() if stated}, "roles": ["contact"]})
    stated = {"sampling": about.sampling, "intendedUse": about.intended_use, "recipients": about.recipients}
    covered = {**dataclasses.asdict(about.coverage), "places": list(about.coverage.places)}
    return {
        "title": about.title,
        "description": f"{end_sentence(about.description)} {claim}",
        "licenses": [
            {**({"name": licence.name} if licence.name != licence.title else {}), "path": licence.url, "title": licence.title}
        ],
        "contributors": contributors,
        **({"keywords": list(about.keywords)} if about.keywords else {}),
        "citation": about.citation,
        **({"coverage": covered} if any(covered.values()) else {}),
        **{key: words for key, words in stated.items() if words is not None},
    }


def list_coded(package: PackageView) -> list[str]:
    """Return the columns with reasons for no number."""
    pairs = itertools.pairwise(package.card.columns)
    return [column.name for before, column in pairs if column.done == "missing" and before.type != "string"]


def render_hierarchy(rows: Sequence[Sequence[str]]) -> str:
    """Return hierarchy-COLUMN.csv: level0, level1, ..., a row for every value."""
    return render_csv([f"level{level}" for level in range(len(rows[0]))], rows)


def _make_resource(file: str, form: str, digest: str, size: int, schema: dict[str, Any], package: PackageView) -> dict[str, Any]:
    if form not in MEDIA_TYPES:
        raise ValueError("a format that is not known cannot be a resource")
    if re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise ValueError("a hash is 64 lower-case hex digits")
    name = "-".join(["data", form, *file.split(".")[1:-1]])
    resource: dict[str, Any] = {"name": name, "path": file, "format": form, "mediatype": MEDIA_TYPES[form]}
    if form == "csv":
        resource |= {"profile": "tabular-data-resource", "encoding": "utf-8", "type": "table"}
    else:  # there is no type `file`: frictionless would take a format that it does not know for one
        resource |= {"profile": "data-resource", "format": _FORMATS[form]}
    return resource | {"bytes": int(size), "hash": f"sha256:{digest}", "schema": schema}


def _make_list(file: str, digest: str, size: int, description: str) -> dict[str, Any]:
    """Return the resource of a list next to the data, as CSV."""
    return {
        "name": file.removesuffix(".csv"),
        "path": file,
        "format": "csv",
        "mediatype": MEDIA_TYPES["csv"],
        "encoding": "utf-8",
        "bytes": int(size),
        "hash": f"sha256:{digest}",
        "description": description,
    }


def _make_field(column: ColumnView, *, anywhere: bool) -> dict[str, Any]:
    """Return the field of a column. Where masked values may be anywhere, the domain is no constraint, only a description."""
    is_free = anywhere and column.done == "noise" and column.domain is not None
    if column.type not in ("number", "integer", "string", DATE, MOMENT):
        raise ValueError("a released column is of type number, integer, string, date or datetime")
    why = PUBLIC("package.why", why=column.why) if column.why else ""
    parts = [column.description or "", why, column.hierarchy or ""]
    if column.labels:
        parts.append(PUBLIC("package.labels", labels=", ".join(f"{value} = {label}" for value, label in column.labels)))
    if is_free and column.domain is not None:
        parts.append(PUBLIC("package.domain", low=say_amount(column.domain[0]), high=say_amount(column.domain[1])))
    if column.grid:
        parts.append(PUBLIC("package.grid", grid=say_amount(column.grid)))
    if column.atoms:
        parts.append(PUBLIC("package.atoms", atoms=join_names(map(say_amount, column.atoms))))
    if column.noise:
        parts.append(PUBLIC("package.noise", noise=column.noise))
    if column.question is not None:
        parts.append(PUBLIC("package.question", question=column.question))
    field: dict[str, Any] = {"name": column.name, "type": column.type}
    if column.type == MOMENT:
        field["format"] = "%Y-%m-%dT%H:%M:%S"  # the default would be one in UTC, with its Z
    if column.label is not None:
        field["title"] = column.label
    if column.unit is not None:
        field["unit"] = column.unit
    field["description"] = "; ".join(part for part in parts if part)
    constraints: dict[str, Any] = {}
    if column.domain is not None and not is_free:
        low, high = (_bound(end) if column.type not in (DATE, MOMENT) else read_moment(end) and end for end in column.domain)
        constraints |= {"minimum": low, "maximum": high}
    if column.values:
        constraints["enum"] = [_entry(value, column) for value in column.values]
    if column.values and column.labels:
        field["categories"] = [
            {"value": _entry(value, column), **({"label": column.label_of[value]} if value in column.label_of else {})}
            for value in column.values
        ]
    return field | ({"constraints": constraints} if constraints else {})


def _entry(value: str, column: ColumnView) -> int | str:
    return int(value) if column.type == "integer" else value


def _bound(text: str) -> int | str:
    """Return a declared bound: a whole number as such, any other as its decimal text, which the standard reads exactly."""
    try:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else format(number, "f")
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError("a declared bound is a decimal number") from None
