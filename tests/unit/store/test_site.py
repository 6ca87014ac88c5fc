"""A site: where it is found, what it says of itself, and the key of its vault."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Thread

import pytest

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.store.registry import RegistryChanged
from release_pipeline.store.site import HOME, Site, find_site

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with the demo's policy and populations."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "rand-hie.yaml").write_bytes((ROOT / "policies" / "rand-hie.yaml").read_bytes())
    (tmp_path / "populations.yaml").write_bytes((ROOT / "populations.yaml").read_bytes())
    return Site(tmp_path, {})


@pytest.mark.parametrize("named", [None, "nowhere", "policies"])
def test_what_is_no_site_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    """The folder and how to name one."""
    monkeypatch.delenv(HOME, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongUsage, match=rf"{tmp_path}.*not a site.*--home or {HOME}"):
        find_site(None if named is None else Path(named))


@pytest.mark.parametrize("name", ["../outside", "../policies/rand-hie", "/etc/passwd", "", "a/b"])
def test_names_of_policies_are_no_paths(site: Site, name: str) -> None:
    """Only what is in `policies/` is a policy of the site."""
    text = (ROOT / "policies" / "rand-hie.yaml").read_text()
    (site.home / "outside.yaml").write_text(text.replace("policy: rand-hie", "policy: outside"))
    with pytest.raises(ReleasePipelineError):
        site.policy(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, False),
        ("", False),
        ("# nothing\n", False),
        ("internal_metrics_in_ui: false", False),
        ("internal_metrics_in_ui: true", True),
    ],
)
def test_internal_metrics_are_hidden_unless_the_site_says_so(site: Site, text: str | None, shown: bool) -> None:
    """No file, an empty one, false: hidden."""
    if text is not None:
        (site.home / "site.yaml").write_text(text)
    assert site.shows_internal_metrics() is shown


@pytest.mark.parametrize(
    "content",
    [
        b"internal_metrics_in_ui: 1",
        b"internal_metrics_in_ui: 'true'",
        b"internal_metrics_in_ui:",
        b"internal_metrics: true",
        b"internal_metrics_in_ui: true\nmore: 1",
        b"- internal_metrics_in_ui",
        b"internal_metrics_in_ui",
        b"true",
        b"{",
        b"\xff\xfe",
        b"internal_metrics_in_ui: false\ninternal_metrics_in_ui: true",
    ],
)
def test_odd_site_files_are_refused(site: Site, content: bytes) -> None:
    """Neither shown nor hidden by guess: one error with the file."""
    (site.home / "site.yaml").write_bytes(content)
    with pytest.raises(ReleasePipelineError, match=r"site\.yaml"):
        site.shows_internal_metrics()


def test_keyed_hash_is_of_the_content_and_of_this_vault(site: Site, tmp_path: Path) -> None:
    """The same content, the same hash, also for another process; another vault, another hash; the key is private."""
    once = site.keyed_hash(b"content")
    assert Site(site.home, {}).keyed_hash(b"content") == once
    assert site.keyed_hash(b"other") != once
    assert Site(tmp_path / "other", {}).keyed_hash(b"content") != once
    assert stat.S_IMODE((site.vault / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(site.vault.stat().st_mode) == 0o700
    assert len((site.vault / "key").read_bytes()) == 32
    assert {file.name for file in site.vault.iterdir()} <= {"key", ".gitignore"}


def test_many_at_once_agree_on_one_key(site: Site) -> None:
    """Whoever comes first sets the key; everybody hashes with it."""
    found: list[str] = []
    threads = [Thread(target=lambda: found.append(site.keyed_hash(b"content"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1


def test_what_the_vault_knows_of_the_registry_is_sealed(site: Site, tmp_path: Path) -> None:
    """Nobody without this vault's key can say which event was the last: what was changed or put there is refused, both ways."""
    (tmp_path / "other").mkdir()
    for one in (site, Site(tmp_path / "other", {})):
        with one.open_registry() as registry:
            registry.add("policy", policy="people", hash="0", population="folk")
    head, other = site.vault / "registry.head", tmp_path / "other" / "vault" / "registry.head"
    assert stat.S_IMODE(head.stat().st_mode) == 0o600
    known = head.read_text()
    number, digest, seal = known.split()
    forged = ["", "what is this", f"{number} {digest}", f"0 {digest} {seal}", f"{number} {'0' * 64} {seal}", f"0  {seal}"]
    for text in (*forged, other.read_text()):
        head.write_text(text)
        for read_only in (True, False):
            with pytest.raises(RegistryChanged, match="what the vault knows of the registry was changed"):  # noqa: SIM117
                with site.open_registry(read_only=read_only):
                    pass
    head.write_text(known)
    with site.open_registry(read_only=True) as registry:
        assert [event.kind for event in registry.events] == ["format", "policy"]
        assert registry.events[-1].hash == digest


def test_cut_key_is_refused(site: Site) -> None:
    """A key that lost its bytes would let anybody test guesses against the hashes."""
    site.keyed_hash(b"content")
    (site.vault / "key").write_bytes(b"")
    with pytest.raises(ReleasePipelineError):
        site.keyed_hash(b"content")
