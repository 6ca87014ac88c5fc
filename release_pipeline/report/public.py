"""The texts of a public package, each a pure function of one `PublicView`: card, page, note and Data Package.

What the view has no field for cannot get into them: beside the view's own texts and numbers there are only the sentences of this
module and of the templates. Nothing here knows a policy, a table, a clock or the environment. Every text is escaped for the
format that it goes into, by the environment of the template and not by its author's care.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from release_pipeline.report.view import ColumnView, PublicView

CARD_FORMAT = "privacy-card/1"
_HERE = Path(__file__).parent
CARD_SCHEMA: dict[str, Any] = json.loads((_HERE / "privacy-card.schema.json").read_text(encoding="utf-8"))

MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
SCOPE_WORDS = {
    "class": "all masked values of one record together, looked at by themselves: any two records of its class could have given "
    "them with probabilities that differ by a factor of at most e^epsilon, as the noise is drawn",
    "centroid": "each released cluster value on its own; what holds for several of them at once is said under the wider scopes",
    "column": "for each masked column the whole list of its noisy values, before small groups were suppressed; not which record "
    "has which of them",
    "cluster": "all masked values of one record together: which of the records of its cluster it is of. It bounds nothing else",
    "table": "everything that a reader of the table sees: values, equal values, row order, links between columns",
}
WORDS = {
    "keep": "keep: released as it is",
    "noise": "noise: masked by the method",
    "centroid": "masked: the mean of its cluster",
    "generalise": "generalise: made coarser",
    "quasi": "quasi-identifier",
}
CLUSTERS_SHOW = (
    "Equal values show which records were ranked together in a column, and rows link these patterns. They follow from the data: "
    "neighbouring tables can give quite different ones, however small epsilon is."
)
KEPT_SHOW = "The columns that are released as they are have no noise, and with them the whole table has no bound."
K_IS_NOT = "k is the size of the clusters of one column. It is not k-anonymity: nothing follows for combinations of columns."
K_TOGETHER = (
    "k is the size of the clusters, of all masked columns together. The centroids have noise, and the release is not called "
    "k-anonymous."
)
IS_K_TOGETHER = (
    "Every combination of the masked columns that is left in the table belongs to k records or more: k-anonymity on "
    "these columns "
    "together, and on no others."
)
NO_K = "There is no k; the release is not called k-anonymous either."
ANONYMITY = (
    "Records in the smallest group of equal quasi-identifiers that are released as they are; a blank cell counts as a value."
)
NO_ANONYMITY = "Not stated: no quasi-identifier is released as it is."
SERIES = "The worst case: as if the same person had been in every release. What is charged is never given back."
NOISE = (
    "Mean absolute size of the noise of one released value, from declared facts alone, before order and domain are restored. It "
    "does not contain what grouping and clamping do to a value."
)
NOISE_ANYWHERE = (
    "Mean absolute size of the noise of one released value, from declared facts alone. Order may be restored afterwards; values "
    "stay where that leaves them, inside their domain or not. It does not contain what grouping does to a value."
)
NOISE_STAYS_INSIDE = "The noise that was really used depends on the data and is not published: only the bound can be named."
INDIVIDUAL = (
    "iDP is weaker than DP and must never be compared with it by epsilon: it speaks of the neighbours of the actual data only, "
    "and does not cover groups of people."
)
LAW = (
    "What is known of the noise of each masked column, from declared facts alone, and what the analyst's kit of this software "
    "makes of it. Where no honest interval exists it declines in words."
)
ON_GRID = "On the declared grid: after the noise each was moved to the nearest point of it"
ALWAYS_ON_GRID = "On the declared grid, as the noise leaves them"
OFF_GRID = "Not on the declared grid alone: values can lie off it, between its points"
INSIDE = "inside: masked values lie in their declared domain"
ANYWHERE = (
    "anywhere: the noise left masked values where they are, and they may lie outside their declared domain. Leave them there: a "
    "mean of values that were moved back is drawn inwards"
)
HIERARCHY_LIST = "What every value of a generalised column becomes on each level, as declared; level0 is the value itself."
CLASSES_SHOW = (
    "The generalised columns and the kept ones have no noise, and which records form a class follows from the data: neighbouring "
    "tables can give quite different classes, however small epsilon is."
)
IS_K_ANONYMITY = (
    "Every combination of the generalised columns that is left in the table belongs to k records or more: k-anonymity on these "
    "columns, and on no others."
)
CLASS_ANONYMITY = "Records in the smallest group of equal generalised quasi-identifiers."
CLASS_SERIES = "This definition does not add up over releases, so the cap counts releases. What is charged is never given back."
CLASS_NOISE = (
    "Mean absolute size of the noise of one released value in a class as wide as the declared domain, the largest that can be. "
    "Most classes are narrower, and their noise is smaller in proportion; how far their values scatter shows it roughly."
)
EXACT_ANONYMITY = (
    "Records in the smallest group of equal quasi-identifiers, masked ones and ones released as they are; a blank cell "
    "counts as a "
    "value."
)
NO_EXACT_ANONYMITY = "Not stated: none of the released columns is a quasi-identifier."
EXACT = "There is no noise: a released value is the exact mean of its cluster."
NO_NOISE = (
    "This is not differential privacy: clusters are read off the data, and their means are exact. Who knows some records of a "
    "cluster learns about the others."
)
NOT_DP = (
    "This is not differential privacy: classes, noise scales and suppression are read off the data. Its epsilon must not be "
    "compared with one of DP or iDP."
)
WHOLE_CLASS = (
    "Who reads all records of a class at once, and knows the people in it, can tell whose is whose with odds of up to "
    "e^(2 epsilon) to one; likewise for a single record, given that it was not dropped for standing out."
)
KEPT_IN_CLASS = (
    "Where records are dropped for standing out: that a record is kept, and released with its masked values, differs by a factor "
    "of at most e^(2 epsilon) between two records of a class, and not of e^epsilon, for whether a class keeps k records depends "
    "on the noise of the others, too. Where l different values are asked for, that is for records that agree in the kept "
    "confidential columns."
)
SAME_IN_CLASS = "Where all records of a class have the same number it is released exactly, without noise."
WITHOUT_NOISE = (
    "Under iDP a value whose cluster no change of one record would move may be released exactly, without noise. Such values are "
    "not marked and the noise scales are not published, but which scales are 0 can be guessed."
)
TOLD_OFF_GRID = (
    "Off the grid they can be picked out: a value without noise is a mean of equal numbers and lies on its declared grid, and "
    "one with noise does about once in k."
)
TOLD_BY_ROWS = (
    "Where many people share a value, most values that stand in 4k rows or more, and not at an end of their domain, are of this "
    "kind."
)
TOLD_BY_HABIT = (
    "Restoring the order makes equal values too, so that many rows with one value do not show it; but most values that stand "
    "in 2k rows and are what many people are known to have, such as 0 or a declared atom, are of this kind."
)
COUNTED = (
    "Whoever guesses right has a count of people almost exactly: in most cases as many records have such a value as there are "
    "rows with it, to within 2k records."
)
ELSEWHERE = "privacy-card.html says what is protected and what is not, RELEASE_NOTE.md how to use the data."
GIVEN_CLASS = (
    "The claim is about the noise as it is drawn. Limits on suppression are judged on noisy values beside the originals, so that "
    "a release appears at all, and that a record is in it, tells something too. The claim is stated before human review."
)
GIVEN = "The claim is about what is released, given that it is; it is stated before human review."


def render_card_json(view: PublicView) -> str:
    """privacy-card.json: every field of the view, by the names that `CARD_SCHEMA` describes; ASCII, in one fixed order."""
    return json.dumps(_make_card(view), indent=2, ensure_ascii=True) + "\n"


def render_card_html(view: PublicView) -> str:
    """privacy-card.html: the same facts as one page that needs nothing else, for an analyst and for a citizen."""
    return load_templates("html").get_template("privacy-card.html").render(_context(view))


def render_note(view: PublicView) -> str:
    """RELEASE_NOTE.md: what an analyst must know to use the data and to verify the package."""
    return load_templates("markdown").get_template("RELEASE_NOTE.md").render(_context(view))


def render_datapackage(view: PublicView, hashes: Mapping[str, tuple[str, int]]) -> str:
    """datapackage.json (Frictionless Data Package v1): one resource for each format of the view, all with the same schema.

    The CSV file is a tabular resource; the Parquet file, which carries its own types, one whose length and hash alone are
    validated. `hashes`: SHA-256 in hex and length in bytes of each data file, by name. A format, type, bound or value that the
    standard could not express is refused with a ValueError, a file without its hash with a KeyError.
    """
    anywhere = view.values == "anywhere"
    schema = {"fields": [_make_field(column, anywhere=anywhere) for column in view.columns], "missingValues": [""]}
    package: dict[str, Any] = {
        "profile": "data-package",
        "name": re.sub(r"[^a-z0-9._/-]+", "-", view.release.lower()) or "release",
        "id": view.release,
        "title": f"Release {view.release}",
        "description": f"{end_sentence(view.claim)} {ELSEWHERE}",
        "version": view.release.rpartition("/")[2] or view.release,
    }
    if _is_instant(view.published):
        package["created"] = view.published
    package["resources"] = [_make_resource(form, *hashes[f"data.{form}"], schema) for form in view.formats]
    package["resources"] += [_make_list(file, *hashes[file]) for file, _ in view.hierarchies]
    return json.dumps(package, indent=2, ensure_ascii=True) + "\n"


def render_hierarchy(rows: Sequence[Sequence[str]]) -> str:
    """hierarchy-COLUMN.csv: level0, level1, ..., as a policy can declare it again."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([f"level{level}" for level in range(len(rows[0]))])
    writer.writerows(rows)
    return table.getvalue()


