"""What is read as a statement that was signed elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from release_pipeline.errors import WrongUsage
from release_pipeline.trust.keys import read_statement


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody writes to it: who opened it plainly would wait without end."""
    pipe = tmp_path / "approval.json"
    os.mkfifo(pipe)
    with pytest.raises(WrongUsage, match="no regular file"):
        read_statement(pipe)
