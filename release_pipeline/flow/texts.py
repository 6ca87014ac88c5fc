"""Texts that people give, before they are signed or noted."""

from __future__ import annotations

from release_pipeline.errors import WrongUsage

LONGEST = 500
LONGEST_NAME = 64


def check_line(text: str, *, where: str = "--why", longest: int = LONGEST) -> str:
    """The text without spaces around it, if it is one line that can be printed."""
    if len(text) > longest or not (text or " ").isprintable():
        raise WrongUsage(
            f"a reason is one line of at most {longest} characters.", where=where, remedy="It stays in the registry."
        )
    return text.strip()


def check_name(by: str, *, remedy: str) -> str:
    """The name of a person without spaces around it, if it is one short line that can be printed."""
    if not (name := by.strip()) or len(name) > LONGEST_NAME or not name.isprintable():
        raise WrongUsage(f"a name is one line of 1 to {LONGEST_NAME} characters.", where="--by", remedy=remedy)
    return name
