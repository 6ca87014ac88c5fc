"""What an officer demands to read before they approve: what the data are, and what each released column has. And what earlier
versions approved without it, which goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import Blocked
from release_pipeline.pipeline.release import run_release
from release_pipeline.review.bundle import write_bundle
from release_pipeline.trust.approvals import approve_policy, approve_populations, import_statement
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.trust.members import need_trust
from tests.integration.people import trust_people
from tests.integration.sites import TinySite, make_site

Keys = Mapping[str, PrivateKey]


def silence(tiny: TinySite, *, about: bool = True, labels: bool = True) -> None:
    """The policy without what it says of the whole, or of two of its columns."""
    file = tiny.home / "policies" / "people.yaml"
    text = file.read_text(encoding="utf-8")
    if about:
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("about:", "audience:")))
    if labels:
        text = text.replace("label: income, ", "").replace("label: town, ", "")
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def tiny(tmp_path: Path, keys: Keys) -> TinySite:
    """A site whose officer trusts everybody, and has approved nothing but the caps."""
    site = make_site(tmp_path / "site")
    trust_people(site, keys)
    approve_populations(site.site, key=keys["olga"])
    return site


@pytest.mark.parametrize(
    ("about", "labels", "words"),
    [
        (True, True, ("about is missing", "2 released columns without a label (town, income)")),
        (True, False, ("about is missing",)),
        (False, True, ("2 released columns without a label (town, income)",)),
    ],
)
def test_it_is_refused_before_anything_is_noted(
    tiny: TinySite, keys: Keys, about: bool, labels: bool, words: tuple[str, ...]
) -> None:
    """All that lacks at once, with what prints it; and nothing of such a policy is charged."""
    silence(tiny, about=about, labels=labels)
    before = tiny.events()
    with pytest.raises(Blocked) as refused:
        approve_policy(tiny.site, "people", key=keys["olga"])
    told = str(refused.value) + str(refused.value.remedy)
    assert [
        part for part in (*words, "policies/people.yaml", "ana", "check policies/people.yaml --skeleton") if part not in told
    ] == []
    assert ("about is missing" in told, "without a label" in told) == (about, labels)
    assert tiny.events() == before
    with pytest.raises(Blocked, match=r"is not approved by the privacy officer|does not say who may read"):
        run_release(tiny.flow())
    assert tiny.charges() == []


def test_neither_a_bundle_nor_a_statement_from_elsewhere_goes_around_it(tiny: TinySite, keys: Keys, tmp_path: Path) -> None:
    """It is not exported to be signed, and what was signed all the same is not noted."""
    silence(tiny)
    with pytest.raises(Blocked, match="does not say what readers must be told"):
        write_bundle(tiny.site, "policies/people.yaml", tmp_path / "bundle.zip")
    assert not (tmp_path / "bundle.zip").exists()
    with tiny.site.open_registry(read_only=True) as registry:
        trust = need_trust(tiny.site, registry)
    signed = trust.sign(keys["olga"], kind="policy", subject="people", digest=tiny.site.policy("people").canonical_hash())
    before = tiny.events()
    with pytest.raises(Blocked, match="does not say what readers must be told"):
        import_statement(tiny.site, signed)
    assert tiny.events() == before


def test_the_command_says_it(tiny: TinySite, key_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, with an exit code, and what is printed then is what lacks."""
    silence(tiny)
    sign = ["--key", str(key_folder / "olga"), "--home", str(tiny.home)]
    assert main(["approve", "policies/people.yaml", *sign]) == Blocked.exit_code
    assert "it does not say what readers must be told. audience is missing" in capsys.readouterr().err
    assert main(["check", str(tiny.home / "policies" / "people.yaml"), "--skeleton"]) == 0
    assert "#   income: {..., label: }" in capsys.readouterr().out
