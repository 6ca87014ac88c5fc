"""An organisation of a CKAN catalogue. Written after the "API guide" of CKAN's documentation and its Action API reference
(`package_show`, `package_create`, `package_patch`, `resource_create`, `resource_delete`), and "FileStore and file uploads".

A package is a dataset whose name follows from the release, and a file a resource of it; names of datasets are unique, so there is
never a second. It is private until everything is there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from release_pipeline.targets.http import Form, Server, get, get_list
from release_pipeline.targets.target import Parcel, Recall, Recalled, Stored, TargetFailed, hash_of, recall_files

MARK = "release-pipeline package"  # the extra that has the package's hash
LONGEST = 100  # letters of a name
_API = "/api/3/action/"


@dataclass(slots=True)
class CkanTarget:
    """See `Target`. `metadata`: of the dataset, beside what follows from the package."""

    server: Server
    organisation: str
    metadata: Mapping[str, str]
    parcel: Parcel
    _dataset: Mapping[str, Any] | None = None
    _there: dict[str, str] = field(default_factory=dict[str, str])  # the id of each resource that was found

    def find(self) -> Mapping[str, Stored]:
        """See `Target`. What a resource's hash says is what was told with its upload, which is there whole or not at all."""
        dataset = self._look()
        if dataset is None:
            return {}
        if (resources := get_list(dataset, "resources")) is None:
            raise self.server.misread("look at the dataset")
        self._there = {str(get(one, "name")): str(get(one, "id")) for one in resources}
        return {str(get(one, "name")): _read_resource(one) for one in resources}

    def put(self, file: Path) -> None:
        """See `Target`."""
        if self._dataset is None and self._look() is None:
            self._make()
        self.remove(file.name)
        digest = f"sha256:{hash_of(file, 'sha256')}"
        kind = file.suffix.removeprefix(".").upper()
        fields = {"package_id": str(get(self._dataset, "id")), "name": file.name, "hash": digest, "format": kind, "url": ""}
        self._act("add a file", "resource_create", body=Form(fields, "upload", file))

    def remove(self, name: str) -> None:
        """See `Target`."""
        if (number := self._there.pop(name, None)) is not None:
            self._act("delete a file", "resource_delete", document={"id": number})

    def close(self) -> tuple[str, str]:
        """See `Target`."""
        if get(self._look(), "private") is not False:
            self._act("publish the dataset", "package_patch", document={"id": str(get(self._dataset, "id")), "private": False})
        return name_dataset(self.parcel.release), f"{self.server.base}/dataset/{name_dataset(self.parcel.release)}"

    def recall(self, recall: Recall) -> Recalled:
        """See `Target`."""
        return Recalled() if self._look() is None else recall_files(self, recall)

    def _look(self) -> Mapping[str, Any] | None:
        """The dataset of the package, if there is one; refused where its name belongs to something else."""
        doing = "look at the dataset"
        reply = self.server.ask(doing, "GET", f"{_API}package_show", query={"id": name_dataset(self.parcel.release)})
        if reply is None:
            self._dataset = None
            return None
        dataset = self._read(doing, reply)
        if not isinstance(get(dataset, "id"), str):
            raise self.server.misread(doing)
        marks = [get(one, "value") for one in get_list(dataset, "extras") or () if get(one, "key") == MARK]
        if marks != [self.parcel.hash] or get(dataset, "state") == "deleted":
            what = f"the dataset '{name_dataset(self.parcel.release)}' there is deleted, or not of this package."
            raise TargetFailed(what, where=self.server.name, remedy="Look there: purge or rename it, if nobody needs it.")
        self._dataset = dataset
        return dataset

    def _make(self) -> None:
        described = {
            **self.metadata,
            "name": name_dataset(self.parcel.release),
            "title": self.parcel.title,
            "notes": self.parcel.description,
            "version": self.parcel.release.rpartition("/")[2],
            "owner_org": self.organisation,
            "private": True,
            "extras": [{"key": MARK, "value": self.parcel.hash}],
        }
        self._dataset = self._act("make the dataset", "package_create", document=described)

    def _act(self, doing: str, action: str, **how: Any) -> Any:
        return self._read(doing, self.server.ask(doing, "POST", f"{_API}{action}", **how))

    def _read(self, doing: str, reply: Any) -> Any:
        """The result of an action, which may be refused with the status of one that was not."""
        if get(reply, "success") is not True:
            raise self.server.misread(doing) if get(reply, "success") is None else self.server.refused(doing, 409)
        return get(reply, "result")


def name_dataset(release: str) -> str:
    """The name of a release's dataset: lower-case letters, digits and hyphens; with a hash where that would not tell it from
    another's."""
    plain = re.sub(r"[^a-z0-9-]+", "-", release.lower().replace("/", "-"))
    parts = release.split("/")
    if plain == "-".join(parts) and not any("-" in part for part in parts) and len(plain) <= LONGEST:
        return plain
    mark = hashlib.sha256(release.encode()).hexdigest()[:8]
    return f"{plain[: LONGEST - len(mark) - 1]}-{mark}"


def _read_resource(listed: Any) -> Stored:
    size, known = get(listed, "size"), get(listed, "hash")
    hashes = {"sha256": known.removeprefix("sha256:")} if isinstance(known, str) and known.startswith("sha256:") else {}
    return Stored(size if type(size) is int else None, hashes)
