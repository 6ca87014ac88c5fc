"""The demo's site: the policy rand-hie, the RAND Health Insurance Experiment from the statsmodels wheel, and its population."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.site import Site, find_site

POLICY = "rand-hie"
_INSIDE_STATSMODELS = Path("datasets/randhie/src/randhie.csv")
_POPULATIONS = """\
# The demo's people: those of the RAND Health Insurance Experiment.
rand-hie-participants: {cap: {epsilon: 10, definition: idp, scope: column}}
"""
_SITE = """\
# These data are public, so figures computed against the original may stand in Dagster's UI here.
internal_metrics_in_ui: true
"""
_MARK = ".release-pipeline-demo"


def build_demo_site(folder: Path, *, fresh: bool = False) -> Site:
    """The demo's site in `folder`: what is there is kept, unless `fresh`. Only a folder that the demo made is ever emptied."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _MARK).exists())):
        raise WrongUsage("this is not a folder that the demo made.", where=str(folder), remedy="Name another with --folder.")
    if fresh and folder.exists():
        shutil.rmtree(folder)
    try:
        (folder / "policies").mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        (folder / _MARK).touch()
        _copy_once(_shipped_policy(), folder / "policies" / f"{POLICY}.yaml")
        _copy_once(find_demo_data(), folder / "data" / "randhie.csv")
        _write_once(folder / "populations.yaml", _POPULATIONS)
        _write_once(folder / "site.yaml", _SITE)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    return find_site(folder)


def find_demo_data() -> Path:
    """The data file inside the statsmodels wheel, which is found without importing it."""
    spec = find_spec("statsmodels")
    if spec is not None and spec.origin is not None and (file := Path(spec.origin).parent / _INSIDE_STATSMODELS).is_file():
        return file
    raise ReleasePipelineError(
        "the demo's data are not here: they come inside the statsmodels wheel.", remedy="pip install 'release-pipeline[demo]'"
    )


def _shipped_policy() -> Path:
    package = Path(__file__).resolve().parent.parent
    inside = package / "policies" / f"{POLICY}.yaml"
    return inside if inside.is_file() else package.parent / "policies" / f"{POLICY}.yaml"


def _copy_once(source: Path, target: Path) -> None:
    if not target.exists():
        shutil.copyfile(source, target)


def _write_once(target: Path, text: str) -> None:
    if not target.exists():
        target.write_text(text, encoding="utf-8")