def is_individual(view: PublicView) -> bool:
    """Whether the definition is individual differential privacy."""
    return "idp" in view.definition.casefold()


def is_by_class(view: PublicView) -> bool:
    """Whether the release is one of classes: (k,epsilon)-anonymity."""
    return view.definition == "k-epsilon"


def is_together(view: PublicView) -> bool:
    """Whether all masked columns have the same clusters."""
    return view.method in ("mdav", "dp-mdav")


def is_exact(view: PublicView) -> bool:
    """Whether the masked values are exact means, without noise: k-anonymity."""
    return view.definition == "k-anonymity"


def explain_wider(view: PublicView) -> list[dict[str, str | None]]:
    """Each wider scope with its bound, and why there is none where the bound says so for the table."""
    why = CLASSES_SHOW if is_by_class(view) else KEPT_SHOW if view.k is None or is_together(view) else CLUSTERS_SHOW
    if is_exact(view):
        why = None
    return [
        {"scope": scope, "bound": bound, "why": why if scope == "table" and bound.startswith("not bounded") else None}
        for scope, bound in view.wider
    ]


def show(text: str) -> str:
    """A text on one line, as people may see it: runs of spaces as one, characters that are not seen named by their number.

    >>> show("two\\n lines \\u202eback")
    'two lines [U+202E]back'
    """
    return "".join(_name_unseen(char) for char in " ".join(text.split()))


