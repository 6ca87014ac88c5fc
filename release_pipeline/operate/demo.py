"""The demo's site: public surveys from the statsmodels wheel play confidential data, for two populations.

Health care use of families is released as synthetic rows for everybody; voters of 1996 for everybody, which is refused, and for
licensed readers.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.ledger.states import list_statuses
from release_pipeline.pipeline.gates import read_refusal
from release_pipeline.policy import Policy
from release_pipeline.store.files import PUBLIC, write_bytes, write_text
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site, find_site
from release_pipeline.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.trust.members import read_trust, trust_key

PUBLIC_POLICY, REFUSED_POLICY, LICENSED_POLICY = "rand-hie-table", "election-public", "election-licensed"
POLICIES = (PUBLIC_POLICY, REFUSED_POLICY, LICENSED_POLICY)
WAVES = ("1", "2", "3")  # of the public policy: the first is published, the others are made with --all
OFFICER = "olga"
PEOPLE = {OFFICER: "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}
POPULATIONS = """\
# The people of the RAND Health Insurance Experiment. The cap is for everything that readers see, in rho; it has room
# for three waves at epsilon 3 each (their rhos add up to epsilon 5.6 at this delta).
rand-hie-people: {cap: {epsilon: 6, delta: 0.000001, definition: zcdp, scope: table}}
# The voters of the American National Election Study of 1996: other people, with a budget of their own.
voters-1996: {cap: {epsilon: 6, definition: idp, scope: column}}
"""
_SITE = """\
# What is approved is published by the demo's service.
service_key: keys/robot
# These data are public, so figures computed against the original may stand in Dagster's UI here.
internal_metrics_in_ui: true
# Who comes to the demo's desk besides the people with keys.
desk: {people: {vic: [auditor], ana: [operator]}}
"""
_MARK = ".release-pipeline-demo"
_RAND_HIE, _ELECTION = Path("datasets/randhie/src/randhie.csv"), Path("datasets/anes96/src/anes96.csv")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one release of the demo: a line of its table."""

    release: str
    readers: str
    method: str
    guarantee: str
    linked: str
    error: str
    state: str


def build_demo_site(folder: Path, *, fresh: bool = False) -> Site:
    """Return the demo's site in `folder`: an existing one is kept, unless `fresh`. Only a folder that the demo made is ever
    emptied."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not is_demo(folder))):
        raise WrongUsage("this is not a folder that the demo made.", where=str(folder), remedy="Name another with --folder.")
    if fresh and folder.exists():
        shutil.rmtree(folder)
    try:
        (folder / "policies").mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        _write_once(folder / _MARK, "")
        for policy in POLICIES:
            _copy_once(find_demo_policy(policy), folder / "policies" / f"{policy}.yaml")
        _copy_once(find_demo_data(), folder / "data" / "randhie.csv")
        _write_once(folder / "data" / "election-study.csv", read_election_study())
        _write_once(folder / "populations.yaml", POPULATIONS)
        _write_once(folder / "site.yaml", _SITE)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    return find_site(folder)


def is_demo(folder: Path) -> bool:
    """Return whether the demo made a folder."""
    return (folder / _MARK).exists()


def trust_demo_people(site: Site) -> dict[str, PrivateKey]:
    """Return the keys of the demo's people, made once; the officer has then signed what a run needs. Real keys belong to real
    people."""
    folder = site.home / "keys"
    folder.mkdir(exist_ok=True)
    for name in PEOPLE:
        if not (folder / name).exists():
            make_key(folder / name)
    keys = {name: read_demo_key(site, name) for name in PEOPLE}
    with site.open_registry(read_only=True) as registry:
        known = {member.name for member in trust.members} if (trust := read_trust(site, registry)) else set[str]()
    for name, role in PEOPLE.items():
        if name not in known:
            trust_key(site, name, role, keys[name].public, key=keys[OFFICER])
    for policy in POLICIES:
        approve_policy(site, policy, key=keys[OFFICER])
    approve_populations(site, key=keys[OFFICER])
    return keys


def review_demo_release(site: Site, release: ReleaseId, keys: Mapping[str, PrivateKey]) -> None:
    """Approve a candidate of the demo as both reviewers."""
    for name, role in PEOPLE.items():
        if role == "reviewer":
            approve_candidate(site, release, key=keys[name], why="the demo's public data")


def read_demo_key(site: Site, name: str) -> PrivateKey:
    """Return the key of one of the demo's people, which is in its folder."""
    return read_key(site.home / "keys" / name)


