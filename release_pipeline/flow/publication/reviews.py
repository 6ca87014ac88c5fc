"""What people signed of a release while it was reviewed, for its dossier: votes, returns and remarks, as data and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from release_pipeline import verify
from release_pipeline.report.escaping import escape_markdown
from release_pipeline.store.registry import Event, ReleaseId

_DEEDS = {"approved": "approved it", "returned": "returned it", "rejected": "rejected it", "remarked": "remarked"}


def review_to_json(events: Sequence[Event], release: ReleaseId) -> dict[str, Any]:
    """Each event of the review as it stands in the chain: `verify.py` compares them one by one, and checks what is signed."""
    listed = [
        {"event": event.number, "kind": event.kind, "noted": event.noted, **_find_signed(event)}
        for event in _list_reviews(events, release)
    ]
    return {"format": verify.REVIEW_FORMAT, "release": str(release), "events": listed}


def _find_signed(event: Event) -> dict[str, Any]:
    document = {"document": event.content["document"]} if event.kind == "remarked" else {}
    return {"signed": event.content["signed"], **document}


def _list_reviews(events: Sequence[Event], release: ReleaseId) -> list[Event]:
    """The votes on a release, and the remarks on it and on its policy, in order."""
    return [event for event in events if verify.is_review(event.kind, str(event.release or ""), event.content, str(release))]


def describe_reviews(events: Sequence[Event], release: ReleaseId) -> str:
    """The same as a page in Markdown."""
    return "\n".join([f"# Review of {release}", "", *_describe(_list_reviews(events, release))]) + "\n"


def _describe(events: Sequence[Event]) -> Iterator[str]:
    if not events:
        yield "Nobody voted or remarked."
    for event in events:
        said = event.content["signed"]["statement"]
        about = f"candidate {said['hash'][:12]}"
        if event.kind == "remarked":
            document = event.content["document"]
            what = "candidate" if event.release is not None else f"policy {document['subject']}"
            about = f"on {what} {document['hash'][:12]}"
        yield f"## Event {event.number}, {event.noted}: {said['name']} {_DEEDS[event.kind]}, {about}"
        yield ""
        yield f"Signed {said['at']} with the key {said['signer'][:16]}."
        yield ""
        if said["why"]:
            yield from ("Reason: " + escape_markdown(said["why"]), "")
        for entry in event.content["document"]["remarks"] if event.kind == "remarked" else ():
            yield f"- {escape_markdown(entry['passage']) or 'the whole'}:"
            yield from (f"  {escape_markdown(line)}  " for line in entry["text"].split("\n"))
            yield ""
