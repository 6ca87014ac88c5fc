"""`events`: what a site with a long history asks for: commands, and one run, at more and more events, in starts of NumPy.

The history is made by the registry itself, ten events a release, its signatures real; its packages are not made, for what one
package costs does not depend on the others.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa

from benchmarks.figures import Figure, Target
from benchmarks.synthetic import POLICY, make_site, noise_columns, write_sources
from release_pipeline.flow.candidate import freeze
from release_pipeline.flow.policies import read_caps, record_policy
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.trust.approvals import approve_policy, approve_populations
from release_pipeline.flow.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.flow.trust.members import Trust, need_trust, trust_key
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, Loss
from release_pipeline.store.ledger import Charge, add_charge, list_next_losses
from release_pipeline.store.registry import Registry, ReleaseId
from release_pipeline.store.rooms import locked_vault

HISTORY = "history"
PER_RELEASE = 10
RUNS, FEW = 3, 100  # turns; histories that show no more than that it runs have one
ROWS = 4000
STARTS = "starts of NumPy"
SHARE = Target("at most", 0.5)  # CPU seconds of a run that its registry may take
_PEOPLE = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}
_CLI = ("-m", "release_pipeline.cli")
_RUN = "import sys; from pathlib import Path; from release_pipeline.flow.opening import open_release; "
_RUN += "from release_pipeline.flow.site import find_site; "
_RUN += f"open_release(find_site(Path(sys.argv[1])), {POLICY!r}, None).run()"


def events(sizes: Sequence[int]) -> Iterator[Figure]:
    """`status`, `ledger`, `verify` and a run of stages of a site that has that many events, and what more a run costs than with
    the fewest."""
    with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
        site, keys = _begin(Path(folder), releases=max(sizes) // PER_RELEASE)
        for n in sizes:
            _make_history(site, keys, n)
            if n == min(sizes):
                shutil.copytree(site.home, site.home.with_name("fewest"))
            yield from _figures(site, n, turns=RUNS if max(sizes) > FEW else 1)


def _figures(site: Site, n: int, *, turns: int) -> Iterator[Figure]:
    there, copy, few = ("--home", str(site.home)), site.home.with_name("copy"), site.home.with_name("few")
    cases = {
        "import numpy": ("-c", "import numpy"),
        "status": (*_CLI, "status", *there),
        "ledger": (*_CLI, "ledger", *there),
        "verify": (*_CLI, "verify", str(site.home)),
        "run": ("-c", _RUN, str(copy)),
        "run with the fewest": ("-c", _RUN, str(few)),  # in the same turn: a machine is not as fast from minute to minute
    }
    took: list[dict[str, float]] = []
    for _ in range(turns):
        for source, made in ((site.home, copy), (site.home.with_name("fewest"), few)):
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(source, made)
        took.append({case: _spend(arguments, fails=case == "verify") for case, arguments in cases.items()})
    spent = {case: median(turn[case] for turn in took) for case in cases}
    for case, seconds in spent.items():
        yield Figure("events", case, n, "CPU time", seconds, seconds / spent["import numpy"], STARTS)
    more = max(median(turn["run"] - turn["run with the fewest"] for turn in took), 0.0)
    yield Figure("events", "run, more than with the fewest", n, "CPU time", more, more, "CPU seconds", SHARE)


def _spend(arguments: Sequence[str], *, fails: bool) -> float:
    """CPU seconds of one process, which must end well; `verify` misses the packages and tables, which are not made."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, *arguments], cwd=root, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode not in (0, int(fails)):
        raise RuntimeError(done.stderr.decode(errors="replace"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _begin(folder: Path, *, releases: int) -> tuple[Site, dict[str, PrivateKey]]:
    """A site with an officer, the synthetic policy, which is to be run, and one of as many releases as are made up."""
    write_sources(folder, noise_columns(ROWS))
    home = make_site(folder / "site", "../table.parquet")
    cap = "{cap: {epsilon: 1000000, definition: idp, scope: column}}"
    (home / "populations.yaml").write_text(f"synthetic-people: {cap}\n{HISTORY}-people: {cap}\n", encoding="utf-8")
    file = home / "policies" / f"{POLICY}.yaml"
    names = ", ".join(f'"{number}"' for number in range(releases + 1))
    text = file.read_text(encoding="utf-8").replace(f"policy: {POLICY}", f"policy: {HISTORY}")
    text = text.replace("population: synthetic-people", f"population: {HISTORY}-people")
    source = "source: {path: ../table.parquet, release_column: region}"
    text = text.replace("releases: once", f"releases: [{names}]").replace("source: {path: ../table.parquet}", source)
    text = text.replace(f"  region: {{role: quasi, do: keep, values: {list(range(1, 21))}, why: synthetic, label: Region}}\n", "")
    file.with_name(f"{HISTORY}.yaml").write_text(text, encoding="utf-8")
    site, keys = find_site(home), dict[str, PrivateKey]()
    for name in _PEOPLE:
        make_key(home / name)
        keys[name] = read_key(home / name)
    for name, role in _PEOPLE.items():
        trust_key(site, name, role, keys[name].public, key=keys["olga"])
    approve_populations(site, key=keys["olga"])
    with locked_vault(site.vault, f"{HISTORY}-people"):  # a site goes on only where the vault of each population is there
        pass
    for name in (POLICY, HISTORY):
        approve_policy(site, name, key=keys["olga"])
    return site, keys


def _make_history(site: Site, keys: dict[str, PrivateKey], n: int) -> None:
    """As many made-up releases as there are events to come, each as a real one would be noted."""
    policy, caps = site.policy(HISTORY), read_caps(site)
    with site.open_registry() as registry:
        record_policy(site, registry, policy)
        trust = need_trust(site, registry)
        account = Account(policy.population, caps.of(policy), ())
        [loss] = list_next_losses((), policy, ["0"], records=ROWS)
        made = sum(event.kind == "reserved" for event in registry.events)
        account = Account(policy.population, caps.of(policy), (loss,) * made)
        while len(registry.events) + PER_RELEASE <= max(n, 2 * PER_RELEASE):
            _make_release(site, registry, trust, keys, policy, account, loss, ReleaseId(HISTORY, str(made)))
            account = Account(account.population, account.cap, (*account.charged, loss))
            made += 1


def _make_release(
    site: Site,
    registry: Registry,
    trust: Trust,
    keys: dict[str, PrivateKey],
    policy: Policy,
    account: Account,
    loss: Loss,
    release: ReleaseId,
) -> None:
    digest = sha256(str(release).encode()).hexdigest()
    registry.add("opened", release, why="by hand")
    add_charge(registry, Charge(release, policy.population, policy.canonical_hash(), digest, ROWS, loss), account)
    registry.add("secret", release, check=digest)
    registry.add("drawn", release, masked=digest)
    evidence = {"made up": str(release)}
    candidate = freeze(site.candidate(str(release)), pa.table({"n": [1]}), ["csv"], evidence)
    facts = {"claim": "made up", "rows_in": ROWS, "rows_out": ROWS}
    registry.add("candidate", release, candidate_hash=candidate, policy_hash=policy.canonical_hash(), facts=facts)
    for name in ("ben", "cleo"):
        signed = trust.sign(keys[name], kind="approve", subject=str(release), digest=candidate)
        content = {"what": "candidate", "subject": str(release), "hash": candidate, "name": name, "needed": 2}
        registry.add("approved", release, **content, signed=signed)
    registry.add("publishing", release, candidate_hash=candidate, by="robot")
    signed = trust.sign(keys["robot"], kind="package", subject=str(release), digest=digest)
    registry.add("published", release, package_hash=digest, signed=signed)
    registry.add("failed", release, reason="made up", run=str(release), told_elsewhere=True)
