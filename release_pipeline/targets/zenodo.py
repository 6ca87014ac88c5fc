"""Zenodo, and what speaks as it does. Written after the documents of its REST API (developers.zenodo.org): "Depositions" (create,
list, retrieve, delete), "Deposition files" (delete), "Deposition actions" (publish), and the files API of "Quickstart" (buckets).

A package is a deposition, whose notes have the package's hash: by it a deposition is found that an attempt made which was killed
before anybody knew of it. The list of depositions is an index, which lags: so after such an attempt one waits.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from release_pipeline.targets.http import Server, escape, get, get_list
from release_pipeline.targets.target import Parcel, Recall, Recalled, Stored, TargetFailed

PAGE = 100  # depositions of a list; no more are given at once
_DOI = re.compile(r"10\.[0-9]{4,9}/[\x21-\x7e]{1,200}")
_ALL = "/api/deposit/depositions"


@dataclass(slots=True)
class ZenodoTarget:
    """See `Target`. `metadata`: what Zenodo requires and a package does not know (creators, license), and whatever else."""

    server: Server
    metadata: Mapping[str, Any]
    parcel: Parcel
    _number: str = ""
    _is_sought: bool = False
    _there: dict[str, str] = field(default_factory=dict[str, str])  # the id of each file that was found

    LAG: ClassVar[timedelta] = timedelta(seconds=60)  # after which the list has what was made

    def find(self) -> Mapping[str, Stored]:
        """See `Target`."""
        if not self._find_deposition():
            return {}
        if (deposition := self._look()) is None:  # somebody discarded it there
            self._number = ""
            return {}
        if (files := get_list(deposition, "files")) is None:
            raise self.server.misread("look at the deposition")
        self._there = {str(get(one, "filename")): str(get(one, "id")) for one in files}
        return {str(get(one, "filename")): _read_file(one) for one in files}

    def put(self, file: Path) -> None:
        """See `Target`."""
        if not self._find_deposition():
            self._make()
        deposition = self._look()
        if get(deposition, "submitted") is True:
            what = "its record is published and has other files than the package, which nobody can change there."
            raise TargetFailed(what, where=self.server.name, remedy="Ask its support to withdraw the record.")
        bucket = get(deposition, "links", "bucket")
        if not isinstance(bucket, str) or urlsplit(bucket)[:2] != urlsplit(self.server.base)[:2]:
            raise self.server.misread("look at the deposition")  # the token goes to no other server
        path = f"{urlsplit(bucket).path.removeprefix(urlsplit(self.server.base).path)}/{escape(file.name)}"
        self.server.ask("add a file", "PUT", path, body=file)

    def remove(self, name: str) -> None:
        """See `Target`."""
        self.server.ask("delete a file", "DELETE", f"{_ALL}/{self._number}/files/{escape(self._there[name])}")

    def close(self) -> tuple[str, str]:
        """See `Target`: the deposition is published, and has a DOI then."""
        deposition = self._look()
        if get(deposition, "submitted") is not True:
            deposition = self.server.ask("publish", "POST", f"{_ALL}/{self._number}/actions/publish")
        doi = get(deposition, "doi")
        if not isinstance(doi, str) or _DOI.fullmatch(doi) is None:
            raise self.server.misread("publish")
        return self._number, f"https://doi.org/{doi}"

    def recall(self, recall: Recall) -> Recalled:
        """See `Target`: what is not published is deleted. A published record stays, and that is said."""
        deposition = self._look() if self._find_deposition() else None
        if deposition is None:
            return Recalled()
        if get(deposition, "submitted") is not True:
            if not recall.is_gone:
                return Recalled()
            self.server.ask("delete the deposition", "DELETE", f"{_ALL}/{self._number}")
            return Recalled(removed=["the deposition, which was a draft"])
        place = f"record {self._number}"
        if recall.is_gone:
            undone = (
                f"The data are public in {place} still: a published record's files cannot be changed by whoever deposited them. "
                "Ask Zenodo's support to withdraw the record, and name the reason."
            )
        else:
            undone = f"{place} does not say so: add the later release to it as a related work, by hand."
        return Recalled(undone=undone)

    def _find_deposition(self) -> bool:
        """Whether there is a deposition of the package."""
        self._number = self._number or self.parcel.deposit or ("" if self._is_sought else self._seek())
        self._is_sought = True
        return bool(self._number)

    def _seek(self) -> str:
        doing, page = "list the depositions", 1
        while True:
            query = {"size": str(PAGE), "page": str(page), "all_versions": "true"}
            listed = get_list(self.server.ask(doing, "GET", _ALL, query=query))
            if listed is None:
                raise self.server.misread(doing)
            for one in listed:
                if self.parcel.hash in str(get(one, "metadata", "notes")) and type(number := get(one, "id")) is int:
                    return str(number)
            if len(listed) < PAGE:
                break
            page += 1
        begun = self.parcel.begun
        if begun is not None and datetime.now(UTC) - begun < self.LAG:
            what = "an attempt was broken off a moment ago, and its list may not have the deposition of it yet."
            raise TargetFailed(what, where=self.server.name, remedy="Try again in a minute: else there might be two.")
        return ""

    def _make(self) -> None:
        described = {
            "upload_type": "dataset",
            "title": self.parcel.title,
            "description": f"<p>{html.escape(self.parcel.description)}</p>",
            "access_right": "open",
            "version": self.parcel.release.rpartition("/")[2],
            "notes": f"release-pipeline package {self.parcel.hash}",
            **self.metadata,
        }
        made = self.server.ask("make the deposition", "POST", _ALL, document={"metadata": described})
        if type(number := get(made, "id")) is not int:
            raise self.server.misread("make the deposition")
        self._number = str(number)

    def _look(self) -> Any:
        return self.server.ask("look at the deposition", "GET", f"{_ALL}/{self._number}")


def _read_file(listed: Any) -> Stored:
    size, known = get(listed, "filesize"), get(listed, "checksum")
    hashes = {"md5": known.removeprefix("md5:").lower()} if isinstance(known, str) and known else {}
    return Stored(size if type(size) is int else None, hashes)
