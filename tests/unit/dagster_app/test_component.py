"""A site as a component in a team's project, and what is loaded when somebody asks for it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = itertools.count(1)
TYPE = "type: release_pipeline.apps.dagster.ReleasePipelineSite\n"
Load = Callable[..., dg.Definitions]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a team's project with a folder in `defs` for each text of a defs.yaml; beside it is the site `sites/health`."""
    (tmp_path / "sites" / "health" / "policies").mkdir(parents=True)
    shutil.copy(ROOT / "policies" / "census-once.yaml", tmp_path / "sites" / "health" / "policies")
    team = f"team_{next(NUMBERS)}"  # a module is imported once in a process
    project = tmp_path / "project"
    monkeypatch.syspath_prepend(str(project))

    def load(*texts: str) -> dg.Definitions:
        for number, text in enumerate(texts):
            folder = project / team / "defs" / f"site_{number}"
            folder.mkdir(parents=True)
            (folder / "defs.yaml").write_text(TYPE + text)
        for folder in (project / team, project / team / "defs"):
            (folder / "__init__.py").touch()
        (project / "pyproject.toml").write_text(
            f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{team}"\n'
        )
        return dg.load_from_defs_folder(path_within_project=project / team)

    return load


def keys_of(defs: dg.Definitions) -> set[str]:
    """The assets."""
    return {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}


def test_five_lines_of_yaml_are_a_site(load: Load) -> None:
    """`home` is found from the folder of the file; a second one stands beside it under its prefix."""
    home = "../../../../sites/health"
    defs = load(f"attributes:\n  home: {home}\n", f"attributes:\n  home: {home}\n  prefix: [statistics, health]\n")
    dg.Definitions.validate_loadable(defs)
    keys = keys_of(defs)
    assert {"census_once/published", "statistics/health/census_once/published"} <= keys
    assert len(keys) == 2 * 10


@pytest.mark.parametrize(
    ("said", "status"),
    [("", "STOPPED"), (", automations: off", "STOPPED"), (", automations: on", "RUNNING"), (", automations: 'on'", "RUNNING")],
)
def test_a_component_switches_nothing_on_by_itself(load: Load, said: str, status: str) -> None:
    """YAML reads on and off as yes and no."""
    repository = load(f"attributes: {{home: ../../../../sites/health{said}}}\n").get_repository_def()
    assert repository.get_sensor_def("watch").default_status.value == status
