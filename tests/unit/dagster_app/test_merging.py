"""A site's definitions beside those of others: what they are called, and that they merge."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import read_prefix
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.loading.load import list_policies

POLICIES = Path(__file__).resolve().parents[3] / "policies"
STAGES = ("source", "ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate", "published")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with three of the shipped policies, one of which has periods and a timetable."""
    home = tmp_path_factory.mktemp("merging") / "site"
    (home / "policies").mkdir(parents=True)
    for name in ("census-once", "adult-k-epsilon"):
        shutil.copy(POLICIES / f"{name}.yaml", home / "policies")
    text = (POLICIES / "rand-hie.yaml").read_text()
    (home / "policies" / "monthly.yaml").write_text(
        text.replace("policy: rand-hie", "policy: monthly").replace(
            'releases: ["1", "2", "3", "4", "5"]', 'releases: {every: month, first: 2026-10, cron: "0 6 5 * *"}'
        )
    )
    return home


def names_of(defs: dg.Definitions) -> dict[str, set[str]]:
    """All that Dagster knows by a name."""
    repository = defs.get_repository_def()
    graph = defs.resolve_asset_graph()
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    partitions = [node.partitions_def for node in nodes]
    return {
        "assets": {node.key.to_user_string() for node in nodes},
        "groups": {node.group_name for node in nodes},
        "pools": {pool for node in nodes if node.is_executable for pool in node.pools},
        "partitions": {known.name for known in partitions if isinstance(known, dg.DynamicPartitionsDefinition) and known.name},
        "jobs": {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")},
        "schedules": {schedule.name for schedule in repository.schedule_defs},
        "sensors": {sensor.name for sensor in repository.sensor_defs},
        "resources": set(defs.resources or {}),
        "ops": {node.name for job in repository.get_all_jobs() for node in job.nodes},
    }


BARE = {"prune_vault", "deliver_outstanding"}  # ops of no asset


def test_names_without_a_prefix_are_those_of_sites_in_use(home: Path) -> None:
    """Records of every site stand under these names: none may ever change."""
    policies = ("adult_k_epsilon", "census_once", "monthly")
    stages = {f"{policy}/{stage}" for policy in policies for stage in STAGES}
    ops = {f"{policy}__{stage}" for policy in policies for stage in (*STAGES[:6], "audited_and_candidate", "published")}
    assert names_of(build_defs(home)) == {
        "assets": stages | {f"policy/{policy}" for policy in policies},
        "groups": {"policies", "restricted", "protection", "audit", "public"},
        "pools": {"vault_adult_1994", "vault_census_1995", "vault_rand_hie_participants", "publication"},
        "partitions": {"releases_monthly"},
        "jobs": {
            "check_policies",
            "prune",
            "deliver",
            *(f"{job}_{policy}" for job in ("release", "publish") for policy in policies),
        },
        "schedules": {"prune_daily", "delivery", "timetable_monthly", *(f"publication_{policy}" for policy in policies)},
        "sensors": {"watch", "tell", *(f"arrival_{policy}" for policy in policies)},
        "resources": {"site"},
        "ops": ops | {f"policy__{policy}" for policy in policies} | BARE,
    }


@pytest.mark.parametrize("prefix", ["health", ["statistics", "health"]])
def test_with_a_prefix_every_name_has_it(home: Path, prefix: str | list[str]) -> None:
    """The same names, behind the prefix: in keys as parts of their own, in ops as Dagster joins keys."""
    parts = [prefix] if isinstance(prefix, str) else prefix
    plain, prefixed = names_of(build_defs(home)), names_of(build_defs(home, prefix=prefix))
    joints = {"assets": "/", "ops": "__"}
    for kind, names in plain.items():
        joint = joints.get(kind, "_")
        expected = {joint.join([*parts, name]) for name in names - BARE}
        assert prefixed[kind] == expected | {"_".join([*parts, name]) for name in names & BARE}, kind


def test_two_sites_under_the_same_names_do_not_merge(home: Path) -> None:
    """Dagster names the resource that both have: one of them needs a prefix."""
    with pytest.raises(dg.DagsterInvariantViolationError, match="different resources with same key 'site'"):
        dg.Definitions.merge(build_defs(home), build_defs(home))


def statuses_of(defs: dg.Definitions) -> dict[str, str]:
    """How every schedule and sensor begins."""
    repository = defs.get_repository_def()
    return {each.name: each.default_status.value for each in [*repository.schedule_defs, *repository.sensor_defs]}


def test_nothing_is_switched_on_where_nobody_asks_for_it(home: Path) -> None:
    """A team that loads a site opens no release by it; a service key changes nothing."""
    shutil.copytree(home, keyed := home.with_name("keyed"))
    (keyed / "site.yaml").write_text("service_key: keys/robot.key\n")
    for defs in (build_defs(home), build_defs(keyed, automations="off")):
        statuses = statuses_of(defs)
        assert {"watch", "tell", "prune_daily", "delivery", "timetable_monthly", "publication_monthly"} <= statuses.keys()
        assert set(statuses.values()) == {"STOPPED"}
    running = {name for name, status in statuses_of(build_defs(keyed, automations="on")).items() if status == "RUNNING"}
    published = {f"publication_{policy}" for policy in ("adult_k_epsilon", "census_once", "monthly")}
    assert running == {"watch", "tell", "prune_daily", "delivery", "timetable_monthly", "arrival_monthly", *published}


@pytest.mark.parametrize("prefix", ["", "a b", "1a", "a/b", "a-b", ["a", ""], "ä"])
def test_a_prefix_that_no_name_could_have_is_refused(prefix: str | list[str]) -> None:
    """With what one may be."""
    with pytest.raises(WrongUsage, match="cannot be the prefix of a site"):
        read_prefix(prefix)


@pytest.mark.parametrize("name", ["people copy.yaml", ".#people.yaml", "people.v2.yaml", "Ärzte.yaml", "a_b.yaml"])
def test_a_file_that_is_no_policy_takes_no_definitions_down(tmp_path: Path, name: str) -> None:
    """A copy, or what an editor leaves, beside policies whose names are the same in Dagster's letters: each has its own asset."""
    (tmp_path / "policies").mkdir()
    for file in ("a-b.yaml", name):
        (tmp_path / "policies" / file).write_text("x\n")
    keys = {key.to_user_string() for key in build_defs(tmp_path).resolve_asset_graph().get_all_asset_keys()}
    assert "policy/a_b" in keys
    assert len(keys) == len(list_policies(tmp_path))


def test_a_run_of_one_release_defines_its_own_policy_alone(home: Path) -> None:
    alone = build_defs(home, only="census-once").resolve_all_asset_keys()
    assert {key.path[-2] for key in alone if key.path[-1] in STAGES} == {"census_once"}
    assert set(alone) < set(build_defs(home).resolve_all_asset_keys())