def show_name(text: str) -> str:
    """A name, character by character: what is not seen is named by its number, line ends and odd spaces too.

    >>> show_name("two\\nlines ")
    'two[U+000A]lines '
    """
    return "".join(f"[U+{ord(char):04X}]" if char.isspace() and char != " " else _name_unseen(char) for char in text)


def show_count(number: int) -> str:
    """A count with its thousands apart.

    >>> show_count(20190)
    '20,190'
    """
    return f"{number:,}"


def show_moment(text: str) -> str:
    """A moment as people write it; any other text as it is.

    >>> show_moment("2026-11-20T16:39:15+00:00")
    '2026-11-20 16:39 UTC'
    """
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if _is_instant(text) else text


def say(word: str) -> str:
    """A role, or what was done to a column, in words that need no glossary."""
    return WORDS.get(word, word)


def end_sentence(text: str) -> str:
    """A text with its full stop.

    >>> end_sentence("not bounded"), end_sentence("It is not bounded. ")
    ('not bounded.', 'It is not bounded.')
    """
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def escape_markdown(text: str) -> str:
    """A text that stays a text in Markdown, in tables and at the start of a line too, whichever flavour reads it.

    >>> escape_markdown("a|b <script> `x` [y](z) _n_")
    'a&#124;b &lt;script&gt; &#96;x&#96; \\\\[y\\\\](z) \\\\_n\\\\_'
    >>> escape_markdown("- item"), escape_markdown("1. one"), escape_markdown("https://example.com")
    ('\\\\- item', '1\\\\. one', 'https:&#47;&#47;example.com')
    """
    escaped = text.translate(_MARKDOWN).replace("://", ":&#47;&#47;").replace("www.", "www&#46;")
    return re.sub(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+=:])", lambda start: f"{start[0]}\\", escaped)


