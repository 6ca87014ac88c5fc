"""What is in deploy/: the same facts in the image, in compose, in the units of systemd and in docs/operating.md."""

from __future__ import annotations

import fnmatch
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

from release_pipeline.door.serving import MOST_CONNECTIONS
from release_pipeline.flow.site import HOME
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


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each on a line."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(name, " ".join(words.split())) for name, words in found]


def find(steps: list[tuple[str, str]], name: str) -> list[str]:
    """What stands after an instruction of this name."""
    return [words for step, words in steps if step == name]


# -- the image


def test_the_image_is_built_of_what_is_named(steps: list[tuple[str, str]], locked: ModuleType) -> None:
    """A base with a tag that is no moving one, hashes for all that others wrote, an account by number, no secret and no port."""
    [base] = [words.partition("=")[2] for words in find(steps, "ARG") if words.startswith("BASE=")]
    assert re.fullmatch(r"python:\d\.\d+-slim-[a-z]+", base)
    assert find(steps, "FROM") == ["${BASE} AS build", "${BASE}"]
    installs = [words for words in find(steps, "RUN") if "pip install" in words]
    assert all("--require-hashes" in words or "--no-index" in words for words in installs)
    assert len(installs) == 3
    assert find(steps, "USER") == [f"{UID}:{UID}"]
    assert find(steps, "EXPOSE") == []
    assert not re.search("PASSWORD|SECRET|TOKEN", " ".join(words for _, words in steps))
    assert find(steps, "ENTRYPOINT") == ['["release-pipeline"]']
    assert '["release-pipeline", "status", "--health"]' in find(steps, "HEALTHCHECK")[0]
    assert all(f"`{extra}`" in (ROOT / "docs" / "deploying.md").read_text() for extra in locked.IMAGE_EXTRAS)


def test_what_the_image_is_built_of_gets_to_its_builder(steps: list[tuple[str, str]]) -> None:
    """Everything is left out but what is named: all that the distributions are made of is, and no site."""
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [word for words in find(steps, "COPY") if "--from" not in words for word in words.split()[:-1]]
    copied += [word.removeprefix("/source/") for words in find(steps, "COPY") for word in words.split() if "/source/" in word]
    wanted = {*copied} - {"."} | {"release_pipeline", "sql", "policies", "packages", "dagster.yaml", "deploy/make_dist.py"}
    wanted |= {"requirements.lock", "workspace.yaml", "CHANGELOG.md", "README.md", "pyproject.toml", "deploy/locked.py"}
    assert [place for place in sorted(wanted) if not any(fnmatch.fnmatch(place, pattern) for pattern in kept)] == []
    for private in ("vault", "registry.duckdb", "demo", "keys", ".env", "deploy/.env", ".git", "tests"):
        assert not any(fnmatch.fnmatch(private, pattern) for pattern in kept), private


# -- compose


def test_the_ui_has_its_account_and_nothing_to_write_on_but_the_site(services: dict[str, Any]) -> None:
    """Read-only root, no capability, no port; sources cannot be written, and folders are not made as somebody else's."""
    ui = services["ui"]
    assert ui["user"] == f"{UID}:{UID}"
    assert (ui["read_only"], ui["cap_drop"], ui["network_mode"]) == (True, ["ALL"], "host")
    assert "no-new-privileges:true" in ui["security_opt"]
    assert not {"ports", "privileged", "cap_add", "devices"} & set(ui)
    mounts = {mount["target"]: mount for mount in ui["volumes"]}
    assert set(mounts) == {FOLDER, f"{FOLDER}/data", "/var/cache/release-pipeline", "/run/postgresql"}
    assert mounts[f"{FOLDER}/data"]["read_only"]
    assert all(mount["bind"] == {"create_host_path": False} for mount in mounts.values() if mount["type"] == "bind")
    assert ui["environment"][HOME] == f"{FOLDER}/site"
    assert ui["command"] == ["ui"]


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


def test_the_desks_pages_have_an_account_that_owns_nothing() -> None:
    """Not the site, not its keys, no network; the backend hears that account, at the socket that they ask at."""
    web, backend = read_unit(WEB), read_unit("release-pipeline-desk-backend.service")
    users = {line[1]: line[2:] for line in read_table("release-pipeline.sysusers.conf")}
    [account] = web["User"]
    assert account != "release-pipeline"
    assert users[account][2] == "-", "it has a home"
    assert {FOLDER, "-/run/release-pipeline"} <= set(web["InaccessiblePaths"])
    assert web["ReadWritePaths"] == [str(Path(DESK_SOCKET).parent)]
    assert (web["IPAddressDeny"], web["PrivateNetwork"], web["RestrictAddressFamilies"]) == (["any"], ["yes"], ["AF_UNIX"])
    assert "IPAddressAllow" not in web
    for key in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces", "MemoryDenyWriteExecute"):
        assert web[key] == ["yes"], key
    assert f"--for-account {account}" in backend["ExecStart"][0]
    assert backend["RuntimeDirectory"] == ["release-pipeline-desk"]
    socket = "--socket /run/release-pipeline-desk/backend.sock"
    assert socket in backend["ExecStart"][0]
    assert socket in web["ExecStart"][0]


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
