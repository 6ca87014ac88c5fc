"""The process of `release-pipeline ui`: Dagster's application behind the door, its daemon and its code server.

Dagster's application is called, not connected to: it has no port and no socket that another account of the machine could reach,
and reads what the door has read. The daemon is a child with its own pipe for the end, as under `dagster dev`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import dagster as dg
from dagster import __version__ as dagster_version
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._serdes import serialize_value
from dagster._utils.log import configure_loggers
from dagster_shared.ipc import get_ipc_shutdown_pipe, open_ipc_subprocess, send_ipc_shutdown_message
from dagster_webserver.webserver import DagsterWebserver
from starlette.types import ASGIApp

from release_pipeline.apps.dagster.door import LOGIN, ROLE, Door, Entrance, read_proxy
from release_pipeline.apps.dagster.judge import LONGEST, Role
from release_pipeline.apps.dagster.machines import Machines
from release_pipeline.apps.dagster.names import Stamps, reload_when_changed, stamp_files
from release_pipeline.apps.dagster.runs import last_heartbeat
from release_pipeline.apps.door import Server, configure_server, local_addresses, opened_listener
from release_pipeline.store.site import HOME, find_site

_WORKSPACE = "workspace.yaml"
_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS = 15_000, 3600  # as dagster-webserver has them
_WAIT_SECONDS = 60
_PURPOSES = {Role.OPERATE: "to operate", Role.VIEW: "to look only"}


@dataclass(frozen=True, slots=True)
class Opening:
    """The settings with which a door is opened."""

    port: int
    uds: str | None = None
    read_only: bool = False
    allow_hosts: tuple[str, ...] = ()
    trusted_proxy: str | None = None

    def command(self) -> list[str]:
        """Return the command that opens it."""
        return [sys.executable, "-m", __name__, json.dumps(asdict(self))]


def main(argument: str) -> int:
    """Serve until a signal comes or the daemon ends; returns the exit code."""
    settings = json.loads(argument)
    opening = Opening(**{**settings, "allow_hosts": tuple(settings["allow_hosts"])})
    home = Path(os.environ[HOME])
    loaded = stamp_files(home)
    os.umask(0o077)  # Dagster makes sockets with the mode of the umask; files for the public get their modes from us
    configure_loggers(log_level="INFO")
    # Dagster then reports code that does not load in one line, as under `dagster dev`.
    os.environ |= {"DAGSTER_IS_DEV_CLI": "1", "DAGSTER_verbose": ""}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with contextlib.ExitStack() as stack:
        _use_private_folder(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        instance = stack.enter_context(dg.DagsterInstance.get())
        instance.optimize_for_webserver(_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS, -1)
        uds = None if opening.uds is None else Path(opening.uds)
        listener = stack.enter_context(opened_listener(opening.port, uds))
        workspace = Path(_WORKSPACE) if opening.read_only else stack.enter_context(_code_server(instance))
        context = stack.enter_context(_Context(instance, WorkspaceFileTarget([str(workspace)]), version=dagster_version))
        stack.enter_context(_reloading(context, home, loaded))
        daemon = None if opening.read_only else stack.enter_context(_daemon(instance, workspace))
        server = _build_server(opening, context, _machines(instance))
        if daemon is not None:
            threading.Thread(target=_end_with, args=(daemon, server), daemon=True).start()
        server.run([listener])  # raises the error that ended it, once it has answered what was asked
        return 1


def _end(_number: int, _frame: FrameType | None) -> None:
    """End with all that was started; a second signal does not disturb that."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def _use_private_folder(folder: str) -> None:
    """Put temporary files of this process and of all that it starts into this folder. The sockets of Dagster's code servers are
    among them: anyone who can connect there can start runs as this account."""
    os.environ["TMPDIR"] = tempfile.tempdir = folder


