"""Who works at the desk, by the list of trusted keys and site.yaml, and what is wrong in the latter."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.apps.desk.backend.people import DeskSettings, Person, Role, read_desk, read_people
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import make_key, read_key
from release_pipeline.trust.members import trust_key


def site_of(folder: Path, text: str) -> Site:
    """A site whose site.yaml is this."""
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "site.yaml").write_text(text)
    return Site(folder, {})


def test_what_site_yaml_says(tmp_path: Path) -> None:
    """People with their roles, and the rest; without a section nobody."""
    text = "desk: {people: {vic: [auditor], ana: [steward, operator]}}"
    people = {"vic": frozenset({Role.AUDITOR}), "ana": frozenset({Role.STEWARD, Role.OPERATOR})}
    assert read_desk(site_of(tmp_path, text)).people == people
    for nothing in ("", "desk:", "desk: {}"):
        assert read_desk(site_of(tmp_path, nothing)) == DeskSettings()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("[vic]", "desk"),
        ("{peple: {}}", "'peple' is not known here"),
        ("{people: [vic]}", "people are names with lists of roles"),
        ("{people: {vic: [king]}}", "roles are a list"),
        ("{people: {'../x': [auditor]}}", "no name of a person"),
        ("{address: 'http://desk.example.org'}", "no address of the desk"),
        ("{address: 'https://desk.example.org\\nhttps://x'}", "no address of the desk"),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, said: str, words: str) -> None:
    """Nobody comes in by half of what stands there."""
    with pytest.raises(ReleasePipelineError) as refused:
        read_people(site_of(tmp_path, f"desk: {said}"))
    told = f"{refused.value.in_full} {' '.join(refused.value.details)}"
    assert words in told
    assert "site.yaml" in told


def test_roles_of_keys_and_of_site_yaml_add_up(tmp_path: Path) -> None:
    """A service's key is nobody's, and nobody loses a role by being named."""
    keys = {}
    for name in ("olga", "ana", "robot"):
        make_key(tmp_path / name)
        keys[name] = read_key(tmp_path / name)
    site = site_of(tmp_path, "desk: {people: {ana: [operator], vic: [auditor]}}\n")
    for name, role in (("olga", "officer"), ("ana", "steward"), ("robot", "service")):
        trust_key(site, name, role, keys[name].public, key=keys["olga"])
    assert read_people(site) == {
        "ana": Person("ana", frozenset({Role.STEWARD, Role.OPERATOR})),
        "olga": Person("olga", frozenset({Role.OFFICER})),
        "vic": Person("vic", frozenset({Role.AUDITOR})),
    }
