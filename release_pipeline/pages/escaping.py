"""Puts texts into a page or a note so that they stay texts: each is shown as people may see it and escaped for its format, by the
environment of the template and not by its author's care."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Literal, TypeAlias

import jinja2
from jinja2.filters import FILTERS

from release_pipeline.formats.card import ColumnView
from release_pipeline.mechanisms.basis.figures import count_things, format_count, format_moment
from release_pipeline.policy.values.formats import say_scope, say_unit
from release_pipeline.sentences import PUBLIC, REVIEWERS, Catalogue

Format: TypeAlias = Literal["html", "markdown"]
TEMPLATES = Path(__file__).parent / "templates"
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_MARKDOWN = str.maketrans(
    {char: f"&#{ord(char)};" for char in "|`\\$"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    | {char: f"\\{char}" for char in "*_[]~#"}
)


class Ready(str):
    """A text that is escaped already."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


class _Name(str):
    """A text that is shown character by character."""

    __slots__ = ()


def format_text(text: str) -> str:
    """Return a text on one line, as people may see it: runs of spaces as one, invisible characters by their
    number.

    >>> format_text("two\\n lines \\u202eback"), format_text("a\\u00a0b")
    ('two lines [U+202E]back', 'a b')
    """
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(map(_name_unseen, line))  # printable: nothing of C, nor of Z but spaces


def format_name(text: str) -> str:
    """Return a name, character by character: invisible ones by their number, line ends and odd spaces too.

    >>> format_name("two\\nlines "), format_name("a\\u00a0b")
    ('two[U+000A]lines ', 'a[U+00A0]b')
    """
    if text.isprintable():
        return text
    return "".join(map(_name_odd, text))


def end_sentence(text: str) -> str:
    """Return a text with its full stop.

    >>> end_sentence("not bounded"), end_sentence("It is not bounded. ")
    ('not bounded.', 'It is not bounded.')
    """
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def describe_word(word: str) -> str:
    """Return a role, or the treatment of a column, as words that need no glossary."""
    return PUBLIC.read_section("word").get(word, word)


def describe_type(column: ColumnView) -> str:
    """Return the type of a column; weights that are released unchanged are texts."""
    if column.role == "weight" and column.type == "string":
        return PUBLIC("both.weight_as_text")
    return PUBLIC.read_section("type").get(column.type, column.type)


def say_amount(text: str) -> str:
    """Return an infinite amount as a word; any other text as it is."""
    return PUBLIC("total.infinite") if text == "infinity" else text


def describe_order(consistency: str) -> str:
    """Return whether the order of values was restored, as a text."""
    return PUBLIC.read_section("consistency").get(consistency, consistency)


def describe_protection(count: str) -> str:
    """Return whether the claim protects how many records a person or household has, as a text."""
    return PUBLIC.read_section("record_count").get(count, count)


def escape_markdown(text: str) -> str:
    """Return a text that stays a text in every flavour of Markdown, in tables and at the start of a line too.

    >>> escape_markdown("a|b <script> `x` [y](z) _n_")
    'a&#124;b &lt;script&gt; &#96;x&#96; \\\\[y\\\\](z) \\\\_n\\\\_'
    >>> escape_markdown("- item"), escape_markdown("1. one"), escape_markdown("https://example.com")
    ('\\\\- item', '1\\\\. one', 'https:&#47;&#47;example.com')
    """
    escaped = text.translate(_MARKDOWN).replace("://", ":&#47;&#47;").replace("www.", "www&#46;")
    return re.sub(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+=:])", lambda start: f"{start[0]}\\", escaped)


def html(key: str, /, **values: object) -> Ready:
    """Return a sentence of the page, with everything that is put into it escaped."""
    return _fill_html(PUBLIC, key, **values)


def markdown(key: str, /, **values: object) -> Ready:
    """Return a sentence of the note, with everything that is put into it escaped."""
    return Ready(PUBLIC(key, **{name: _escape_markdown(value) for name, value in values.items()}))


@cache
def load_templates(format: Format) -> jinja2.Environment:
    """Return the templates for `html` or `markdown`: what they print goes through `finalize`, and is then escaped for HTML,
    unless it is ready. `say` takes a sentence of the public catalogue for that format; `review` one for the people of a site."""
    finalize: Callable[[object], object] = _escape_markdown if format == "markdown" else _finalize_html
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.globals |= {
        "say": markdown if format == "markdown" else html,
        "review": partial(_fill_html, REVIEWERS),
        "things": count_things,
    }
    environment.filters |= {
        "exactly": _Name,
        "in_groups": format_count,
        "stop": end_sentence,
        "described": describe_word,
        "moment": format_moment,
        "decimal": say_amount,
        "typed": describe_type,
        "unit": say_unit,
        "scope": say_scope,
        "restored": describe_order,
        "protection": describe_protection,
    }
    return environment


def _fill_html(catalogue: Catalogue, key: str, /, **values: object) -> Ready:
    return Ready(catalogue(key, **{name: _escape_html(value) for name, value in values.items()}))


def _name_odd(char: str) -> str:
    return f"[U+{ord(char):04X}]" if char.isspace() and char != " " else _name_unseen(char)


def _name_unseen(char: str) -> str:
    return f"[U+{ord(char):04X}]" if unicodedata.category(char) in _UNSEEN else char


def _format(value: object) -> str:
    return format_name(value) if isinstance(value, _Name) else format_text(str(value))


def _finalize_html(value: object) -> object:
    """Return the value for the page: the output of a macro or a sentence is ready; everything else is shown as a text."""
    return value if hasattr(value, "__html__") else _format(value)


def _escape_html(value: object) -> str:
    return str(value) if hasattr(value, "__html__") else str(FILTERS["escape"](_format(value)))


def _escape_markdown(value: object) -> Ready:
    return Ready(value) if hasattr(value, "__html__") else Ready(escape_markdown(_format(value)))
