"""What a policy says plays no tricks on the terminal of who looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.cli.program import main
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
