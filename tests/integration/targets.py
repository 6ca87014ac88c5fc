"""Servers on this machine that are as the documents of archives describe them, and an object store: what a test delivers to.

Each remembers what it was asked, refuses what it is told to refuse, cuts a connection, or holds an answer back until whoever
asked was killed.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TOKEN = "zyx-tok3n-of-the-archive"  # noqa: S105
CUT, LATER = 0, -1  # in the place of a status: the connection ends without an answer, before or after it was done
Reply: TypeAlias = tuple[int, Any]
DOI = "10.5072/FK2"


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Its body as JSON."""
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, bytes]:
        """Its body as a form; the name of the file is under `filename`."""
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        found: dict[str, bytes] = {}
        for part in cast(list[Message], BytesParser().parsebytes(head + self.body).get_payload()):
            found[str(part.get_param("name", header="content-disposition"))] = cast(bytes, part.get_payload(decode=True))
            if (name := part.get_filename()) is not None:
                found["filename"] = name.encode()
        return found


@dataclass
class Archive:
    """A server. `refuse`: statuses for requests that match a pattern of METHOD PATH, each of them for one."""

    base: str = ""
    asked: list[str] = field(default_factory=list[str])
    refuse: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    elsewhere: str = ""  # where it sends one with a status of 3xx

    def answer(self, asked: Asked) -> Reply:
        """What it replies."""
        raise NotImplementedError

    def headers(self, asked: Asked) -> dict[str, str]:
        """Headers of the reply."""
        return {"Content-Type": "application/json"}

    def count(self, pattern: str) -> int:
        """How often something was asked."""
        return sum(re.fullmatch(pattern, one) is not None for one in self.asked)

    def reply(self, asked: Asked) -> Reply:
        """What it replies, or is told to."""
        said = f"{asked.method} {asked.path}"
        self.asked.append(said)
        statuses = next((statuses for pattern, statuses in self.refuse.items() if re.fullmatch(pattern, said)), [])
        status = statuses.pop(0) if statuses else 200
        if status == LATER:
            self.answer(asked)
            return CUT, None
        return self.answer(asked) if status == 200 else (status, {"message": f"no: {TOKEN}"})


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
            content = reply if isinstance(reply, bytes) else b"" if reply is None else json.dumps(reply).encode()
            self.send_response(status)
            more = archive.headers(asked) | ({"Location": archive.elsewhere} if status // 100 == 3 else {})
            for name, value in {"Content-Length": str(len(content)), **more}.items():
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


# archives


@dataclass
class Dataverse(Archive):
    """A Dataverse with one collection: datasets by their numbers, each with a draft, and versions that are out."""

    collection: str = "health"
    datasets: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    last: int = 100

    def answer(self, asked: Asked) -> Reply:
        """See `Archive`."""
        if asked.headers.get("x-dataverse-key") != TOKEN:
            return 401, {"status": "ERROR", "message": "Bad API key"}
        parts = asked.path.strip("/").split("/")[1:]
        if parts[0] == "dataverses" and parts[1] == self.collection:
            return self._make(asked) if asked.method == "POST" else (200, self._ok(self._list()))
        if parts[0] == "files" and asked.method == "DELETE":
            return self._delete_file(int(parts[1]))
        dataset = self.datasets.get(int(parts[1])) if parts[0] == "datasets" and parts[1].isdigit() else None
        return (404, self._error("not found")) if dataset is None else self._answer_of(asked, dataset, parts[2:])

    def _answer_of(self, asked: Asked, dataset: dict[str, Any], parts: list[str]) -> Reply:
        match [asked.method, *parts]:
            case ["GET", "versions", which, *files]:
                deaccessioned = asked.query.get("includeDeaccessioned") == "true"
                version = self._find(dataset, which, deaccessioned=deaccessioned)
                if version is None:
                    return 404, self._error("not found")
                return 200, self._ok([*version["files"].values()] if files else {**version, "files": []})
            case ["POST", "add"]:
                return self._add(dataset, asked.form)
            case ["POST", "actions", ":publish"]:
                draft = dataset.pop("draft")
                kept = {name: {**one} for name, one in draft["files"].items()}
                dataset["out"].append({**draft, "files": kept, "versionState": "RELEASED"})
                return 200, self._ok({"id": dataset["id"]})
            case ["DELETE"]:
                if dataset["out"]:
                    return 401, self._error("published")
                del self.datasets[dataset["id"]]
                return 200, self._ok({"message": "deleted"})
            case ["DELETE", "versions", ":draft"]:
                dataset.pop("draft")
                return 200, self._ok({"message": "deleted"})
            case ["POST", "versions", ":latest-published", "deaccession"]:
                version = self._find(dataset, ":latest-published", deaccessioned=False)
                if version is None:
                    return 404, self._error("not found")
                version |= {"versionState": "DEACCESSIONED", "reason": asked.document["deaccessionReason"]}
                return 200, self._ok({"message": "deaccessioned"})
            case _:
                return 405, self._error("no such thing")

    def _make(self, asked: Asked) -> Reply:
        version = asked.document["datasetVersion"]
        fields = {one["typeName"] for one in version["metadataBlocks"]["citation"]["fields"]}
        if not fields >= {"title", "author", "datasetContact", "dsDescription", "subject"}:
            return 400, self._error("validation failed")
        self.last += 1
        name = f"doi:{DOI}/{self.last}"
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        draft = {**version, "versionState": "DRAFT", "createTime": now, "datasetPersistentId": name, "files": {}}
        self.datasets[self.last] = {"id": self.last, "draft": draft, "out": []}
        return 201, self._ok({"id": self.last, "persistentId": name})

    def _list(self) -> list[dict[str, Any]]:
        inner = {"type": "dataverse", "id": 7, "title": "inner"}
        return [inner, *({"type": "dataset", "id": number, "protocol": "doi"} for number in sorted(self.datasets))]

    def _find(self, dataset: dict[str, Any], which: str, *, deaccessioned: bool) -> dict[str, Any] | None:
        if which == ":latest" and "draft" in dataset:
            return cast(dict[str, Any], dataset["draft"])
        out = [one for one in dataset["out"] if one["versionState"] == "RELEASED"]
        out = out or (dataset["out"] if deaccessioned else [])
        return out[-1] if out else None

    def _edit(self, dataset: dict[str, Any]) -> dict[str, Any]:
        if "draft" not in dataset:
            last = dataset["out"][-1]
            dataset["draft"] = {**last, "files": dict(last["files"]), "versionState": "DRAFT"}
        return cast(dict[str, Any], dataset["draft"])

    def _add(self, dataset: dict[str, Any], form: dict[str, bytes]) -> Reply:
        said, name, content = json.loads(form["jsonData"]), form["filename"].decode(), form["file"]
        assert said["tabIngest"] == "false", "a table that is ingested is another file"
        files = self._edit(dataset)["files"]
        if name in files:
            name = f"again-{name}"
        self.last += 1
        checksum = {"type": "MD5", "value": hashlib.md5(content).hexdigest()}  # noqa: S324
        file = {"id": self.last, "filename": name, "filesize": len(content), "checksum": checksum}
        files[name] = {"label": name, "dataFile": file, "content": content.hex()}
        return 201, self._ok({"files": [{"label": name}]})

    def _delete_file(self, number: int) -> Reply:
        for dataset in self.datasets.values():
            files = self._edit(dataset)["files"]
            for name in [name for name, one in files.items() if one["dataFile"]["id"] == number]:
                del files[name]
                return 200, self._ok({"message": "deleted"})
        return 404, self._error("not found")

    @staticmethod
    def _ok(data: Any) -> dict[str, Any]:
        return {"status": "OK", "data": data}

    @staticmethod
    def _error(words: str) -> dict[str, str]:
        return {"status": "ERROR", "message": f"{words}: {TOKEN}"}


@dataclass
class Zenodo(Archive):
    """Zenodo: depositions by their numbers. `lags`: its list does not have the newest yet."""

    depositions: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    lags: bool = False
    buckets: str = ""  # the server that has them, if it is another

    def answer(self, asked: Asked) -> Reply:
        """See `Archive`."""
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"status": 401, "message": f"not authorized: {TOKEN}"}
        match [asked.method, *asked.path.strip("/").split("/")[1:]]:
            case ["POST", "deposit", "depositions"]:
                return self._make(asked)
            case ["GET", "deposit", "depositions"]:
                size, page = int(asked.query.get("size", 10)), int(asked.query.get("page", 1))
                found = [*self.depositions.values()][: -1 if self.lags else None]
                return 200, found[(page - 1) * size : page * size]
            case ["PUT", "files", bucket, name]:
                return self._add(self.depositions[int(bucket.removeprefix("bucket-"))], name, asked.body)
            case [method, "deposit", "depositions", number, *rest]:
                deposition = self.depositions.get(int(number))
                return (404, {"status": 404}) if deposition is None else self._answer_of(method, deposition, rest)
            case _:
                return 404, {"status": 404}

    def _answer_of(self, method: str, deposition: dict[str, Any], rest: list[str]) -> Reply:
        match [method, *rest]:
            case ["GET"]:
                return 200, deposition
            case ["POST", "actions", "publish"]:
                if deposition["submitted"] or not {"creators", "license", "title"} <= set(deposition["metadata"]):
                    return 400, {"status": 400, "message": "Validation error"}
                doi = f"10.5281/zenodo.{deposition['id']}"
                deposition |= {"submitted": True, "state": "done", "doi": doi, "doi_url": f"https://doi.org/{doi}"}
                return 202, deposition
            case ["DELETE"]:
                if deposition["submitted"]:
                    return 403, {"status": 403}
                del self.depositions[deposition["id"]]
                return 201, None
            case ["DELETE", "files", number]:
                deposition["files"] = [one for one in deposition["files"] if one["id"] != number]
                return 204, None
            case _:
                return 405, {"status": 405}

    def _make(self, asked: Asked) -> Reply:
        number = 542201 + len(self.depositions)
        links = {"bucket": f"{self.buckets or self.base}/api/files/bucket-{number}"}
        said = {"id": number, "metadata": asked.document["metadata"], "links": links}
        self.depositions[number] = {**said, "files": [], "state": "unsubmitted", "submitted": False}
        return 201, self.depositions[number]

    def _add(self, deposition: dict[str, Any], name: str, content: bytes) -> Reply:
        if deposition["submitted"]:
            return 403, {"status": 403}
        checksum = hashlib.md5(content).hexdigest()  # noqa: S324
        file = {"id": f"file-{name}", "filename": name, "filesize": len(content), "checksum": checksum}
        deposition["files"] = [*(one for one in deposition["files"] if one["filename"] != name), file]
        self.contents[f"{deposition['id']}/{name}"] = content
        return 201, {"key": name, "checksum": f"md5:{checksum}"}


