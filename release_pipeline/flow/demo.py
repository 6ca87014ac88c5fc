"""The demos' sites: the RAND Health Insurance Experiment from the statsmodels wheel. The first has two policies that mask
columns, with a population each; the second one that makes synthetic rows, with a population and a cap of its own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import PUBLIC, write_bytes, write_text
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.flow.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.flow.trust.members import read_trust, trust_key
from release_pipeline.store.registry import ReleaseId

_INSIDE_STATSMODELS = Path("datasets/randhie/src/randhie.csv")


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo's site is made of. `policies`: of the first a wave is published, and one more is asked for. `steps`: what a
    release goes through, as it is told meanwhile. `name` stands in the folder that was made for it; `folder` is where that is
    unless another is named."""

    name: str
    folder: str
    policies: tuple[str, ...]
    populations: str
    steps: str

    @property
    def policy(self) -> str:
        """The policy whose first wave is published."""
        return self.policies[0]


COLUMNS_DEMO = Demo(
    name="columns",
    folder="demo",
    policies=("rand-hie", "rand-hie-dp"),
    populations="""\
# The demo's people: those of the RAND Health Insurance Experiment.
rand-hie-participants: {cap: {epsilon: 10, definition: idp, scope: column}}
# The same people once more, so that two methods can be seen side by side. Only data that are public may have two budgets.
rand-hie-participants-dp: {cap: {epsilon: 10, definition: dp, scope: column}}
""",
    steps="ingest, validate, microaggregate, mask, suppress, audit, candidate",
)
TABLE_DEMO = Demo(
    name="table",
    folder="demo-table",
    policies=("rand-hie-table",),
    populations="""\
# The demo's people: those of the RAND Health Insurance Experiment. The cap is of everything that readers see, by rho; it has
# room for three waves at epsilon 3 each (their rhos add up to epsilon 5.6 at this delta).
rand-hie-people: {cap: {epsilon: 6, delta: 0.000001, definition: zcdp, scope: table}}
""",
    steps="ingest, validate, count with noise, make synthetic rows, audit, candidate",
)
OFFICER = "olga"
PEOPLE = {OFFICER: "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}
_SITE = """\
# What is approved is published by the demo's service.
service_key: keys/robot
# These data are public, so figures computed against the original may stand in Dagster's UI here.
internal_metrics_in_ui: true
"""
_MARK = ".release-pipeline-demo"


def build_demo_site(demo: Demo, folder: Path, *, fresh: bool = False) -> Site:
    """A demo's site in `folder`: what is there is kept, unless `fresh`. Only a folder that this demo made is ever emptied."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _MARK).exists())):
        raise WrongUsage("this is not a folder that the demo made.", where=str(folder), remedy="Name another with --folder.")
    if (folder / _MARK).exists() and _read_mark(folder) != demo.name:
        raise WrongUsage("this is the folder of the other demo.", where=str(folder), remedy="Name another with --folder.")
    if fresh and folder.exists():
        shutil.rmtree(folder)
    try:
        (folder / "policies").mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        _write_once(folder / _MARK, demo.name + "\n")
        for policy in demo.policies:
            _copy_once(find_demo_policy(policy), folder / "policies" / f"{policy}.yaml")
        _copy_once(find_demo_data(), folder / "data" / "randhie.csv")
        _write_once(folder / "populations.yaml", demo.populations)
        _write_once(folder / "site.yaml", _SITE)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    return find_site(folder)


def trust_demo_people(demo: Demo, site: Site) -> dict[str, PrivateKey]:
    """The demo's people with their keys, made once, and what the officer signs before a run. Real keys belong to real people."""
    folder = site.home / "keys"
    folder.mkdir(exist_ok=True)
    for name in PEOPLE:
        if not (folder / name).exists():
            make_key(folder / name)
    keys = {name: read_key(folder / name) for name in PEOPLE}
    with site.open_registry(read_only=True) as registry:
        known = {member.name for member in trust.members} if (trust := read_trust(site, registry)) else set[str]()
    for name, role in PEOPLE.items():
        if name not in known:
            trust_key(site, name, role, keys[name].public, key=keys[OFFICER])
    for policy in demo.policies:
        approve_policy(site, policy, key=keys[OFFICER])
    approve_populations(site, key=keys[OFFICER])
    return keys


def review_demo_wave(site: Site, release: ReleaseId, keys: Mapping[str, PrivateKey]) -> None:
    """Both reviewers approve a candidate of the demo."""
    for name, role in PEOPLE.items():
        if role == "reviewer":
            approve_candidate(site, release, key=keys[name], why="the demo's public data")


def read_demo_key(site: Site, name: str) -> PrivateKey:
    """The key of one of the demo's people, which lies in its folder."""
    return read_key(site.home / "keys" / name)


def name_demo(folder: Path) -> str:
    """Which demo made a folder; empty for a folder that none made."""
    return _read_mark(folder) if (folder / _MARK).exists() else ""


def find_demo_data() -> Path:
    """The data file inside the statsmodels wheel, which is found without importing it."""
    spec = find_spec("statsmodels")
    if spec is not None and spec.origin is not None and (file := Path(spec.origin).parent / _INSIDE_STATSMODELS).is_file():
        return file
    raise ReleasePipelineError(
        "the demo's data are not here: they come inside the statsmodels wheel.", remedy="pip install 'release-pipeline[demo]'"
    )


def find_demo_policy(name: str = COLUMNS_DEMO.policy) -> Path:
    """A policy that a demo copies: of the package, or of the checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "policies" / f"{name}.yaml"
    return inside if inside.is_file() else package.parent / "policies" / f"{name}.yaml"


def _read_mark(folder: Path) -> str:
    """Which demo made a folder."""
    return (folder / _MARK).read_text(encoding="utf-8").strip()


def _copy_once(source: Path, target: Path) -> None:
    if not target.exists():
        write_bytes(target, source.read_bytes(), mode=PUBLIC)


def _write_once(target: Path, text: str) -> None:
    if not target.exists():
        write_text(target, text, mode=PUBLIC)
