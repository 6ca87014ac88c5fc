"""What can be imported, and stays: the page says what `__all__` says, and the wheel says that it is typed."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def listed(module: str) -> list[str]:
    """The names that the page has under the heading of a module."""
    _, _, rest = PAGE.partition(f"\n## {module}\n")
    return re.findall(r"^- `(\w+)`: \S", rest.partition("\n## ")[0], flags=re.MULTILINE)


@pytest.mark.parametrize("module", ["release_pipeline.mechanisms", "release_pipeline.analyst"])
def test_the_page_lists_what_can_be_imported(module: str) -> None:
    """Each name once, with a sentence, and each of them is there."""
    found = import_module(module)
    assert sorted(listed(module)) == sorted(found.__all__)
    assert all(hasattr(found, name) for name in found.__all__)


@pytest.mark.slow
def test_the_page_shows_what_works() -> None:
    """Its blocks, from top to bottom, and what it says of what they give. Loops are compiled on the way."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)  # noqa: S102  what the page shows
    masked = names["mask_column"](names["income"], domain=(0, 200_000), grid=1, method="idp-cbls", epsilon="0.5", k=25)
    assert repr(masked.claim) in PAGE
    sizes = np.bincount(names["mdav"](names["matrix"], 5))
    assert 5 <= sizes.min() <= sizes.max() <= 9
