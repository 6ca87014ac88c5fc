"""The lineage of a release, as OpenLineage events: valid by their schemas, in order, without a cell, and no matter to a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pytest
from referencing import Registry, Resource

from release_pipeline.apps.dagster import emitting
from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.operate.alerts.outbox import NotSent, spool_of
from release_pipeline.operate.alerts.sending import tell
from tests.integration.sites import GX_WARNINGS, QUIET, ROOT, STAGES, TinySite, make_rows, make_site, run_job
from tests.leaks import find_canaries, read_blobs

pytestmark = GX_WARNINGS

SPEC = ROOT / "tests" / "fixtures" / "openlineage"
SCHEMAS = [json.loads(file.read_text()) for file in sorted(SPEC.glob("*.json"))]
REGISTRY: Registry[Any] = Registry().with_resources([(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS])
CLAIM = json.loads((ROOT / "release_pipeline" / "schemas" / "openlineage-claim-1.json").read_text())
CANARIES = ("Kanarienvogel", "Zaunkoenig", "87654321")
Event = dict[str, Any]


def facets_of(event: Event) -> Iterator[tuple[str, Event]]:
    """Every facet of an event, with its name."""
    for place in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from place.get(kind, {}).items()


def validate(event: Event) -> Event:
    """The event, which is a RunEvent of the specification, and whose facets are each what their own schema says."""
    checker = jsonschema.FormatChecker()
    jsonschema.Draft202012Validator({"$ref": event["schemaURL"]}, registry=REGISTRY, format_checker=checker).validate(event)
    datetime.fromisoformat(event["eventTime"])
    for name, facet in facets_of(event):
        if name == "releasePipeline_claim":
            assert facet["_schemaURL"] == CLAIM["$id"]
            jsonschema.Draft202012Validator({**CLAIM, "additionalProperties": False}).validate(facet)
        else:
            schema = {"type": "object", "properties": {name: {"$ref": facet["_schemaURL"]}}}
            jsonschema.Draft202012Validator(schema, registry=REGISTRY, format_checker=checker).validate({name: facet})
            assert name in REGISTRY.contents(facet["_schemaURL"].partition("#")[0])["properties"]
    return event


def events_in(folder: Path) -> list[Event]:
    """What came to a folder, in the order of their names."""
    return [validate(json.loads(file.read_text())) for file in sorted(folder.glob("*.json"))]


def run(tiny: TinySite, release: str = "1") -> dg.ExecuteInProcessResult:
    """One run of the job."""
    with dg.DagsterInstance.ephemeral() as instance:
        return run_job(tiny, release, instance=instance)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A release that was made, and one that was refused, by runs whose lineage is kept and not sent yet."""
    rows = [{**row, "name": CANARIES[0], "remark": CANARIES[1]} for row in make_rows()]
    tiny = make_site(tmp_path_factory.mktemp("lineage") / "office", rows=rows)
    (tiny.home / "site.yaml").write_text("lineage: {openlineage: lineage, namespace: office}\n")
    assert run(tiny).success
    tiny.write_rows([{**row, "income": CANARIES[2]} for row in rows])
    assert not run(tiny, "2").success
    assert len(spool_of(tiny.site).list_files()) == 2 * len(STAGES) + 4
    return tiny


@pytest.mark.slow
def test_each_stage_begins_and_ends(told: TinySite) -> None:
    """In order, a run each below the run of Dagster; tables by name, from the source to the candidate."""
    tell(told.site)
    events = events_in(told.home / "lineage")
    first, second = events[: 2 * len(STAGES)], events[2 * len(STAGES) :]
    names = [(event["job"]["name"], event["eventType"]) for event in first]
    assert names == [(f"people.{stage}", kind) for stage in STAGES for kind in ("START", "COMPLETE")]
    assert [(event["job"]["name"], event["eventType"]) for event in second] == [
        *(("people.ingested", "START"), ("people.ingested", "COMPLETE")),
        *(("people.validated", "START"), ("people.validated", "FAIL")),
    ]
    assert len({event["run"]["runId"] for event in first}) == len(STAGES)
    assert len({event["run"]["facets"]["parent"]["run"]["runId"] for event in first}) == 1
    tables = [(event["inputs"][0]["name"], event["outputs"][0]["name"]) for event in first[1::2]]
    assert tables[0] == ("folk.people.source", "folk.people.ingested")
    assert tables[-1] == ("folk.people.suppressed", "folk.people.candidate")
    assert {event["job"]["namespace"] for event in events} == {"office"}


