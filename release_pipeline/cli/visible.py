"""The one way to the terminal: it shows names and texts of a policy as they are, and draws tables and progress for people."""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

if TYPE_CHECKING:  # imported where the stream is a terminal
    from rich.console import Console
    from rich.progress import Progress as Bar

_SPACES = "Zs"
_SUSPECT = re.compile(r"[^\n\t -~]")
_NUMBER = re.compile(r"-?[\d,.]*%?")
_COUNTED = re.compile(r"(\d+) of (\d+)\b")
_STYLES = {
    **dict.fromkeys(("ok", "holds", "published", "approved", "spent"), "green"),
    **dict.fromkeys(("note", "late", "returned", "reserved", "superseded"), "yellow"),
    **dict.fromkeys(("FAIL", "BROKEN", "blocked", "damaged", "rejected", "retracted"), "bold red"),
}


def make_visible(text: str) -> str:
    """The text with codes in the place of controls, escapes, overrides of direction and other letters that nobody sees. Line ends
    and tabs stay."""
    return _SUSPECT.sub(_show_letter, text)


def keep_line(text: str) -> str:
    """Likewise, for what must be one line: no name in it can begin another."""
    return make_visible(text).replace("\n", "\\n")


def _show_letter(match: re.Match[str]) -> str:
    letter = match[0]
    shown = letter.isprintable() or unicodedata.category(letter) == _SPACES
    return letter if shown else letter.encode("unicode_escape").decode()


class VisibleStream:
    """A stream that writes so; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write it, visibly."""
        self.stream.write(make_visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Likewise."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """In the block standard output and standard error are such streams."""
    out, err = (cast(TextIO, VisibleStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def open_console(stream: TextIO) -> Console | None:
    """A console for a terminal, whose own colour codes pass; None where the stream is no terminal. Rich respects NO_COLOR."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    return Console(file=getattr(stream, "stream", stream), markup=False, emoji=False, highlight=False)


class TableLine(str):
    """The rows of a table in the place of a line; the first row is the head."""

    rows: Sequence[Sequence[str]] = ()


def draw_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as one line, which a terminal shows as a table."""
    line = TableLine()
    line.rows = rows
    return [line]


def table_drawer() -> Callable[[Sequence[Sequence[str]]], list[str]] | None:
    """What makes a table of rows on a terminal; None elsewhere, where the table is aligned text."""
    return draw_table if open_console(sys.stdout) is not None else None


def print_lines(lines: Iterable[str]) -> None:
    """Print each on a line of its own, and tables as such."""
    console = open_console(sys.stdout)
    for line in lines:
        if console is not None and isinstance(line, TableLine):
            console.print(_make_table(line.rows))
        else:
            print(keep_line(line))


def _make_table(rows: Sequence[Sequence[str]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table, (head, *body) = Table(box=SIMPLE_HEAD, pad_edge=False), rows
    for title, *cells in zip(head, *body, strict=True):
        is_number = all(map(_NUMBER.fullmatch, cells))
        table.add_column(Text(keep_line(title)), justify="right" if is_number else "left", overflow="fold")
    for row in body:
        table.add_row(*(Text(keep_line(cell), style=_STYLES.get(cell, "")) for cell in row))
    return table


class Progress:
    """Steps of long work on standard error, each with the seconds since the start; on a terminal with a bar while it lasts."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._start, self._quiet = time.monotonic(), quiet
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        console = None if self._quiet else open_console(sys.stderr)
        if console is not None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str) -> None:
        """Show the next step; "3 of 20" in it moves the bar."""
        line = keep_line(f"[{time.monotonic() - self._start:6.1f} s] {step}")
        if self._quiet:
            return
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
            return
        counted = _COUNTED.search(step)
        done, total = map(int, counted.groups()) if counted else (0, None)
        [task] = self._bar.tasks
        task.total = total  # `update` takes None for no change
        self._bar.update(task.id, description=keep_line(step), completed=done)
        if counted is None:
            self._bar.console.print(line)
