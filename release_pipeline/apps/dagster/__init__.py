"""What Dagster shows. The only folder that imports it.

For a team's own Dagster project: `build_defs`, and `ReleasePipelineSite` for YAML. Both are loaded when somebody asks for them:
whoever wants a module of this folder alone does not pay for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from release_pipeline.apps.dagster.building import build_defs
    from release_pipeline.apps.dagster.component import ReleasePipelineSite


__all__ = ["ReleasePipelineSite", "build_defs"]
_PLACES = {"ReleasePipelineSite": "component", "build_defs": "building"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # dg looks here for components
