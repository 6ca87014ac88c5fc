"""What site.yaml says of targets: read as it is meant, refused in words with the key, and never with a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.store.site import Site
from release_pipeline.targets.settings import find_target_faults, read_targets

SECRET = "zyx-s3cretword"  # noqa: S105


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
    """With its address, and whose packages it wants."""
    say(
        site,
        """
  bucket:    {to: "s3://open-data/health", policies: [people]}
  folder:    {to: ../public}
  share:     {to: "file:///srv/public"}
""",
    )
    found = {target.name: target for target in read_targets(site)}
    assert [target.address for target in found.values()] == ["s3://open-data/health", "../public", "file:///srv/public"]
    assert [found["bucket"].wants(policy) for policy in ("people", "others")] == [True, False]
    assert found["folder"].wants("others")
    assert find_target_faults(site) == []


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("{}", "targets: this is no mapping", "bucket"),
        ("{a: x}", "targets.a: this is no mapping", "folder"),
        ("{a: {policies: [people]}}", "targets.a: 'to' is missing", ""),
        ("{a: {to: x, polices: [people]}}", "targets.a.polices: 'polices' is not known here", "policies"),
        ("{a: {to: x, policies: [other]}}", "targets.a.policies: policies is a list of policies of this site", "people"),
        ("{a: {to: releases/x}}", "targets.a.to: this folder is the site's own", "another"),
        ("{a: {to: vault}}", "targets.a.to: this folder is the site's own", "another"),
        ("{a: {to: 'file://other.example.org/x'}}", "targets.a.to: this folder is on another machine", "three slashes"),
        ("{a: {to: 'ftp://x.example/y'}}", "targets.a.to: such an address is not known", "s3://"),
        (f"{{a: {{to: 's3://ana:{SECRET}@b/c'}}}}", "targets.a.to: an address of an object store has no user", "environment"),
    ],
)
def test_a_bad_section_is_refused_with_the_key(site: Site, text: str, key: str, words: str) -> None:
    """The line, what is wrong and what to write; what may be a secret is not repeated."""
    say(site, text)
    with pytest.raises(PolicyInvalid) as refused:
        read_targets(site)
    told = " ".join(refused.value.problems)
    assert f"{key}" in told.replace(" (line", "")
    assert words in told
    assert SECRET not in f"{refused.value} {told}"
    assert find_target_faults(site) == [refused.value.in_full]
