"""What every page owes to people who do not see it, use no mouse, or see little contrast: looked for in HTML, without a browser.

It is less than axe-core finds in one (tests/integration/test_accessibility.py), and needs nothing but the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
ENDED_BY = {  # tags that HTML lets one leave out: what ends an open one
    "td": {"td", "th", "tr", "tbody", "tfoot"},
    "th": {"td", "th", "tr", "tbody", "tfoot"},
    "tr": {"tr", "tbody", "tfoot"},
    "thead": {"tbody", "tfoot"},
    "tbody": {"tbody", "tfoot"},
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "option": {"option"},
}
CLOSED_WITH = {"td", "th", "tr", "tbody", "thead", "li", "dt", "dd", "option", "p"}  # by the end of what they are in
CHILDREN = {
    "ul": {"li"},
    "ol": {"li"},
    "dl": {"dt", "dd", "div"},
    "tr": {"th", "td"},
    "thead": {"tr"},
    "tbody": {"tr"},
}
PARENTS = {"li": {"ul", "ol"}, "dt": {"dl", "div"}, "dd": {"dl", "div"}, "summary": {"details"}, "figcaption": {"figure"}}
LANDMARKS = ("main", "header", "footer", "nav", "aside", "section")
FIELDS = {"input", "select", "textarea"}
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@dataclass
class Element:
    """A tag with what is in it."""

    tag: str
    given: dict[str, str]
    parent: Element | None
    inside: list[Element | str] = field(default_factory=list["Element | str"])

    def walk(self) -> Iterator[Element]:
        """All elements in it, in their order."""
        for part in self.inside:
            if isinstance(part, Element):
                yield part
                yield from part.walk()

    def all(self, *tags: str) -> list[Element]:
        """Those of these tags."""
        return [one for one in self.walk() if one.tag in tags]

    @property
    def is_hidden(self) -> bool:
        """Whether nobody is told of it."""
        own = self.given.get("aria-hidden") == "true" or "hidden" in self.given
        return own or (self.parent is not None and self.parent.is_hidden)

    @property
    def words(self) -> str:
        """What is read out of it: its text, and the names of pictures."""
        if self.given.get("aria-hidden") == "true" or self.tag in ("style", "script"):
            return ""
        if self.given.get("aria-label"):
            return self.given["aria-label"]
        parts = [part if isinstance(part, str) else part.words for part in self.inside]
        return " ".join([self.given.get("alt", ""), *parts]).strip()

    def is_in(self, *tags: str) -> bool:
        """Whether one of these is around it."""
        return self.parent is not None and (self.parent.tag in tags or self.parent.is_in(*tags))

    def __str__(self) -> str:
        """As it begins."""
        given = [f'{name}="{value}"' for name, value in self.given.items()]
        return f"<{' '.join([self.tag, *given[:4]])}>"


class Document(HTMLParser):
    """A page as a tree, with the tags that HTML lets one leave out."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.at = Element("", {}, None)
        self.elements: list[Element] = []  # in their order
        self.faults: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.at.parent is not None and tag in ENDED_BY.get(self.at.tag, ()):
            self.at = self.at.parent
        one = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.inside.append(one)
        self.elements.append(one)
        if tag not in VOID:
            self.at = one

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.at.tag != tag and self.at.tag in CLOSED_WITH and self.at.parent is not None:
            self.at = self.at.parent
        if self.at.tag != tag or self.at.parent is None:
            self.faults.append(f"</{tag}> ends {self.at}")
        else:
            self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.inside.append(data)

    def all(self, *tags: str) -> list[Element]:
        """All elements of these tags, in their order."""
        return [one for one in self.elements if one.tag in tags]

    @cached_property
    def known(self) -> dict[str, Element]:
        """Elements by their id."""
        return {one.given["id"]: one for one in self.elements if "id" in one.given}

    def name_of(self, one: Element) -> str:
        """By a label, by what it says is its label, or by its title."""
        if one.given.get("aria-label"):
            return one.given["aria-label"]
        names = one.given.get("aria-labelledby", "").split()
        words = " ".join(self.known[name].words for name in names if name in self.known)
        titles = [part.words for part in one.inside if isinstance(part, Element) and part.tag == "title"]
        return words or " ".join(titles) or one.given.get("title", "")


def find_faults(page: str) -> list[str]:
    """What is missing or wrong, a line each; none where the page is as it should be."""
    read = Document(page)
    return [
        *read.faults,
        *_look_at_page(read),
        *_look_at_headings(read),
        *_look_at_names(read),
        *_look_at_pictures(read),
        *_look_at_tables(read),
        *_look_at_controls(read),
        *_look_at_nesting(read),
    ]


def _look_at_page(page: Document) -> Iterator[str]:
    """A language, a title, one main part, text outside of none, and a page that may be made larger."""
    [html] = page.all("html")
    if not LANGUAGE.fullmatch(html.given.get("lang", "")):
        yield "the page has no language"
    yield from (f"{one} has no language" for one in html.walk() if not LANGUAGE.fullmatch(one.given.get("lang", "en")))
    titles = [one for one in page.all("title") if one.is_in("head")]
    if len(titles) != 1 or not titles[0].words:
        yield "the page has no title, or several"
    if len(page.all("main")) != 1:
        yield "the page has no main part, or several"
    for body in page.all("body"):
        for part in body.inside:
            if isinstance(part, str):
                is_outside = bool(part.strip())
            else:
                is_outside = part.tag not in (*LANDMARKS, "script") and "skip" not in part.given.get("class", "")
            if is_outside:
                yield f"outside of every part of the page: {part}"
    views = [one.given.get("content", "") for one in page.all("meta") if one.given.get("name") == "viewport"]
    if not views or any(re.search(r"user-scalable\s*=\s*no|maximum-scale", one) for one in views):
        yield "the page does not fit a phone, or cannot be made larger"


