"""Scripts of the checkout that are no part of the package, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def load(place: str) -> ModuleType:
    """A script, as it is run: with its folder first in the path."""
    file = ROOT / place
    sys.path.insert(0, str(DEPLOY))
    try:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module  # dataclasses look for their module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(DEPLOY))