class _Context(WorkspaceProcessContext):
    """A context whose Dagster permissions follow the role: Dagster's pages show what is not permitted, and it refuses their
    requests."""

    def create_request_context(self, source: Any = None) -> WorkspaceRequestContext:
        operates = source is not None and source.scope.get(ROLE) is Role.OPERATE
        return WorkspaceRequestContext(
            instance=self.instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=not operates,
        )


def _machines(instance: dg.DagsterInstance) -> Machines:
    site = find_site(Path(os.environ[HOME]))
    return Machines(site, heartbeat=lambda: last_heartbeat(instance))


def _build_server(opening: Opening, context: WorkspaceProcessContext, machines: Machines) -> Server:
    most = Role.VIEW if opening.read_only else Role.OPERATE
    if opening.trusted_proxy is not None:
        proxy = read_proxy(Path(opening.trusted_proxy))
        door = Door({"": _dagster(context, "")}, way=proxy, addresses=proxy.addresses, most=most, machines=machines)
        links = [f"https://{host}" for host in proxy.hosts]
    else:
        entrance = Entrance(role for role in Role if role is Role.VIEW or most is Role.OPERATE)
        addresses = local_addresses(opening.port, opening.allow_hosts)
        applications = {prefix: _dagster(context, prefix) for prefix in entrance.prefixes.values()}
        door = Door(applications, way=entrance, addresses=addresses, most=most, machines=machines)
        links = [f"{_PURPOSES[role]}: http://127.0.0.1:{opening.port}{LOGIN}#{token}" for role, token in entrance.tokens.items()]
    lines = "\n".join([*links, "(stop with Ctrl-C; whoever has a link can use it until then)"])
    return Server(configure_server(door, ws_max_size=LONGEST), lambda: print(lines, flush=True))


def _dagster(context: WorkspaceProcessContext, prefix: str) -> ASGIApp:
    application: Any = DagsterWebserver(context, prefix).create_asgi_app()
    return application


@contextlib.contextmanager
def _code_server(instance: dg.DagsterInstance) -> Iterator[Path]:
    """Yield the file of a workspace with the workspace's code servers, which application and daemon share."""
    with ProxyServerManager(instance, WorkspaceFileTarget([_WORKSPACE]), code_server_log_level="warning") as servers:
        workspace = Path(tempfile.gettempdir()) / _WORKSPACE
        workspace.write_text(json.dumps({"load_from": list(servers.get_code_server_specs())}), encoding="utf-8")  # JSON is YAML
        yield workspace


@contextlib.contextmanager
def _reloading(context: WorkspaceProcessContext, home: Path, loaded: Stamps) -> Iterator[None]:
    """Reload code locations after changes of the site's files while the block runs; the daemon sees it through the servers."""

    def reload() -> None:
        for name in context.code_location_names:
            context.reload_code_location(name)

    ending = threading.Event()
    watching = threading.Thread(target=reload_when_changed, args=(home, loaded, reload, ending), daemon=True)
    watching.start()
    try:
        yield
    finally:
        ending.set()


@contextlib.contextmanager
def _daemon(instance: dg.DagsterInstance, workspace: Path) -> Iterator[subprocess.Popen[Any]]:
    reads, writes = get_ipc_shutdown_pipe()
    program = [sys.executable, "-m", "dagster._daemon", "run", "--log-level", "info", "--shutdown-pipe", str(reads)]
    program += ["--instance-ref", serialize_value(instance.get_ref()), "--workspace", str(workspace)]
    daemon = open_ipc_subprocess(program, pass_fds=[reads])
    try:
        yield daemon
    finally:
        send_ipc_shutdown_message(writes)
        try:
            daemon.wait(_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            logging.getLogger("dagster").warning("The daemon did not end by itself and is killed.")
            daemon.kill()


def _end_with(daemon: subprocess.Popen[Any], server: Server) -> None:
    """End the UI when its daemon ends: otherwise it would seem to work although no timetable runs."""
    daemon.wait()
    server.should_exit = True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
