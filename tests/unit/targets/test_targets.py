"""What site.yaml says of targets: read as it is meant, refused in words with the key, and never with a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.store.site import Site
from release_pipeline.targets.settings import find_target_faults, open_target, read_targets
from release_pipeline.targets.target import Parcel

SECRET = "zyx-s3cretword"  # noqa: S105
KNOWN = "metadata: {authors: [Office], contact: data@example.org}"
CREATORS = "metadata: {creators: [{name: Office}], license: cc-by-4.0}"
TOKEN = "token: '${TOKEN}'"  # noqa: S105


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A folder with a policy's name in it."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "people.yaml").write_text("")
    return Site(tmp_path, {})


def say(site: Site, text: str) -> None:
    """Write site.yaml."""
    (site.home / "site.yaml").write_text(f"targets: {text}\n")


def test_each_kind_is_read_as_it_is_meant(site: Site) -> None:
    """With its address, its place, the name of its token, and whose packages it wants."""
    say(
        site,
        f"""
  bucket:    {{to: "s3://open-data/health", policies: [people]}}
  folder:    {{to: ../public}}
  share:     {{to: "file:///srv/public"}}
  archive:   {{dataverse: "https://data.example.org", collection: health, {TOKEN}, {KNOWN}}}
  zenodo:    {{zenodo: "https://zenodo.org", {TOKEN}, {CREATORS}}}
  catalogue: {{ckan: "http://localhost:5000/", organisation: health, {TOKEN}, metadata: {{license_id: cc-by}}}}
""",
    )
    found = {target.name: target for target in read_targets(site)}
    assert [target.kind for target in found.values()] == ["to", "to", "to", "dataverse", "zenodo", "ckan"]
    assert (found["archive"].place, found["catalogue"].place) == ("health", "health")
    assert (found["zenodo"].token, found["bucket"].token) == ("TOKEN", "")
    assert found["zenodo"].metadata == {"creators": [{"name": "Office"}], "license": "cc-by-4.0"}
    assert [found["bucket"].wants(policy) for policy in ("people", "others")] == [True, False]
    assert found["folder"].wants("others")
    assert find_target_faults(site) == []


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("{}", "targets: this is no mapping", "bucket"),
        ("{a: x}", "targets.a: what kind of target it is says one of to, dataverse, zenodo, ckan", "folder"),
        ("{a: {to: x, ckan: y}}", "targets.a: what kind of target", "says one of"),
        ("{a: {to: x, polices: [people]}}", "targets.a.polices: 'polices' is not known here", "policies"),
        ("{a: {to: x, policies: [other]}}", "targets.a.policies: policies is a list of policies of this site", "people"),
        ("{a: {to: releases/x}}", "targets.a.to: this folder is the site's own", "another"),
        ("{a: {to: vault}}", "targets.a.to: this folder is the site's own", "another"),
        ("{a: {to: 'file://other.example.org/x'}}", "targets.a.to: this folder is on another machine", "three slashes"),
        ("{a: {to: 'ftp://x.example/y'}}", "targets.a.to: such an address is not known", "s3://"),
        (f"{{a: {{to: 's3://ana:{SECRET}@b/c'}}}}", "targets.a.to: an address of an object store has no user", "environment"),
        (f"{{a: {{zenodo: 'https://a:{SECRET}@b', {TOKEN}, {CREATORS}}}}}", "targets.a.zenodo", "no user, password"),
        (f"{{a: {{zenodo: 'http://zenodo.org', {TOKEN}, {CREATORS}}}}}", "targets.a.zenodo: by http://", "on its way"),
        (f"{{a: {{zenodo: 'https://b', token: {SECRET}, {CREATORS}}}}}", "targets.a.token: a token is named", "${NAME}"),
        (f"{{a: {{zenodo: 'https://b', {TOKEN}}}}}", "targets.a: 'metadata' is missing", ""),
        (
            f"{{a: {{zenodo: 'https://b', {TOKEN}, metadata: {{license: x, creators: [Office]}}}}}}",
            "targets.a.metadata.creators: creators is not as it should be",
            "name: Office",
        ),
        (
            f"{{a: {{zenodo: 'https://b', {TOKEN}, metadata: {{license: x, creators: [{{name: a}}], title: mine}}}}}}",
            "targets.a.metadata.title: 'title' is not known here",
            "",
        ),
        (
            f"{{a: {{dataverse: 'https://b', collection: c, {TOKEN}, metadata: {{authors: [a], contact: nobody}}}}}}",
            "targets.a.metadata.contact: contact is not as it should be",
            "data@example.org",
        ),
        (f"{{a: {{ckan: 'https://b', organisation: [c], {TOKEN}}}}}", "targets.a.organisation: organisation is a text", ""),
    ],
)
def test_a_bad_section_is_refused_with_the_key(site: Site, text: str, key: str, words: str) -> None:
    """The line, what is wrong and what to write; what may be a secret is not repeated."""
    say(site, text)
    if text == "[]":
        with pytest.raises(ReleasePipelineError) as wrong:
            _ = site.officer
        assert words in wrong.value.in_full
        return
    with pytest.raises(PolicyInvalid) as refused:
        read_targets(site)
    told = " ".join(refused.value.problems)
    assert f"{key}" in told.replace(" (line", "")
    assert words in told
    assert SECRET not in f"{refused.value} {told}"
    assert find_target_faults(site) == [refused.value.in_full]


@pytest.mark.parametrize("token", [None, "", "two\nlines", " "])
def test_a_token_that_is_none_is_said_before_anything_is_sent(site: Site, token: str | None) -> None:
    """Its name, and not what it is."""
    say(site, f"{{a: {{ckan: 'https://catalogue.example.org', organisation: health, {TOKEN}}}}}")
    [settings] = read_targets(site)
    environment = {} if token is None else {"TOKEN": token}
    with pytest.raises(ReleasePipelineError, match=r"TOKEN, is not in the environment|token is empty"):
        open_target(Site(site.home, environment), settings, parcel())


def parcel() -> Parcel:
    """A package."""
    return Parcel("people/1/r1", "0" * 64, "title", "description", datetime.now(UTC))
