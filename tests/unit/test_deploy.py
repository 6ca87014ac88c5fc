"""What is in deploy/: the same facts in the image, in compose, in the units of systemd and in docs/operating.md."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from release_pipeline.apps.door import MOST_CONNECTIONS
from release_pipeline.store.site import HOME
from tests.unit.scripts import DEPLOY, ROOT, load

UNITS = DEPLOY / "systemd"
FOLDER, UID, STEWARDS = "/srv/release-pipeline", "10001", "10002"
UI_SOCKET, DESK_SOCKET = f"{FOLDER}/run/ui.sock", "/run/release-pipeline-web/desk.sock"
VARIABLE = "RELEASE_PIPELINE_DAGSTER_PASSWORD"


@pytest.fixture(scope="module")
def locked() -> ModuleType:
    """deploy/locked.py."""
    return load("deploy/locked.py")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Those of compose.yaml."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def read_unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit, of all sections, each with its values in order."""
    found: dict[str, list[str]] = {}
    for line in (UNITS / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def read_table(name: str) -> list[list[str]]:
    """The lines of a file of sysusers.d or tmpfiles.d, word by word."""
    return [shlex.split(line) for line in (UNITS / name).read_text().splitlines() if line and not line.startswith("#")]


# -- compose


def test_compose_takes_it(tmp_path: Path) -> None:
    """`docker compose config`, where a client is here: it needs no engine."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no `docker compose` here")
    files = [part for name in ("compose.yaml", "compose.proxy.yaml") for part in ("--file", str(DEPLOY / name))]
    command = [docker, "compose", *files, "config", "--quiet"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), VARIABLE: "x"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


# -- systemd


def test_folders_have_the_modes_that_the_operators_page_says() -> None:
    """policies/ is written by the group of stewards, keys and backups are read by nobody else; what the program makes itself is
    left to it."""
    made = {path: (mode, user, group) for _, path, mode, user, group, *_ in read_table("release-pipeline.tmpfiles.conf")}
    assert "`policies/` belongs to a group of stewards (3775, files 664)" in (ROOT / "docs" / "operating.md").read_text()
    assert made[f"{FOLDER}/site/policies"] == ("3775", "release-pipeline", "release-stewards")
    for name in ("keys", "backups"):
        assert made[f"{FOLDER}/{name}"] == ("0700", "release-pipeline", "release-pipeline")
    assert f"{FOLDER}/site/vault" not in made
    assert f"{FOLDER}/site/dagster" not in made


WEB = "release-pipeline-desk-web.service"  # the one that has no site
SERVICES = sorted(file.name for file in UNITS.glob("*.service") if file.name != WEB)


@pytest.mark.parametrize("name", SERVICES)
def test_units_are_hardened(name: str) -> None:
    """Nothing but the site can be written, nothing gained; each runs a command that there is."""
    unit = read_unit(name)
    assert unit["User"] == ["release-pipeline"]
    for key in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces", "RestrictSUIDSGID"):
        assert unit[key] == ["yes"], key
    assert unit["ProtectSystem"] == ["strict"]
    assert unit["ReadWritePaths"] == [FOLDER]
    assert unit["ReadOnlyPaths"] == [f"{FOLDER}/data"]
    assert unit["CapabilityBoundingSet"] == [""]
    assert f"{HOME}={FOLDER}/site" in unit["Environment"][0].split()
    command = re.search(r"/opt/release-pipeline/bin/release-pipeline (\w+)", unit["ExecStart"][0])
    assert command is not None
    assert command[1] in {"ui", "backup", "status", "desk"}


def test_no_other_account_can_be_there_first() -> None:
    """UI and desk have sockets in folders of their accounts, which only a group can enter, and enough files."""
    made = {path: (mode, user, group) for _, path, mode, user, group, *_ in read_table("release-pipeline.tmpfiles.conf")}
    users = read_table("release-pipeline.sysusers.conf")
    for unit, path, user in (
        ("release-pipeline-ui.service", UI_SOCKET, "release-pipeline"),
        (WEB, DESK_SOCKET, "release-pipeline-desk"),
    ):
        said = read_unit(unit)
        assert said["ExecStart"][0].endswith(f"--uds {path}")
        assert int(said["LimitNOFILE"][0]) > 2 * MOST_CONNECTIONS
        assert made[str(Path(path).parent)] == ("2750", user, "release-pipeline-proxy")
    assert [line[0] for line in users if "release-pipeline-proxy" in line[1:3]] == ["g"], "nobody is in the group unasked"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """`systemd-analyze verify`, with a program where they look for one: it knows every setting, and no value is wrong."""
    for file in UNITS.glob("release-pipeline-*"):
        text = file.read_text().replace("/opt/release-pipeline/bin/release-pipeline", sys.executable)
        (tmp_path / file.name).write_text(text)
    units = sorted(str(file) for file in tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "release-pipeline" in line] == []
