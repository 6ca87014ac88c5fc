"""Everything that Dagster shows. This is the only folder that imports Dagster.

For a team's own Dagster project: `build_defs`, and `ReleasePipelineSite` for YAML. Both are loaded when they are first used, so
that other modules of this folder load without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from release_pipeline.apps.dagster.building import build_defs
    from release_pipeline.apps.dagster.component import ReleasePipelineSite


__all__ = ["ReleasePipelineSite", "build_defs"]
_MODULES = {"ReleasePipelineSite": "component", "build_defs": "building"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # dg searches here for components
