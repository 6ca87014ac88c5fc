"""The asset `published`, its job and its schedule: what they publish, what they refuse in words, and what they wait for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.command import verify_path
from tests.integration.people import copy_site, review, set_passphrase
from tests.integration.sites import GX_WARNINGS, QUIET, TinySite, failures

pytestmark = GX_WARNINGS


@pytest.fixture(scope="module")
def reviewed(candidate: Path, keys: dict[str, PrivateKey], key_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose release 1 was approved, and whose site.yaml names the service's key."""
    tiny = copy_site(candidate, tmp_path_factory.mktemp("reviewed") / "site")
    review(tiny, keys, "ben", "cleo")
    folder = tiny.home / "keys"
    shutil.copytree(key_folder, folder)
    with (tiny.home / "site.yaml").open("a") as settings:
        settings.write("service_key: keys/robot\n")
    return tiny.home


@pytest.fixture
def tiny(reviewed: Path, tmp_path: Path) -> TinySite:
    """A copy of it."""
    return copy_site(reviewed, tmp_path / "site")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's records, in a folder of their own: a schedule opens them anew."""
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as local:
        yield local


def publish_by_job(tiny: TinySite, instance: dg.DagsterInstance, release: str = "1") -> dg.ExecuteInProcessResult:
    """One run of the job, which may fail."""
    job = build_defs(tiny.home).resolve_job_def("publish_people")
    return job.execute_in_process(partition_key=release, instance=instance, raise_on_error=False, run_config=QUIET)


def tick(tiny: TinySite, instance: dg.DagsterInstance, name: str = "publication_people") -> Any:
    """One tick of a schedule."""
    repository = build_defs(tiny.home).get_repository_def()
    resources = {"site": SiteResource(home=str(tiny.home))}
    with dg.build_schedule_context(instance=instance, resources=resources, repository_def=repository) as context:
        return repository.get_schedule_def(name).evaluate_tick(context)


def test_the_lineage_ends_in_what_the_public_has(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """The job's materialization names the package, epsilon and k; the package is verified; its asset follows the candidate."""
    result = publish_by_job(tiny, instance)
    assert result.success
    [made] = result.asset_materializations_for_node("people__published")
    content = {name: value.value for name, value in made.metadata.items()}
    assert (content["epsilon"], content["k"], content["package_hash"]) == (2.0, 5, tiny.status().package_hash)
    assert not [finding for finding in verify_path(tiny.home / "releases/people/1/r1") if finding.level == "FAIL"]
    graph = build_defs(tiny.home).resolve_asset_graph()
    assert graph.get(dg.AssetKey(["people", "published"])).parent_keys == {dg.AssetKey(["people", "candidate"])}
    assert publish_by_job(tiny, instance).success
    assert [event.kind for event in tiny.events()].count("published") == 1


def test_the_schedule_asks_for_what_may_be_published(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """Once, with the partition of the release; and then for nothing more."""
    asked = tick(tiny, instance)
    assert [request.partition_key for request in asked.run_requests] == ["1"]
    assert publish_by_job(tiny, instance).success
    assert tick(tiny, instance).skip_message == "Nothing is approved and not yet published."


def test_the_schedule_waits_in_words(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """A key that cannot sign, caps that were changed since: a skipped tick says which, and no run begins."""
    key = tiny.home / "keys" / "robot"
    set_passphrase(key, "", "something")
    assert "ssh-keygen did not sign" in tick(tiny, instance).skip_message
    set_passphrase(key, "something", "")
    tiny.write_cap("epsilon: 11, definition: idp, scope: column")
    assert tick(tiny, instance).skip_message.endswith("populations.yaml is not approved by the privacy officer as it is now.")
    settings = tiny.home / "site.yaml"
    settings.write_text("".join(line for line in settings.read_text().splitlines(True) if not line.startswith("service")))
    assert "the site names no key to publish with" in tick(tiny, instance).skip_message


def test_what_a_target_missed_is_brought_later(tiny: TinySite, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """A target that is away when a package is published: the run fails, the package is public all the same, and the schedule asks
    for what is outstanding until it is done, and for nothing afterwards."""
    away = tmp_path / "shelf"
    away.write_text("no folder")
    with (tiny.home / "site.yaml").open("a") as settings:
        settings.write(f"targets: {{shelf: {{to: {away}}}}}\n")
    defs = build_defs(tiny.home)
    assert "Nothing is outstanding" in tick(tiny, instance, "delivery").skip_message
    assert not publish_by_job(tiny, instance).success
    assert tiny.status().state == "published"
    [request] = tick(tiny, instance, "delivery").run_requests
    job = defs.resolve_job_def("deliver")
    failed = job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)
    assert not failed.success
    assert any("release-pipeline deliver" in words for words in failures(failed))
    away.unlink()
    [request] = tick(tiny, instance, "delivery").run_requests
    assert request.partition_key is None
    assert job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET).success
    assert not [finding for finding in verify_path(away / "people" / "1" / "r1") if finding.level == "FAIL"]
    assert "Nothing is outstanding" in tick(tiny, instance, "delivery").skip_message
    assert [event.kind for event in tiny.events()].count("delivered") == 1