_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_MARKDOWN = str.maketrans(
    {char: f"&#{ord(char)};" for char in "|`\\$"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    | {char: f"\\{char}" for char in "*_[]~#"}
)


def _name_unseen(char: str) -> str:
    return f"[U+{ord(char):04X}]" if unicodedata.category(char) in _UNSEEN else char


class _Name(str):
    """A text that is shown character by character."""

    __slots__ = ()


class _Ready(str):
    """A text that is escaped already."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def _as_shown(value: object) -> str:
    return show_name(value) if isinstance(value, _Name) else show(str(value))


def _as_html(value: object) -> object:
    """What a macro of a template has rendered is text of the page already; everything else is shown as a text."""
    return value if hasattr(value, "__html__") else _as_shown(value)


def _as_markdown(value: object) -> _Ready:
    return _Ready(escape_markdown(_as_shown(value)))


@cache
def load_templates(format: str) -> jinja2.Environment:
    """The templates for `html` or `markdown`: what they print goes through `finalize`, and is then escaped for HTML, unless it is
    Markdown already."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=_as_markdown if format == "markdown" else _as_html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters |= {"exactly": _Name, "in_groups": show_count, "stop": end_sentence, "said": say, "moment": show_moment}
    return environment


def _context(view: PublicView) -> dict[str, Any]:
    return {
        "view": view,
        "individual": is_individual(view),
        "by_class": is_by_class(view),
        "together": is_together(view),
        "exact": is_exact(view),
        "wider": explain_wider(view),
        "scope_words": SCOPE_WORDS.get(view.scope, view.scope),
        "k_is_not": _k_words(view),
        "anonymity_words": _anonymity_words(view),
        "series_words": _series_words(view),
        "hierarchy_list": HIERARCHY_LIST,
        "law_words": LAW,
        "value_words": _value_words(view),
        "noise_words": _noise_words(view),
        "caveats": _caveats(view),
    }


def _k_words(view: PublicView) -> str:
    if is_by_class(view):
        more = (
            f" Each class has at least {view.diversity} different values of every kept confidential column."
            if view.diversity
            else ""
        )
        return IS_K_ANONYMITY + more
    if is_together(view):
        return IS_K_TOGETHER if is_exact(view) else K_TOGETHER
    return NO_K if view.k is None else K_IS_NOT


def _anonymity_words(view: PublicView) -> str:
    if view.anonymity_k is None:
        return NO_EXACT_ANONYMITY if is_exact(view) else NO_ANONYMITY
    if is_exact(view):
        return EXACT_ANONYMITY
    return CLASS_ANONYMITY if is_by_class(view) else ANONYMITY


def _series_words(view: PublicView) -> str:
    return CLASS_SERIES if is_by_class(view) or is_exact(view) else SERIES


def _noise_words(view: PublicView) -> str:
    if is_by_class(view):
        return CLASS_NOISE
    if is_exact(view):
        return EXACT
    if view.values == "anywhere":
        noise = NOISE_ANYWHERE
    elif is_together(view):
        noise = NOISE.replace("before order and domain are restored", "before the domain is restored")
    else:
        noise = NOISE
    return f"{noise} {NOISE_STAYS_INSIDE}" if is_individual(view) else noise


def _value_words(view: PublicView) -> str:
    where = ANYWHERE if view.values == "anywhere" else INSIDE
    by_noise = is_by_class(view) or view.method == "laplace"
    return f"{end_sentence(where)} {OFF_GRID if view.grid != 'on' else ALWAYS_ON_GRID if by_noise else ON_GRID}"


def _caveats(view: PublicView) -> list[str]:
    """What no card may leave out, whatever the view says of its own release."""
    if is_by_class(view):
        return [NOT_DP, KEPT_IN_CLASS, WHOLE_CLASS, SAME_IN_CLASS, GIVEN_CLASS]
    if is_exact(view):
        return [NO_NOISE]
    if not is_individual(view):
        return [GIVEN]
    if view.method == "idp-ls" and view.scope == "centroid":  # half of the domain at the least, in every cluster
        return [INDIVIDUAL, GIVEN]
    told = TOLD_OFF_GRID if view.grid != "on" else TOLD_BY_HABIT if view.consistency == "isotonic" else TOLD_BY_ROWS
    return [INDIVIDUAL, WITHOUT_NOISE, told, COUNTED, GIVEN]


def _make_card(view: PublicView) -> dict[str, Any]:
    return {
        "format": CARD_FORMAT,
        "release": view.release,
        "published": view.published,
        "supersedes": view.supersedes,
        "tool": view.tool,
        "policy": {"name": view.policy, "steward": view.steward},
        "population": view.population,
        "claim": {
            "words": view.claim,
            "statement": view.statement,
            "definition": {"name": view.definition, "words": view.definition_words},
            "neighbours": view.neighbours,
            "records_per_person": view.records_per_person,
            "epsilon": {
                "total": view.epsilon,
                "of": "all masked columns of this release together",
                "columns": [
                    {"column": column.name, "epsilon": column.epsilon, "of": "this column alone"}
                    for column in view.columns
                    if column.epsilon is not None
                ],
            },
            "scope": {"name": view.scope, "words": SCOPE_WORDS.get(view.scope, view.scope)},
            "wider": explain_wider(view),
            "not_protected": list(view.not_protected),
            "caveats": _caveats(view),
        },
        "method": {
            "name": view.method,
            "words": view.method_words,
            "paper": view.paper,
            "consistency": view.consistency,
            "values": view.values,
            "grid": view.grid,
        },
        "k": {
            "value": view.k,
            "words": view.k_words,
            "is_k_anonymity": is_by_class(view) or is_exact(view),
            "why_not": None if is_by_class(view) or is_exact(view) else _k_words(view),
            "l": view.diversity,
        },
        "anonymity_k": {"value": view.anonymity_k, "words": _anonymity_words(view)},
        "series": {
            "epsilon": view.series_epsilon,
            "of": "the releases of this policy up to this one",
            "population_spent": view.population_spent,
            "cap": view.cap,
            "cap_unit": view.cap_unit,
            "words": _series_words(view),
        },
        "parts": list(view.parts),
        "rows": {"in": view.rows_in, "out": view.rows_out},
        "suppression": {"words": view.suppression, "cells_blanked": view.cells_blanked},
        "noise": _noise_words(view),
        "columns": [_make_column(column) for column in view.columns],
        "how_to_use": list(view.how_to_use),
        "analysis": list(view.analysis),
        "formats": list(view.formats),
        "hashes": {"policy": view.policy_hash, "candidate": view.candidate_hash},
        "registry_head": {"event": view.head_event, "hash": view.head_hash},
    }


def _make_column(column: ColumnView) -> dict[str, Any]:
    return {
        "name": column.name,
        "role": column.role,
        "done": column.done,
        "type": column.type,
        "why": column.why,
        "domain": None if column.domain is None else list(column.domain),
        "grid": column.grid,
        "values": list(column.values),
        "epsilon": column.epsilon,
        "noise": column.noise,
        "missing": column.missing,
        "hierarchy": column.hierarchy,
        "levels": list(column.levels),
        "level": column.level,
        "law": column.law,
        "atoms": list(column.atoms),
    }


def _make_resource(form: str, digest: str, size: int, schema: dict[str, Any]) -> dict[str, Any]:
    if form not in MEDIA_TYPES:
        raise ValueError("a format that is not known cannot be a resource")
    if re.fullmatch("[0-9a-f]{64}", digest) is None:
        raise ValueError("a hash is 64 lower-case hex digits")
    resource: dict[str, Any] = {"name": f"data-{form}", "path": f"data.{form}", "format": form, "mediatype": MEDIA_TYPES[form]}
    if form == "csv":
        resource |= {"profile": "tabular-data-resource", "encoding": "utf-8"}
    else:  # a tabular resource is CSV; read as a table, frictionless turns whole numbers with nulls into floats and refuses them
        resource |= {"profile": "data-resource", "type": "file"}
    return resource | {"bytes": int(size), "hash": f"sha256:{digest}", "schema": schema}


def _make_list(file: str, digest: str, size: int) -> dict[str, Any]:
    """The resource of a hierarchy's list: texts, as many levels as it has."""
    return {
        "name": file.removesuffix(".csv"),
        "path": file,
        "format": "csv",
        "mediatype": MEDIA_TYPES["csv"],
        "encoding": "utf-8",
        "bytes": int(size),
        "hash": f"sha256:{digest}",
        "description": HIERARCHY_LIST,
    }


def _make_field(column: ColumnView, *, anywhere: bool) -> dict[str, Any]:
    """The field of a column. Where masked values may lie anywhere their domain is no constraint, and a description only."""
    is_free = anywhere and column.done == "noise" and column.domain is not None
    if column.type not in ("number", "integer", "string"):
        raise ValueError("a released column is of type number, integer or string")
    parts = [
        column.why,
        column.hierarchy or "",
        f"declared domain {column.domain[0]} to {column.domain[1]}, beyond which released values may lie"
        if is_free and column.domain
        else "",
        f"declared grid {column.grid}" if column.grid else "",
        f"declared atoms {', '.join(column.atoms)}" if column.atoms else "",
        f"noise: {column.noise}" if column.noise else "",
    ]
    field: dict[str, Any] = {"name": column.name, "type": column.type}
    field["description"] = "; ".join(part for part in parts if part)
    constraints: dict[str, Any] = {}
    if column.domain is not None and not is_free:
        constraints |= {"minimum": _bound(column.domain[0]), "maximum": _bound(column.domain[1])}
    if column.values:
        constraints["enum"] = [int(value) for value in column.values] if column.type == "integer" else list(column.values)
    return field | ({"constraints": constraints} if constraints else {})


def _bound(text: str) -> int | str:
    """A declared bound: a whole number as such, any other as its decimal text, which the standard reads exactly."""
    try:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else format(number, "f")
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError("a declared bound is a decimal number") from None


def _is_instant(text: str) -> bool:
    """Whether a text is a moment with its zone, as RFC 3339 writes it."""
    try:
        return "T" in text and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