def _look_at_headings(page: Document) -> Iterator[str]:
    """One first heading, then step by step, and none empty but what a script fills."""
    headings = page.all("h1", "h2", "h3", "h4", "h5", "h6")
    levels = [int(one.tag[1]) for one in headings]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield f"the headings do not begin with the only first one: {levels[:5]}"
    for before, one in zip(levels, headings[1:], strict=False):
        if int(one.tag[1]) > before + 1:
            yield f"{one} {one.words!r} leaves out a level"
    yield from (f"{one} is empty" for one in headings if not one.words and "aria-live" not in one.given)


def _look_at_names(page: Document) -> Iterator[str]:
    """Ids that are there once, and lead somewhere."""
    ids = Counter(one.given["id"] for one in page.elements if "id" in one.given)
    yield from (f"the id {name!r} is there {count} times" for name, count in ids.items() if count > 1)
    for one in page.elements:
        for kind in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
            missing = set(one.given.get(kind, "").split()) - set(ids)
            if missing:
                yield f"{one}: {kind} names {sorted(missing)}, which is not there"
        if (link := one.given.get("href", "")).startswith("#") and link[1:] not in ids:
            yield f"{one} leads nowhere"


def _look_at_pictures(page: Document) -> Iterator[str]:
    """A name for each that is not for decoration alone."""
    for one in page.all("img"):
        if "alt" not in one.given:
            yield f"{one} has no words"
    for one in page.all("svg"):
        if not one.is_hidden and not one.is_in("svg"):
            if one.given.get("role") not in ("img", "group"):
                yield f"{one} is neither hidden nor a picture"
            if not page.name_of(one):
                yield f"{one} has no name"


def _look_at_tables(page: Document) -> Iterator[str]:
    """Heads with words that say what they are of; a caption, or a name of the frame around it."""
    for table in page.all("table"):
        around = table.parent.given if table.parent is not None else {}
        heading = table.is_in("details", "section")  # whose summary or heading says what is in it
        if not (table.all("caption") or table.given.get("aria-label") or around.get("aria-label") or heading):
            yield f"{table} has no caption"
        heads = table.all("th")
        if not heads:
            yield f"{table} has no heads"
        for one in heads:
            if one.given.get("scope") not in ("col", "row", "colgroup", "rowgroup"):
                yield f"{one} {one.words!r} says not what it is of"
            if not one.words:
                yield f"{one} of a table is empty"
        yield from (f"{one} is empty" for one in table.all("caption") if not one.words)


def _look_at_controls(page: Document) -> Iterator[str]:
    """Words on whatever can be reached, and an order that is that of the page."""
    labelled = {one.given["for"] for one in page.all("label") if "for" in one.given}
    for one in page.elements:
        number = one.given.get("tabindex", "0")
        if not re.fullmatch(r"-1|0", number):
            yield f"{one} has its own place in the order of the keyboard"
        reached = one.tag in ("a", "button", "summary") or one.given.get("tabindex") == "0"
        if (reached or one.tag in FIELDS) and one.given.get("type") != "hidden" and one.is_hidden:
            yield f"{one} is hidden, and reached with the keyboard"
        if reached and not (page.name_of(one) or one.words):
            yield f"{one} has no words"
        if one.given.get("tabindex") == "0" and one.tag not in ("a", "button", "summary") and "role" not in one.given:
            yield f"{one} is reached, and says not what it is"
        if one.tag in FIELDS and one.given.get("type") not in ("hidden", "submit", "button"):
            label = one.given.get("id", "?") in labelled or any(around.words for around in _around(one) if around.tag == "label")
            if not (label or page.name_of(one)):
                yield f"{one} has no label"


def _look_at_nesting(page: Document) -> Iterator[str]:
    """Lists have items, items are in lists, and nothing that is reached is in another."""
    for one in page.elements:
        if one.tag in CHILDREN and (wrong := {part.tag for part in one.inside if isinstance(part, Element)} - CHILDREN[one.tag]):
            yield f"{one} has {sorted(wrong)} in it"
        if one.tag in PARENTS and one.parent is not None and one.parent.tag not in PARENTS[one.tag]:
            yield f"{one} is in {one.parent}"
        if one.tag in ("a", "button") and one.is_in("a", "button"):
            yield f"{one} is in another link or button"


def _around(one: Element) -> Iterator[Element]:
    while one.parent is not None:
        one = one.parent
        yield one


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2, from 1 to 21.

    >>> contrast("#ffffff", "#000000"), contrast("#777777", "#ffffff")
    (21.0, 4.48)
    """
    dark, light = sorted((_luminance(one), _luminance(other)))
    return round((light + 0.05) / (dark + 0.05), 2)


def read_palettes(style: str) -> dict[str, dict[str, str]]:
    """The colours by name, of light, dark and paper, in that order; what dark or paper leaves out is as in the light."""
    found = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    blocks = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in found]
    return {name: blocks[0] | block for name, block in zip(("light", "dark", "paper"), blocks, strict=True)}


def _parts(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _luminance(colour: str) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (n / 255 for n in _parts(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