def list_outcomes(site: Site) -> Iterator[Outcome]:
    """Yield the results of the demo's releases so far, in the order of its story."""
    statuses = {str(release): status for release, status in list_statuses(site).items()}
    for policy in POLICIES:
        rules = site.policy(policy)
        method = rules.protect.method + (" + swap" if rules.swap else "")
        for wave in WAVES if policy == PUBLIC_POLICY else ("once",):
            release = f"{policy}/{wave}/r1"
            if (status := statuses.get(release)) is None:
                continue
            if status.candidate_hash is not None:
                audit = load_evidence(site.candidate(release)).read_audit()
                linked = f"{100 * audit.linkage_ladder[-1].linked.value:.0f}%" if audit.linkage_ladder else "rows are synthetic"
                name = max(audit.error, key=lambda column: audit.error[column])
                error = f"{audit.error[name]:.3f} ({name})"
                state = {"published": "published, verified", "candidate": "waits for two reviewers"}.get(
                    status.state, status.state
                )
            else:
                refusal = read_refusal(site, status.id)
                gate = next((gate for gate in refusal.get("gates", ()) if gate["name"].startswith("linkage")), None)
                linked = f"{100 * gate['value']:.0f}% expected" if gate else ""
                error, state = "", "refused, nothing spent" if status.state == "blocked" else status.state
            yield Outcome(release, rules.readers or "", method, _shorten_claim(rules), linked, error, state)


def _shorten_claim(policy: Policy) -> str:
    """Return a policy's guarantee, short enough for a table, and for how many of the released columns."""
    masked, released = len(policy.noise_columns), len(policy.released_columns)
    scope = "everything" if policy.covers_table else f"lists of {masked} of {released} columns"
    at_delta = f" (delta {policy.delta:f})" if policy.delta is not None else ""
    epsilon = getattr(policy.protect, "epsilon", None)
    return f"epsilon {epsilon} in all{at_delta}, {policy.claim.definition.tag}: {scope}"


def find_demo_data() -> Path:
    """Return the file of the RAND Health Insurance Experiment inside the statsmodels wheel, found without importing it."""
    return _find_inside(_RAND_HIE)


def read_election_study() -> str:
    """Return the American National Election Study of 1996 as a CSV; the wheel has its columns separated by spaces."""
    rows = (line.split() for line in _find_inside(_ELECTION).read_text(encoding="ascii").splitlines())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _find_inside(file: Path) -> Path:
    spec = find_spec("statsmodels")
    if spec is not None and spec.origin is not None and (path := Path(spec.origin).parent / file).is_file():
        return path
    raise ReleasePipelineError(
        "the demo's data are not here: they come inside the statsmodels wheel.", remedy="pip install 'release-pipeline[demo]'"
    )


def find_demo_policy(name: str = PUBLIC_POLICY) -> Path:
    """Return a policy that is shipped: of the package, or of the checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "policies" / f"{name}.yaml"
    return inside if inside.is_file() else package.parent / "policies" / f"{name}.yaml"


def _copy_once(source: Path, target: Path) -> None:
    if not target.exists():
        write_bytes(target, source.read_bytes(), mode=PUBLIC)


def _write_once(target: Path, text: str) -> None:
    if not target.exists():
        write_text(target, text, mode=PUBLIC)
