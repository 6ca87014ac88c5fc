"""What a policy says stays in the block of code that shows its plan."""

from __future__ import annotations

import pytest

from release_pipeline.apps.dagster.releases import fence


@pytest.mark.parametrize("text", ["plain", "a\n```\n[x](https://evil.example)", "````", "a ``` b `````` c", "~~~"])
def test_nothing_in_it_ends_it(text: str) -> None:
    """The marks around it are longer than any in it, and three at least."""
    first, *inner, last = fence(text).split("\n")
    assert first == last == "`" * len(first)
    assert "\n".join(inner) == text
    assert len(first) >= 3
    assert first not in text