@pytest.mark.slow
def test_facts_are_those_of_policy_and_checks(told: TinySite) -> None:
    """The claim exactly; columns with types and where they come from; what was counted by family; why it failed, in our words."""
    tell(told.site)
    events = events_in(told.home / "lineage")
    claim = events[-1]["run"]["facets"]["releasePipeline_claim"]
    assert (claim["epsilon"], claim["k"], claim["definition"], claim["scope"]) == ("2", 5, "idp", "column")
    candidate = next(event for event in events if (event["job"]["name"], event["eventType"]) == ("people.candidate", "COMPLETE"))
    assert candidate["run"]["facets"]["releasePipeline_claim"]["release"] == "people/1/r1"
    facets = candidate["outputs"][0]["facets"]
    assert {field["name"]: field["type"] for field in facets["schema"]["fields"]} == {
        "town": "varchar",
        "sex": "bigint",
        "income": "double",
        "rent": "double",
    }
    lineage = facets["columnLineage"]["fields"]
    [origin] = lineage["income"]["inputFields"]
    [done] = origin["transformations"]
    assert (origin["name"], origin["field"], done["masking"], done["subtype"]) == (
        *("folk.people.source", "income", True, "TRANSFORMATION"),
    )
    assert lineage["town"]["inputFields"][0]["transformations"][0]["masking"] is False
    assert facets["version"]["datasetVersion"] == told.status("1").candidate_hash
    passed = next(event for event in events if (event["job"]["name"], event["eventType"]) == ("people.validated", "COMPLETE"))
    assertions = {one["assertion"]: one for one in passed["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]}
    assert (assertions["domains"]["success"], assertions["schema"]["success"]) == (True, True)
    assert assertions["domains"]["params"] == {"checks": 3}
    failed = events[-1]
    assert failed["run"]["facets"]["errorMessage"]["message"] == emitting.REFUSED
    assert "inputFacets" not in failed["inputs"][0]  # which checks failed stays at the site
    assert "60 records" not in json.dumps(events)  # a count may be of one record
    assert failed["job"]["facets"]["ownership"]["owners"] == [{"name": "steward:ana", "type": "STEWARD"}]


@pytest.mark.slow
def test_no_cell_is_in_it(told: TinySite) -> None:
    """Kept or sent; the search would find one."""
    tell(told.site)
    blobs = read_blobs(told.home / "lineage") | read_blobs(told.site.dagster_home)
    assert find_canaries(blobs, CANARIES) == []
    assert find_canaries({**blobs, "planted": CANARIES[2].encode()}, CANARIES) != []


@pytest.mark.slow
def test_no_run_fails_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where nothing can be kept, nor where site.yaml means nothing; and what is not taken stays in order."""
    tiny = make_site(tmp_path / "office")
    (tiny.home / "site.yaml").write_text("lineage: {openlineage: 'https://lineage.example', what: this}\n")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    assert run(tiny).success
    assert not spool_of(tiny.site).folder.exists()
    (tiny.home / "site.yaml").write_text("lineage: {openlineage: 'https://lineage.example'}\n")
    with monkeypatch.context() as patch:
        patch.setattr(emitting, "keep_event", full)
        assert run(tiny, "2").success
    assert run(tiny).success

    def down(*_: Any) -> None:
        raise NotSent("it answered 503.")

    monkeypatch.setattr("release_pipeline.operate.alerts.sending.post", down)
    [sent] = tell(tiny.site)
    assert (sent.sent, sent.left, sent.words) == (0, 2 * len(STAGES), "it answered 503.")


@pytest.mark.slow
def test_a_release_is_told_under_its_own_policy(tmp_path: Path) -> None:
    """Whatever the definitions were made of: a policy that was edited since they were loaded has another epsilon."""
    tiny = make_site(tmp_path / "site")
    (tiny.home / "site.yaml").write_text("lineage: {openlineage: lineage}\n")
    loaded = build_defs(tiny.home)
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 1.5, k: 5}")
    with dg.DagsterInstance.ephemeral() as instance:
        job = loaded.resolve_job_def("release_people")
        assert job.execute_in_process(partition_key="1", instance=instance, run_config=QUIET).success
    tell(tiny.site)
    events = [json.loads(file.read_text()) for file in sorted((tiny.home / "lineage").iterdir())]
    claims = {event["run"]["facets"]["releasePipeline_claim"]["epsilon"] for event in events}
    assert (len(events), claims) == (14, {"1.5"})
