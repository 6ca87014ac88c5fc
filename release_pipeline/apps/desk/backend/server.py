"""The backend as an ASGI application at a Unix socket. It answers only the accounts for which it was opened.

No port is open, and no other machine can connect.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from release_pipeline.apps.desk.backend.protocol import FILE_HEADER, LONGEST, REQUESTS
from release_pipeline.apps.desk.backend.service import Answer, Backend
from release_pipeline.apps.door import PatientProtocol, Refused, configure_server, opened_socket, read_body
from release_pipeline.errors import WrongUsage


class Application:
    """Answers calls that are posted as JSON."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        answer = Answer(400, {"what": "this is not a call of the desk."})
        try:
            body = await read_body(Request(scope, receive).stream(), LONGEST)
            answer = await run_in_threadpool(self._backend.answer, REQUESTS.validate_json(body))
        except ClientDisconnect:
            return
        except Refused as refused:
            answer = Answer(refused.status, {"what": refused.words})
        except ValidationError:  # its message would repeat what was sent
            pass
        try:
            await _write(answer)(scope, receive, send)
        finally:
            if answer.file is not None:
                answer.file.discard()


def _write(answer: Answer) -> Response:
    file = answer.file
    if file is None:
        content = json.dumps(answer.document, ensure_ascii=False).encode("utf-8", "replace")
        return Response(content, answer.status, media_type="application/json")
    headers = {FILE_HEADER: json.dumps({"name": file.name, "facts": file.facts})}
    if file.path is None:
        return Response(file.content, headers=headers, media_type=file.media)
    return FileResponse(file.path, headers=headers, media_type=file.media)


class _AccountProtocol(PatientProtocol):
    """A connection that is closed unless one of these accounts made it."""

    def __init__(self, accounts: frozenset[int], **named: Any) -> None:
        super().__init__(**named)
        self._accounts = accounts

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if _find_account(transport.get_extra_info("socket")) not in self._accounts:
            self.end()


def _find_account(connection: socket.socket) -> int:
    """Return the account of the process at the other end; ours where the system does not report it, since then no other account
    can connect."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[1])


@contextlib.contextmanager
def serving_backend(path: Path, backend: Backend, accounts: frozenset[int] = frozenset()) -> Generator[None]:
    """Answer these accounts, and this process's, at a socket, in a thread, while the block runs."""
    if accounts and not hasattr(socket, "SO_PEERCRED"):
        raise WrongUsage(
            "this system does not say which account connects to a socket.",
            where=str(path),
            remedy="Run both parts on one account, or on Linux.",
        )
    mode = 0o666 if accounts else 0o600  # with other accounts, everyone may connect: the system reports which account it is
    protocol = partial(_AccountProtocol, accounts | {os.getuid()})
    with opened_socket(path, mode=mode, option="--socket") as listener:
        config = configure_server(Application(backend), http=protocol, ws="none", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join()
