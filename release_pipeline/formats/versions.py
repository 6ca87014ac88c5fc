"""Versions of everything that is stored; a format from a later version is refused (docs/formats.md).

Every format is version 1. Nothing that is hashed, sealed or signed is ever rewritten in another form. Anyone who changes the
shape of something that 0.1.0 stored gives it a number here, and keeps reading version 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from release_pipeline.errors import ReleasePipelineError

Content: TypeAlias = Mapping[str, Any]
KEY = "format"  # where a document names its version, as a number or NAME/NUMBER; version 1 need not be named


class FormatNewer(ReleasePipelineError):
    """A stored document was written by a later version of this software than the one that reads it."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of stored document, and the version of its format."""

    name: str
    version: int = 1

    def check(self, version: int, *, where: str) -> None:
        """Refuse a document of a later version."""
        if version > self.version:
            raise FormatNewer(
                f"{self.name} here has the format {version}, and this version of release-pipeline knows it up to {self.version}.",
                where=where,
                remedy="Install the version that wrote it, or a later one. Nothing was read or written.",
            )

    def read(self, document: Content, *, where: str) -> Content:
        """Return the document; refused if this software does not know its version."""
        version = str(document.get(KEY, 1)).rpartition("/")[2]
        if not (version.isascii() and version.isdigit() and len(version) < 10):
            raise ReleasePipelineError(f"{self.name} here names no version that could be read.", where=where)
        self.check(int(version), where=where)
        return document


SITE = Format("the registry of the site")  # the first event of the kind `format` names its version
NOTE = Format("the note of a stage")  # with it the tables of the stage
EVIDENCE = Format("the evidence of a candidate")
RUN = Format("the last run of a release that read records")
AUDITED = Format("what the audit of claims found")
OUTBOX = Format("alerts that are not sent yet, and what was told")
