"""The one door to the terminal: whatever a command prints, names and texts of a policy too, is shown as what it is."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

_SPACES = "Zs"
_SUSPECT = re.compile(r"[^\n\t -~]")


def make_visible(text: str) -> str:
    """The text with codes in the place of controls, escapes, overrides of direction and other letters that nobody sees. Line ends
    and tabs stay."""
    return _SUSPECT.sub(_tell, text)


def keep_line(text: str) -> str:
    """Likewise, for what must be one line: no name in it can begin another."""
    return make_visible(text).replace("\n", "\\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print each on a line of its own."""
    print("\n".join(keep_line(line) for line in lines))


def _tell(found: re.Match[str]) -> str:
    letter = found[0]
    shown = letter.isprintable() or unicodedata.category(letter) == _SPACES
    return letter if shown else letter.encode("unicode_escape").decode()


class VisibleStream:
    """A stream that writes so; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it, visibly."""
        self._stream.write(make_visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Likewise."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """In the block standard output and standard error are such streams."""
    out, err = (cast(TextIO, VisibleStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
