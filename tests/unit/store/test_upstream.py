"""`upstream` of site.yaml: which asset of somebody's Dagster a policy's source comes from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import dagster as dg
import pytest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.site import Site

POLICIES = Path(__file__).resolve().parents[3] / "policies"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with one policy."""
    (tmp_path / "policies").mkdir()
    shutil.copy(POLICIES / "census-once.yaml", tmp_path / "policies")
    return Site(tmp_path, {})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{people: a/b}", r"names a policy 'people' that this site has not.*There are: census-once"),
        ("{census-once: a//b}", "has a part that is no text, or empty"),
        ("{census-once: [a, 1]}", "has a part that is no text, or empty"),
        ("{census-once: ' a'}", "has a part that is no text, or empty"),
        ("{census-once: []}", "is no key of an asset"),
        ("{census-once: {a: b}}", "is no key of an asset"),
        ("{census-once: null}", "is no key of an asset"),
    ],
)
def test_what_is_wrong_is_told_in_words_and_stops_releases(site: Site, said: str, words: str) -> None:
    """`status` tells it, and the UI goes on without it. A release does not: it might have to wait for an asset."""
    (site.home / "site.yaml").write_text(f"upstream: {said}\n")
    with pytest.raises(ReleasePipelineError):
        site.upstream_of("census-once")
    [fault] = site.upstream_faults
    assert re.search(rf"(?s)site\.yaml.*{words}", fault)
    assert site.officer is None
    source = build_defs(site.home).resolve_asset_graph().get(dg.AssetKey(["census_once", "source"]))
    assert source.parent_keys == set()
