"""HTML without templates: the agent has the standard library alone. Whatever is not `Markup` is escaped, and shown so that no
character of it can hide, turn round or break out."""

from __future__ import annotations

import html

from release_pipeline.sign import make_plain

_VOID = {"meta", "input", "br"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Any text as HTML that shows it, in one line."""
    return text if isinstance(text, Markup) else Markup(html.escape(make_plain(text)))


def tag(name: str, /, *inside: str, **attributes: str | bool) -> Markup:
    """An element. `class_` is its class, `aria_label` its aria-label; an attribute that is False is left out.

    >>> tag("a", "<here>", href='/"x', class_="b")
    '<a href="/&quot;x" class="b">&lt;here&gt;</a>'
    """
    given = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not False)
    written = "".join(f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in given)
    start = f"<{name}{written}>"
    return Markup(start if name in _VOID else f"{start}{join(*inside)}</{name}>")


def join(*parts: str) -> Markup:
    """Parts behind each other, what is no HTML escaped."""
    return Markup("".join(escape(part) for part in parts))
