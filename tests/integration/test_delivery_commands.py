"""What people, operators and auditors see of deliveries: commands, `status`, Dagster, `verify`; and a real process that dies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, copy_site, review
from tests.integration.sites import TinySite
from tests.integration.test_delivery import name_target

Keys = dict[str, PrivateKey]
NAME = str(RELEASE)


@pytest.fixture
def approved(candidate: Path, keys: Keys, tmp_path: Path) -> TinySite:
    """A site whose release may be published."""
    tiny = copy_site(candidate, tmp_path / "site")
    review(tiny, keys, "ben", "cleo")
    return tiny


def test_commands_tell_what_was_done_and_what_was_not(
    approved: TinySite, key_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`publish` publishes, whatever a target says; `status` has what is outstanding, `deliver` does it, `retract` tells it."""
    name_target(approved, "  open: {to: ../public}\n  copy: {to: ../copy, policies: [people]}\n")
    (tmp_path / "public").write_text("no folder")
    home, signed = ["--home", str(approved.home)], ["--key"]
    assert main(["publish", NAME, *signed, str(key_folder / "robot"), *home]) == 1
    printed = capsys.readouterr()
    assert f"package {approved.status().package_hash}" in printed.out
    assert f"{NAME}: delivered to copy: ../copy/{NAME}" in printed.out
    assert "1 of 2 things to be done at targets could not be." in printed.err
    assert "the folder cannot be read or written" in printed.err
    assert main(["status", "--json", *home]) == 0
    [outstanding] = json.loads(capsys.readouterr().out)["outstanding"]
    assert (outstanding["release"], outstanding["target"], outstanding["what"]) == (NAME, "open", "delivery")
    assert outstanding["begun"]
    assert main(["deliver", "--target", "copy", *home]) == 0
    assert capsys.readouterr().out == "nothing is outstanding\n"
    (tmp_path / "public").unlink()
    assert main(["deliver", *home]) == 0
    assert capsys.readouterr().out == f"{NAME}: delivered to open: ../public/{NAME}\n"
    assert main(["retract", NAME, "--why", "wrong", *signed, str(key_folder / "olga"), *home]) == 0
    assert f"{NAME}: retracted at open: put there: RETRACTED.json, RETRACTED.md; removed: data." in capsys.readouterr().out
    assert main(["deliver", NAME, "--target", "none", *home]) == 2
    assert "site.yaml has no target 'none'. There are: open, copy." in capsys.readouterr().err


def test_a_package_that_was_changed_goes_nowhere(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is sent, and nothing noted."""
    tiny = copy_site(published, tmp_path / "site")
    name_target(tiny, "  copy: {to: ../copy}\n")
    with (tiny.site.package(NAME) / "RELEASE_NOTE.md").open("a") as note:
        note.write("more\n")
    assert main(["deliver", "--home", str(tiny.home)]) == 1
    assert "its package is not what was published. Look at" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
    assert tiny.events()[-1].kind == "published"
