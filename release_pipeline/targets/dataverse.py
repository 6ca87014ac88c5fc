"""A collection of a Dataverse installation. Written after the Native API of the Dataverse Guides: "Create a Dataset in a
Dataverse Collection", "Show Contents of a Dataverse Collection", "Add a File to a Dataset", "List Files in a Dataset", "Deleting
Files", "Publish a Dataset", "Delete Unpublished Dataset", "Delete Dataset Draft" and "Deaccession Dataset".

A package is a dataset, with the package's hash as its other id: by it a dataset is found that an attempt made which was killed
before anybody knew of it. That needs no index, which would lag: datasets of the collection are looked at from the last one back.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from release_pipeline.targets.http import Form, Server, escape, get, get_list
from release_pipeline.targets.target import Parcel, Recall, Recalled, Stored, TargetFailed, read_algorithm, recall_files

AGENCY = "release-pipeline package"  # of the other id
CLOCKS = timedelta(days=1)  # by which the clocks of the two machines may differ
MOST_VERSIONS = 100
_PID = re.compile(r"[a-z]{2,10}:[\x21-\x7e]{1,200}")
_LATEST, _OUT = "/versions/:latest", "/versions/:latest-published"


@dataclass(slots=True)
class DataverseTarget:
    """See `Target`. `metadata`: what a dataset must have and a package does not know: authors, contact and subjects."""

    server: Server
    collection: str
    authors: tuple[str, ...]
    contact: str
    subjects: tuple[str, ...]
    parcel: Parcel
    _dataset: str = ""  # its number in the database
    _is_sought: bool = False
    _there: dict[str, str] = field(default_factory=dict[str, str])  # the number of each file that was found

    LOOKS: ClassVar[int] = 20  # at a dataset that is being published, until it is
    PAUSE: ClassVar[float] = 3.0  # seconds between two

    def find(self) -> Mapping[str, Stored]:
        """See `Target`."""
        if not self._find_dataset():
            return {}
        doing = "list the files"
        listed = self.server.ask(doing, "GET", self._path(f"{_LATEST}/files"))
        if listed is None:  # deaccessioned
            return {}
        if (files := get_list(listed, "data")) is None:
            raise self.server.misread(doing)
        self._there = {}
        found: dict[str, Stored] = {}
        for one in files:
            name, number = get(one, "label"), get(one, "dataFile", "id")
            if not isinstance(name, str) or type(number) is not int:
                raise self.server.misread(doing)
            algorithm = read_algorithm(str(get(one, "dataFile", "checksum", "type")))
            size, known = get(one, "dataFile", "filesize"), str(get(one, "dataFile", "checksum", "value")).lower()
            self._there[name] = str(number)
            found[name] = Stored(size if type(size) is int else None, {algorithm: known} if algorithm else {})
        return found

    def put(self, file: Path) -> None:
        """See `Target`. Nothing is made of a table: what is there are the bytes of the file."""
        if not self._find_dataset():
            self._make()
        self.remove(file.name)
        form = Form({"jsonData": json.dumps({"restrict": "false", "tabIngest": "false"})}, "file", file)
        self.server.ask("add a file", "POST", self._path("/add"), body=form)

    def remove(self, name: str) -> None:
        """See `Target`."""
        if (number := self._there.pop(name, None)) is not None:
            self.server.ask("delete a file", "DELETE", f"/api/files/{number}")

    def close(self) -> tuple[str, str]:
        """See `Target`: the dataset is published, which its server may do in the background."""
        doing = "publish the dataset"
        if self._state() == "DRAFT":
            kind = "major" if self._version(_OUT) is None else "minor"
            self.server.ask(doing, "POST", self._path("/actions/:publish"), query={"type": kind})
        for _ in range(self.LOOKS):
            if self._state() == "RELEASED":
                return self._dataset, self._name()
            time.sleep(self.PAUSE)
        what = "it is still publishing the dataset, or its workflow waits for somebody."
        raise TargetFailed(what, where=self.server.name, remedy="Look there, and try again later.")

    def recall(self, recall: Recall) -> Recalled:
        """See `Target`: a retracted dataset is deaccessioned, every version of it, with the reason; one that was never published
        is deleted. A superseded one gets the tombstone as another version."""
        if not self._find_dataset() or self._version(_LATEST) is None:
            return Recalled()
        if not recall.is_gone:
            done = recall_files(self, recall)
            self.close()
            return done
        if self._version(_OUT) is None:
            if self._state() == "DRAFT":
                self.server.ask("delete the draft", "DELETE", self._path(""))
            return Recalled(removed=["the dataset, which was a draft"])
        if self._state() == "DRAFT":
            self.server.ask("delete the draft", "DELETE", self._path("/versions/:draft"))
        reason = {"deaccessionReason": recall.why}
        for _ in range(MOST_VERSIONS):
            if self._version(_OUT) is None:
                break
            self.server.ask("deaccession the dataset", "POST", self._path(f"{_OUT}/deaccession"), document=reason)
        return Recalled(removed=["every file: the dataset is deaccessioned, and its page tells the reason"])

    def _find_dataset(self) -> bool:
        """Whether there is a dataset of the package."""
        self._dataset = self._dataset or self.parcel.deposit or ("" if self._is_sought else self._seek())
        self._is_sought = True
        return bool(self._dataset)

    def _seek(self) -> str:
        """The number of the dataset of the package, among those of the collection that are not older than its publication."""
        doing = "list the collection"
        listed = self.server.ask(doing, "GET", f"/api/dataverses/{escape(self.collection)}/contents")
        if listed is None:
            raise self.server.refused(doing, 404)
        if (contents := get_list(listed, "data")) is None:
            raise self.server.misread(doing)
        numbers = [get(one, "id") for one in contents if get(one, "type") == "dataset"]
        for number in sorted((number for number in numbers if type(number) is int), reverse=True):
            version = self._version(_LATEST, str(number))
            if version is None:
                continue
            if self.parcel.hash in _list_other_ids(version):
                return str(number)
            if _read_moment(get(version, "createTime")) < self.parcel.published - CLOCKS:
                return ""
        return ""

    def _make(self) -> None:
        doing = "make the dataset"
        made = self.server.ask(
            doing, "POST", f"/api/dataverses/{escape(self.collection)}/datasets", document={"datasetVersion": self._describe()}
        )
        if type(number := get(made, "data", "id")) is not int:
            raise self.server.misread(doing)
        self._dataset = str(number)

    def _describe(self) -> dict[str, Any]:
        other = {"otherIdAgency": _text("otherIdAgency", AGENCY), "otherIdValue": _text("otherIdValue", self.parcel.hash)}
        fields = [
            _text("title", self.parcel.title),
            _compound("author", [{"authorName": _text("authorName", name)} for name in self.authors]),
            _compound("datasetContact", [{"datasetContactEmail": _text("datasetContactEmail", self.contact)}]),
            _compound("dsDescription", [{"dsDescriptionValue": _text("dsDescriptionValue", self.parcel.description)}]),
            _field("subject", "controlledVocabulary", list(self.subjects)),
            _compound("otherId", [other]),
        ]
        return {"metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": fields}}}

    def _version(self, which: str, dataset: str = "") -> Any:
        query = {"excludeFiles": "true"} | ({"includeDeaccessioned": "true"} if which == _LATEST else {})
        return get(self.server.ask("look at the dataset", "GET", self._path(which, dataset), query=query), "data")

    def _state(self) -> str:
        return str(get(self._version(_LATEST), "versionState"))

    def _name(self) -> str:
        name = get(self._version(_LATEST), "datasetPersistentId")
        if not isinstance(name, str) or _PID.fullmatch(name) is None:
            raise self.server.misread("look at the dataset")
        return name

    def _path(self, rest: str, dataset: str = "") -> str:
        return f"/api/datasets/{escape(dataset or self._dataset)}{rest}"


def _field(name: str, kind: str, value: Any) -> dict[str, Any]:
    return {"typeName": name, "typeClass": kind, "multiple": isinstance(value, list), "value": value}


def _text(name: str, value: str) -> dict[str, Any]:
    return _field(name, "primitive", value)


def _compound(name: str, value: list[dict[str, Any]]) -> dict[str, Any]:
    return _field(name, "compound", value)


def _list_other_ids(version: Any) -> list[str]:
    """The other ids of a dataset that are hashes of packages."""
    fields = get_list(version, "metadataBlocks", "citation", "fields") or ()
    ids = [each for one in fields if get(one, "typeName") == "otherId" for each in get_list(one, "value") or ()]
    return [str(get(each, "otherIdValue", "value")) for each in ids if get(each, "otherIdAgency", "value") == AGENCY]


def _read_moment(text: Any) -> datetime:
    """A moment as it is told; the last one there is where that cannot be read, so that one goes on looking."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        moment = datetime.max
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
