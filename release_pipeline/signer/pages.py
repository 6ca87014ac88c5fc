"""Checks a page for anything that runs or fetches, before a browser opens it."""

from __future__ import annotations

import html
import re

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)((?:\s+[A-Za-z][A-Za-z0-9:_-]*(?:=\"[^\"<]*\")?)*)\s*/?>")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9:_-]*)(?:=\"([^\"<]*)\")?")
_INERT = re.compile(
    "a|abbr|article|aside|b|bdi|bdo|blockquote|body|br|caption|circle|clippath|code|col|colgroup|dd|defs|desc|details|dfn|div|dl|dt"
    "|ellipse|em|figcaption|figure|footer|g|h[1-6]|head|header|hr|html|i|kbd|li|line|lineargradient|main|mark|marker|meta|nav|ol|p"
    "|path|pattern|polygon|polyline|pre|q|rect|s|samp|section|small|span|stop|strong|style|sub|summary|sup|svg|symbol|table|tbody"
    "|td|text|tfoot|th|thead|time|title|tr|tspan|u|ul|var|wbr"
)
_FETCHES = re.compile(
    "on.*|action|background|cite|data|dynsrc|formaction|icon|itemtype|longdesc|lowsrc|manifest|ping|poster|profile|src|srcdoc|srcset"
    "|usemap|xlink:.*|xml:base"
)
_TEXTS = re.compile("aria-.*|data-.*|class|content|id|lang|name|role|title")  # attributes that are no style
_CSS = re.compile(
    r"\\|url\((?!#)|@(?!media\b|page\b|container\b|supports\b)|(?:image|image-set|src|cross-fade|expression)\(", re.IGNORECASE
)
_STYLE = re.compile(r"<style[^>]*>([^<]*)(</style)?", re.IGNORECASE)


def find_active(page: bytes) -> str:
    """Return the first thing in a page that no reviewers' page of ours has, since it could run, load or lead elsewhere, and so
    show different things to different people; empty without any. Every `<` must begin a known tag, wherever it is, so that every
    parser of HTML sees the same tags."""
    try:
        text = page.decode("utf-8")
    except UnicodeDecodeError:
        return "what is not UTF-8"
    if any(ord(c) < 32 and c not in "\n\t\r" for c in text):
        return "a control character"
    text = text[15:] if text[:15].lower() == "<!doctype html>" else text
    at = text.find("<")
    while at >= 0:
        tag = _TAG.match(text, at)
        if tag is None:
            return text[at : at + 60]
        if _is_active(tag):
            return tag[0][:60]
        at = text.find("<", tag.end())
    for css, end in _STYLE.findall(text):
        if not end:
            return "a style with another tag in it"
        if found := _CSS.search(css) or _CSS.search(html.unescape(css)):  # in an <svg> a style has entities
            return f"the style {found[0][:60]}"
    return ""


def _is_active(tag: re.Match[str]) -> bool:
    if not _INERT.fullmatch(tag[1].lower()):
        return True
    found = _ATTRIBUTE.findall(tag[2])
    given = {name.lower(): html.unescape(value).strip() for name, value in found}
    if len(given) < len(found):  # of two with one name a browser takes the first
        return True
    if given.get("http-equiv", "Content-Security-Policy").lower() != "content-security-policy":
        return True
    if not given.get("href", "#").startswith("#") or given.get("charset", "utf-8").lower() != "utf-8":
        return True
    if any(_FETCHES.fullmatch(name) for name in given):
        return True
    return any(_CSS.search(value) for name, value in given.items() if not _TEXTS.fullmatch(name))
