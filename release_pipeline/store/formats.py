"""What is stored, in which version, and how what an earlier version wrote becomes what this one reads (docs/formats.md).

Nothing that is hashed, sealed or signed is ever written anew: it is checked as it stands, and migrated when it is read. What
names no version is of the first. Who changes the shape of something adds a migration here, with a test: that raises its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.text import list_columns

Content: TypeAlias = Mapping[str, Any]
Migration: TypeAlias = Callable[[Content], Content]
KEY = "format"  # where a document names its version, from the second on


class FormatNewer(ReleasePipelineError):
    """Something was written by a later version of this software than the one that is to read it."""


@dataclass(frozen=True, slots=True)
class Format:
    """Something that is stored. `migrations`: from the first version to the second, and so on; so there is one less than there
    are versions."""

    name: str
    migrations: tuple[Migration, ...] = ()

    @property
    def version(self) -> int:
        """The version that is written."""
        return 1 + len(self.migrations)

    def check(self, version: int, *, where: str) -> None:
        """Refuse what a later version wrote."""
        if version > self.version:
            raise FormatNewer(
                f"{self.name} here has the format {version}, and this version of release-pipeline knows it up to {self.version}.",
                where=where,
                remedy="Install the version that wrote it, or a later one. Nothing was read or written.",
            )

    def upgrade(self, content: Content, version: int, *, where: str) -> Content:
        """What was written in that version, as this one reads it."""
        self.check(version, where=where)
        for migration in self.migrations[version - 1 :]:
            content = migration(content)
        return content

    def read(self, document: Content, *, where: str) -> Content:
        """A document that names its own version (as a number, or NAME/NUMBER), as this one reads it."""
        version = str(document.get(KEY, 1)).rpartition("/")[2]
        if not (version.isascii() and version.isdigit() and len(version) < 10):
            raise ReleasePipelineError(f"{self.name} here names no version that could be read.", where=where)
        return self.upgrade(document, int(version), where=where)

    def mark(self, document: Content) -> dict[str, Any]:
        """A document as it is written: with its version, but for the first."""
        return {**document, **({} if self.version == 1 else {KEY: self.version})}


def _name_columns(event: Content) -> Content:
    """From 1 to 2: the event of a policy names its columns in their order, which the canonical form does not hold. Before, only
    the text of the file had it."""
    if event["kind"] != "policy":
        return event
    return {**event, "content": {**event["content"], "columns": list_columns(event["content"]["yaml"])}}


def _add_kinds(event: Content) -> Content:
    """From 2 to 3: events of kinds that no earlier version knows, about whose word counts and what a population carries, without
    which it would read the chain wrongly. Those that there were stay as they are."""
    return event


def _add_holds(event: Content) -> Content:
    """From 3 to 4: events that hold a series and let it go on (`held`, `resumed`), without which an earlier version would open
    and charge what is held."""
    return event


def _add_looks(event: Content) -> Content:
    """From 4 to 5: events of looks at confidential records (`looked`), which an earlier version would leave out of the card."""
    return event


def _add_deliveries(event: Content) -> Content:
    """From 5 to 6: events of packages that went to targets and came back (`delivering`, `delivered`, `recalled`), without which
    an earlier version would retract a release and leave its data where they were delivered."""
    return event


def _add_returns(event: Content) -> Content:
    """From 6 to 7: events of candidates that were returned with reasons, and of remarks (`returned`, `remarked`), without which
    an earlier version would publish what a reviewer returned."""
    return event


SITE = Format(
    "the registry of the site", (_name_columns, _add_kinds, _add_holds, _add_looks, _add_deliveries, _add_returns)
)  # an event is in that of the last `format` event
POLICY = Format("the canonical form of a policy")
NOTE = Format("the note of a stage")  # with it the tables of the stage
EVIDENCE = Format("the evidence of a candidate")
REFUSAL = Format("what stood behind a refusal")
RUN = Format("the last run of a release that read records")
AUDITED = Format("what the audit of claims found")
STATEMENT = Format("a signed statement", (lambda said: said,))  # the fields are the same; verify.py reads either signature
TRUSTED = Format("the list of trusted keys")
OFFICERS = Format("how officers followed each other")
REVOKED = Format("the list of revoked keys")
PROPOSAL = Format("a proposal of an officer or of recovery keys")
CAPS = Format("the caps as they were approved")
CARD = Format("the privacy card of a package")
DOSSIER = Format("a dossier")
HEAD = Format("the last event, as the vault knows it")
WITNESSED = Format("the last event, as somebody outside keeps it")
BACKUP = Format("a backup")
SECRET = Format("the secret of a release or a series")
OUTBOX = Format("alerts and lineage events that are not sent yet, and what was told")
DESK = Format("what the desk keeps")
SETTINGS = Format("site.yaml and populations.yaml")
ATTESTATION = Format("the statement about a package, and its signatures")
REMARKS = Format("remarks on a candidate or a policy")
FORMATS = (
    *(SITE, POLICY, NOTE, EVIDENCE, REFUSAL, AUDITED, STATEMENT, TRUSTED, OFFICERS, REVOKED, PROPOSAL, CAPS, CARD, DOSSIER),
    *(RUN, HEAD, WITNESSED, BACKUP, SECRET, OUTBOX, DESK, SETTINGS, ATTESTATION, REMARKS),
)
