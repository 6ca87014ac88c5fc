"""An object store on this machine: what a test delivers to.

It refuses what it is told to refuse, or cuts a connection.
"""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

CUT = 0  # in the place of a status: the connection ends without an answer
Reply: TypeAlias = tuple[int, bytes | None]


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Archive:
    """A server. `refuse`: statuses for requests that match a pattern of METHOD PATH, each of them for one."""

    base: str = ""
    refuse: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def answer(self, asked: Asked) -> Reply:
        """What it replies."""
        raise NotImplementedError

    def headers(self, asked: Asked) -> dict[str, str]:
        """Headers of the reply."""
        return {"Content-Type": "application/json"}

    def reply(self, asked: Asked) -> Reply:
        """What it replies, or is told to."""
        said = f"{asked.method} {asked.path}"
        statuses = next((statuses for pattern, statuses in self.refuse.items() if re.fullmatch(pattern, said)), [])
        status = statuses.pop(0) if statuses else 200
        return self.answer(asked) if status == 200 else (status, None)


@contextmanager
def serving(archive: Archive) -> Iterator[None]:
    """The server while it serves."""
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            asked = Asked(self.command, unquote(parts.path), query, headers, self.read_body(headers))
            with lock:
                status, reply = archive.reply(asked)
            if status == CUT:
                self.close_connection = True
                return
            content = reply or b""
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **archive.headers(asked)}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  as the library calls it

        def read_body(self, headers: dict[str, str]) -> bytes:
            if "chunked" in headers.get("transfer-encoding", ""):
                return b"".join(self.read_chunks())
            body = self.rfile.read(int(headers.get("content-length", 0)))
            return _unchunk(body) if "aws-chunked" in headers.get("content-encoding", "") else body

        def read_chunks(self) -> Iterator[bytes]:
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    archive.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _unchunk(body: bytes) -> bytes:
    """What is in the chunks of S3's own encoding."""
    found = b""
    while body:
        head, _, rest = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        found, body = found + rest[:size], rest[size + 2 :]
    return found


# an object store


@dataclass
class Bucket(Archive):
    """Enough of S3: objects of buckets, listed, read, written and removed. `ciphered`: its ETags are of no content."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    ciphered: bool = False

    def answer(self, asked: Asked) -> Reply:
        """See `Archive`."""
        if asked.method == "PUT":
            self.objects[asked.path] = asked.body
            return 200, None
        if asked.method == "DELETE":
            self.objects.pop(asked.path, None)
            return 204, None
        if "list-type" in asked.query:
            return 200, self._list(asked)
        if asked.path not in self.objects:
            return 404, None
        return 200, self.objects[asked.path]

    def headers(self, asked: Asked) -> dict[str, str]:
        """See `Archive`."""
        found = {"Last-Modified": "Mon, 23 Nov 2026 11:00:00 GMT", "Content-Type": "application/xml"}
        return found | ({"ETag": self.etag(asked.path)} if asked.path in self.objects else {})

    def etag(self, path: str) -> str:
        """The ETag of an object."""
        return f'"{hashlib.md5(self.objects[path] + b"key" * self.ciphered).hexdigest()}"'  # noqa: S324

    def _list(self, asked: Asked) -> bytes:
        bucket = asked.path.strip("/")
        prefix, inside = asked.query.get("prefix", ""), asked.query.get("delimiter", "")
        keys = [path.removeprefix(f"/{bucket}/") for path in sorted(self.objects) if path.startswith(f"/{bucket}/{prefix}")]
        folders = {key[: key.index("/", len(prefix)) + 1] for key in keys if inside and "/" in key[len(prefix) :]}
        files = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-23T11:00:00.000Z</LastModified>"
            f"<ETag>{escape(self.etag(f'/{bucket}/{key}'))}</ETag><Size>{len(self.objects[f'/{bucket}/{key}'])}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in keys
            if not any(key.startswith(folder) for folder in folders)
        )
        more = "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys)}</KeyCount><MaxKeys>1000</MaxKeys>"
        text = f"{head}<IsTruncated>false</IsTruncated>{files}{more}"
        return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{text}</ListBucketResult>'.encode()
