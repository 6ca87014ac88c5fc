"""Where a web page of ours listens: at a port of this machine, or at a Unix socket in a folder of its own account.

Any account of the machine can bind a port above 1023 first, and then gets everything that browsers
and proxies send there. No other account can make a socket in the server's own folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Generator
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage

_QUEUE = 2048  # connections that the system holds until we accept them
_SOCKET_MODE = 0o660  # the owner, and the group that the folder gives it: the proxy's


@contextlib.contextmanager
def opened_listener(port: int, uds: Path | None = None) -> Generator[socket.socket]:
    """A socket that listens at the path `uds`, or else at this port; raises `WrongUsage` where it cannot."""
    with opened_port(port) if uds is None else opened_socket(uds) as listener:
        yield listener


@contextlib.contextmanager
def opened_port(port: int) -> Generator[socket.socket]:
    """A socket that listens at a port of this machine; raises `WrongUsage` where another process has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # Connections of a server that ended must not keep the next one from its port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(_QUEUE)
        except OSError as error:
            raise _refuse_port(port, in_use=error.errno == errno.EADDRINUSE, why=error.strerror) from None
        yield listener


def _refuse_port(port: int, *, in_use: bool, why: str | None) -> WrongUsage:
    if in_use:
        what, remedy = (
            f"another desk or program has port {port}.",
            f"End it, or name another port, as in --port {port + 1 if port < 65535 else port - 1}.",
        )
    else:
        what, remedy = f"port {port} cannot be listened at: {why}.", "Name another port, above 1023."
    return WrongUsage(what, where="--port", remedy=remedy)


@contextlib.contextmanager
def opened_socket(path: Path, *, mode: int = _SOCKET_MODE, option: str = "--uds") -> Generator[socket.socket]:
    """A socket that listens at a path, for the owner and the group of its folder, or as `mode` says.
    The path is free again afterwards. Raises `WrongUsage` where others can write to the folder, or
    a process listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _check_folder(path.parent)
            _remove_dead_socket(path)
            listener.bind(str(path))
        except OSError as error:
            raise ReleasePipelineError(
                f"the socket cannot be made: {error.strerror or 'its path is too long'}.",
                where=str(path),
                remedy=f"Name another: {option}.",
            ) from None
        try:
            path.chmod(mode)  # before `listen`: until then nobody can connect
            listener.listen(_QUEUE)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _check_folder(folder: Path) -> None:
    """Refuse a folder in which another account can put a socket of its own in the place of ours."""
    rights = folder.stat()
    if rights.st_uid not in (os.getuid(), 0) or rights.st_mode & 0o022:
        raise WrongUsage(
            "other accounts can write to this folder, and so put their own socket in the place of this one.",
            where=str(folder),
            remedy=f"Name a folder of this account: chmod go-w {folder}",
        )


def _remove_dead_socket(path: Path) -> None:
    """Remove the socket of a process that ended; raises `WrongUsage` where a process still answers at it."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise WrongUsage(
                    "another process answers there.", where=str(path), remedy="End it first, or name another socket."
                )
        path.unlink()
