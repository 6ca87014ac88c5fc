"""What people, operators and auditors see of deliveries: commands, `status`, Dagster, `verify`; and a real process that dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from release_pipeline.cli import main
from release_pipeline.dagster_app.definitions import build_defs
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.store.targets import http
from release_pipeline.verify import verify_path
from tests.guards import HANGING
from tests.integration.people import RELEASE, copy_site, review
from tests.integration.processes import run_program, start_program
from tests.integration.sites import GX_WARNINGS, QUIET, TinySite, failures
from tests.integration.targets import TOKEN, Bucket, Ckan, serving
from tests.integration.test_delivery import KEY_ID, PASSWORD, SIGNATURE, look, make_bucket_case, make_ckan_case, name_target

Keys = dict[str, PrivateKey]
NAME = str(RELEASE)


def find_files_with(folder: Path, secret: str) -> list[Path]:
    """The files that have a secret, as it is: registry, vault, Dagster's records and logs."""
    return [file for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


@pytest.fixture
def approved(candidate: Path, keys: Keys, tmp_path: Path) -> TinySite:
    """A site whose release may be published."""
    tiny = copy_site(candidate, tmp_path / "site")
    review(tiny, keys, "ben", "cleo")
    return tiny


@pytest.fixture
def ckan(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ckan]:
    """A catalogue, and its token in the environment."""
    monkeypatch.setenv("TOKEN", TOKEN)
    monkeypatch.setattr(http, "PAUSES", ())
    archive = Ckan()
    with serving(archive):
        yield archive


@pytest.mark.slow
def test_a_publisher_that_is_killed_while_it_sends_is_finished_once_by_the_same_command(
    approved: TinySite, key_folder: Path
) -> None:
    """By the system, in the middle of the third file, with an object store that got two: a process of its own, for it dies. The
    bucket has what verifies, once, and nobody could take for whole what lay there meanwhile."""
    pytest.importorskip("s3fs")
    bucket = Bucket(hold=r"PUT /open-data/.*/data\.csv")
    command = ["publish", NAME, "--key", key_folder / "robot", "--home", approved.home]
    with serving(bucket):
        case = make_bucket_case(bucket)
        name_target(approved, case.text)
        secrets = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": PASSWORD, "AWS_DEFAULT_REGION": "nowhere-1"}
        more = {"AWS_ENDPOINT_URL": bucket.base, "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
        environment = {**os.environ, **secrets, **more}
        running = start_program(command, environment=environment)
        assert bucket.held.wait(HANGING)
        os.kill(running.process.pid or 0, signal.SIGKILL)
        assert running.end().returncode == -signal.SIGKILL
        bucket.go.set()
        assert approved.status().state == "published"
        package = approved.site.package(NAME)
        there = case.contents()
        assert 0 < len(there) < len(look(package))
        assert SIGNATURE not in there
        done = run_program(command, environment=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"{NAME}: delivered to open: s3://open-data/health/{NAME}" in done.stdout
        assert case.contents() == look(package)
        assert bucket.count(r"PUT .*/RELEASE_NOTE\.md") == 1, "what was there was not sent again"
    kinds = [event.kind for event in approved.events()]
    assert [kinds.count(kind) for kind in ("published", "delivering", "delivered")] == [1, 1, 1]
    assert find_files_with(approved.home, PASSWORD) == []
    assert PASSWORD not in done.stdout
    fetched = approved.home.parent / "fetched"
    fetched.mkdir()
    for name, content in case.contents().items():
        (fetched / name).write_bytes(content)
    assert [finding.words for finding in verify_path(fetched) if finding.level == "FAIL"] == []


def test_commands_tell_what_was_done_and_what_was_not(
    approved: TinySite, key_folder: Path, ckan: Ckan, capsys: pytest.CaptureFixture[str]
) -> None:
    """`publish` publishes, whatever a target says; `status` has what is outstanding, `deliver` does it, `retract` tells it."""
    name_target(approved, make_ckan_case(ckan).text + "  copy: {to: ../copy, policies: [people]}\n")
    ckan.refuse = {"POST .*package_create": [403]}
    home, signed = ["--home", str(approved.home)], ["--key"]
    assert main(["publish", NAME, *signed, str(key_folder / "robot"), *home]) == 1
    printed = capsys.readouterr()
    assert f"package {approved.status().package_hash}" in printed.out
    assert f"{NAME}: delivered to copy: ../copy/{NAME}" in printed.out
    assert "1 of 2 things to be done at targets could not be." in printed.err
    assert "open: the account of the token may not do that (403, make the dataset). Give it the right" in printed.err
    assert main(["status", "--json", *home]) == 0
    [outstanding] = json.loads(capsys.readouterr().out)["outstanding"]
    assert (outstanding["release"], outstanding["target"], outstanding["what"]) == (NAME, "open", "delivery")
    assert outstanding["begun"]
    assert main(["deliver", "--target", "copy", *home]) == 0
    assert capsys.readouterr().out == "nothing is outstanding\n"
    assert main(["deliver", *home]) == 0
    assert capsys.readouterr().out == f"{NAME}: delivered to open: {ckan.base}/dataset/people-1-r1\n"
    assert main(["retract", NAME, "--why", "wrong", *signed, str(key_folder / "olga"), *home]) == 0
    assert f"{NAME}: retracted at open: put there: RETRACTED.json, RETRACTED.md; removed: data." in capsys.readouterr().out
    assert main(["deliver", NAME, "--target", "none", *home]) == 2
    assert "site.yaml has no target 'none'. There are: open, copy." in capsys.readouterr().err
    assert find_files_with(approved.home, TOKEN) == []


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


@pytest.mark.slow
@GX_WARNINGS
def test_dagster_delivers_what_it_publishes(approved: TinySite, key_folder: Path, ckan: Ckan, tmp_path: Path) -> None:
    """A target that refuses fails the run, in words; the package is public and its materialization told. The next run does it."""
    shutil.copytree(key_folder, approved.home / "keys")
    with (approved.home / "site.yaml").open("a") as settings:
        settings.write("service_key: keys/robot\n")
    name_target(approved, make_ckan_case(ckan).text)
    ckan.refuse = {"POST .*": [403]}
    job = build_defs(approved.home).resolve_job_def("publish_people")
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        how = {"partition_key": "1", "instance": instance, "raise_on_error": False, "run_config": QUIET}
        result = job.execute_in_process(**how)
        assert not result.success
        assert "the account of the token may not do that (403" in failures(result)[0]
        assert instance.get_latest_materialization_event(dg.AssetKey(["people", "published"])) is not None
        assert approved.status().state == "published"
        assert job.execute_in_process(**how).success
    assert [event.kind for event in approved.events()][-2:] == ["delivering", "delivered"]
    assert find_files_with(tmp_path, TOKEN) == []
