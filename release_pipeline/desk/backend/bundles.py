"""What a program on somebody's own machine asks, with a ticket in place of a session: what to look at, and what was signed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from release_pipeline.desk.backend.access import Ticket, Tickets
from release_pipeline.desk.backend.calls import Document, File
from release_pipeline.desk.backend.drafts import Drafts
from release_pipeline.door.refusal import Refused
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.reviewing.bundle import write_bundle
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.approvals import import_statement
from release_pipeline.policy.typed import Plain

FORMAT = "release-pipeline/ticket/1"
BUNDLE = "the bundle to sign"  # as people are told that somebody took it
MOST_STATEMENTS = 4
_FIELDS = {"kind", "subject", "hash", "signer", "name", "at", "why"}
TicketCall: TypeAlias = Callable[[Site, Tickets, Drafts, Mapping[str, str], str], "Document | File"]


def _tell_ticket(site: Site, tickets: Tickets, drafts: Drafts, arguments: Mapping[str, str], body: str) -> Document:
    del site, drafts, body
    ticket = tickets.find(arguments.get("ticket", ""))
    return {
        "format": FORMAT,
        "person": ticket.person,
        "what": ticket.what,
        "subject": ticket.subject,
        "wish": {"verdict": ticket.verdict, "why": ticket.why},
        "back": ticket.back,
    }


def _fetch_bundle(site: Site, tickets: Tickets, drafts: Drafts, arguments: Mapping[str, str], body: str) -> File:
    del drafts, body
    return make_bundle(site, tickets.find(arguments.get("ticket", "")))


def _take_statements(site: Site, tickets: Tickets, drafts: Drafts, arguments: Mapping[str, str], body: str) -> Document:
    secret = arguments.get("ticket", "")
    ticket = tickets.find(secret)
    words = note_statements(site, drafts, ticket.person, ticket.subject, read_statements(body), ticket.remarks)
    tickets.end(secret)
    return {"words": words}


TICKET_CALLS: Mapping[str, TicketCall] = {
    "ticket": _tell_ticket,
    "ticket-bundle": _fetch_bundle,
    "ticket-statements": _take_statements,
}


def make_bundle(site: Site, ticket: Ticket) -> File:
    """The bundle of what a ticket is for, as it is now: whoever signs computes what it is."""
    target = ticket.subject if ticket.what == "candidate" else f"policies/{ticket.subject}.yaml"
    what = "populations.yaml" if ticket.what == "populations" else target
    return pack(
        site, f"{ticket.subject.replace('/', '-')}.zip", lambda file: write_bundle(site, what, file, remarks=ticket.remarks)
    )


def pack(site: Site, name: str, write: Callable[[Path], object]) -> File:
    """A zip that `write` writes, to be saved under a name: in the vault, for what is in it is confidential, until it was sent."""
    _find_folder(site).mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=_find_folder(site)))
    try:
        write(folder / name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return File("application/zip", folder / name, name=name, temporary=True)


def read_statements(body: str) -> list[dict[str, Any]]:
    """The statements that were sent, each of the seven fields and its signature, and nothing else."""
    try:
        said: Plain = json.loads(body)
        parts = cast("list[dict[str, Any]]", said["statements"]) if isinstance(said, dict) else []
        right = 1 <= len(parts) <= MOST_STATEMENTS and all(
            set(part) == {"statement", "sshsig"}
            and isinstance(part["sshsig"], str)
            and set(part["statement"]) == _FIELDS
            and all(isinstance(value, str) and value.isprintable() for value in part["statement"].values())
            for part in parts
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        right, parts = False, []
    if not right:
        raise WrongUsage("these are no signed statements.", where="statements", remedy="Send what `sign` or the agent wrote.")
    return parts


def note_statements(
    site: Site, drafts: Drafts, person: str, subject: str, statements: list[dict[str, Any]], remarks: Mapping[str, Any] | None
) -> str:
    """What somebody signed is noted, as `review import` does it; in words what came of it. Only their own statements, of what
    they were asked about."""
    said = [part["statement"] for part in statements]
    if strange := [one for one in said if one["name"] != person or one["subject"] != subject]:
        who, what = strange[0]["name"][:63], strange[0]["subject"][:140]
        raise Refused(403, f"this is signed by {who}, of {what}; {person} was asked about {subject}.")
    done: list[str] = []
    for part in sorted(statements, key=lambda part: part["statement"]["kind"] != "remarks"):  # what is decided ends it, perhaps
        kind = part["statement"]["kind"]
        decision = import_statement(site, part, remarks if kind == "remarks" else None)
        done.append(_say_done(kind, decision.count, decision.needed, decision.new))
    if any(one["kind"] == "remarks" for one in said):  # else they are not signed yet
        drafts.forget(person, subject)
    return f"{subject}: {'; '.join(done)}."


def _say_done(kind: str, count: int, needed: int, new: bool) -> str:
    if kind == "remarks":
        return "remarks noted"
    if kind == "reject":
        return "rejected, for good"
    if kind == "return":
        return "returned to its steward"
    if not new:
        return "was approved by you before"
    return f"approved, {count} of {needed}" if kind == "approve" else "approved"


def clear_folder(site: Site) -> None:
    """Nothing waits to be sent."""
    shutil.rmtree(_find_folder(site), ignore_errors=True)


def _find_folder(site: Site) -> Path:
    return site.vault / "sent"