@dataclass
class Ckan(Archive):
    """A CKAN catalogue: datasets by their names."""

    datasets: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    last: int = 0

    def answer(self, asked: Asked) -> Reply:
        """See `Archive`."""
        if asked.headers.get("authorization") != TOKEN:
            return 403, self._error("Authorization Error")
        match [asked.method, asked.path.removeprefix("/api/3/action/")]:
            case ["GET", "package_show"]:
                found = self.datasets.get(asked.query["id"])
                return (404, self._error("Not Found Error")) if found is None else (200, self._ok(found))
            case ["POST", "package_create"]:
                said = asked.document
                if said["name"] in self.datasets or re.fullmatch("[a-z0-9_-]{2,100}", said["name"]) is None:
                    return 409, self._error("Validation Error")
                made = {**said, "id": f"id-of-{said['name']}", "state": "active", "resources": []}
                self.datasets[said["name"]] = made
                return 200, self._ok(made)
            case ["POST", "package_patch"]:
                dataset = self._find(asked.document["id"])
                dataset.update(asked.document)
                return 200, self._ok(dataset)
            case ["POST", "resource_create"]:
                return self._add(asked.form)
            case ["POST", "resource_delete"]:
                for dataset in self.datasets.values():
                    dataset["resources"] = [one for one in dataset["resources"] if one["id"] != asked.document["id"]]
                return 200, self._ok(None)
            case _:
                return 400, self._error("Bad request")

    def _add(self, form: dict[str, bytes]) -> Reply:
        dataset = self._find(form["package_id"].decode())
        self.last += 1
        resource = {name: form[name].decode() for name in ("name", "hash", "format")}
        resource |= {"id": f"resource-{self.last}", "size": len(form["upload"])}  # type: ignore[dict-item]
        assert form["filename"] == form["name"]
        dataset["resources"].append(resource)
        self.contents[form["name"].decode()] = form["upload"]
        return 200, self._ok(resource)

    def _find(self, number: str) -> dict[str, Any]:
        return next(one for one in self.datasets.values() if one["id"] == number)

    @staticmethod
    def _ok(result: Any) -> dict[str, Any]:
        return {"success": True, "result": result}

    @staticmethod
    def _error(kind: str) -> dict[str, Any]:
        return {"success": False, "error": {"__type": kind, "message": TOKEN}}
