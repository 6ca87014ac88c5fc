"""What a policy says plays no tricks on the terminal of who looks at it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from release_pipeline.apps.cli.commands import Progress, draw_table, print_lines, table_drawer, visible_output
from release_pipeline.apps.cli.program import main
from tests.unit.policy.test_formulas import POLICY

TRICKS = "\x1b]0;owned\x07\x1b[2J\r\u202e\u2066\x9b1m\x00\x08\x7f"
UNSHOWN = set(TRICKS) - set("owned]0;[2J1m")


@pytest.mark.parametrize("broken", [False, True])
def test_every_command_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: bool) -> None:
    """The plan of a policy and its errors: escapes as codes, and no name begins a line."""
    name = '"' + TRICKS.encode("unicode_escape").decode() + '\\nthe policy is approved"'
    text = (
        POLICY.replace("VALUES", "east, west")
        .replace("region:", f"{name}:")
        .replace("role: quasi, ", "" if broken else "role: quasi, ")
    )
    (tmp_path / "people.yaml").write_text(text)
    assert main(["check", str(tmp_path / "people.yaml")]) == int(broken)
    shown = capsys.readouterr()
    assert "\\x1b[2J" in (shown.err if broken else shown.out)
    for part in shown:
        assert not set(part) & UNSHOWN
        assert not any(line.startswith("the policy is approved") for line in part.splitlines())


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_shows_tables_and_progress_but_no_escape_of_a_name(monkeypatch: pytest.MonkeyPatch, colour: bool) -> None:
    """Colour is the program's own and absent with NO_COLOR; a name cannot bring its own, nor markup."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with visible_output():
        print_lines([*draw_table([("name", "state"), ("\x1b[2J[red]x\nstate", "published")]), "\x1b[2J"])
        with Progress() as progress:
            progress("first [red]\x1b[2J")
            progress("3 of 20 \x1b[2J")
    assert out.getvalue().count("\\x1b[2J") == 2
    assert "[red]x\\nstate" in out.getvalue()
    assert ("\x1b[32mpublished" in out.getvalue()) is colour
    assert "\x1b[2J" not in out.getvalue() + err.getvalue()
    assert "s] first [red]\\x1b[2J" in err.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    assert table_drawer() is None
