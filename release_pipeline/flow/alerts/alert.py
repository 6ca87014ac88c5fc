"""One thing that people are told: the document that a webhook gets, and the same as a mail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from release_pipeline.policy.documents import Moment

Kind: TypeAlias = Literal["failed", "blocked", "waiting", "late", "cap", "returned", "remarked", "decided"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What a webhook is sent: one thing that happened at a site, in facts that everybody at the site may know."""

    FORMAT: ClassVar[str] = "release-pipeline/alert/1"

    id: Annotated[str, "of the thing that happened: what is sent once more, since nobody knew whether it had come, has the same"]
    kind: Annotated[
        Kind,
        "failed: a run broke off; waiting: for reviewers, or for its publication; cap: nearly spent; decided: all votes are in",
    ]
    site: Annotated[str, "the name of the site's folder"]
    moment: Annotated[Moment, "when it happened; of a cap, when it was seen"]
    title: Annotated[str, "it in a few words"]
    words: Annotated[str, "it in a sentence; why checks, gates and guards refused a release only `release-pipeline status` says"]
    remedy: Annotated[str, "what somebody may do about it"]
    release: Annotated[
        str | None, "POLICY/PARTITION/rN; POLICY/PARTITION of one that is late; null for a cap, and for remarks on a policy"
    ] = None
    policy: Annotated[str | None, "the name of its policy; null for a cap"] = None
    population: Annotated[str | None, "of a cap, whose; null for all else"] = None
    reason_code: Annotated[
        str | None, "of a block, the code of its reason, as in `status`, where no record has a part in it; null otherwise"
    ] = None
    waits_for: Annotated[Literal["review", "publication"] | None, "of what is waiting; null for all else"] = None
    share: Annotated[int | None, "of a cap, the share in percent that site.yaml asked about; null for all else"] = None
    page: Annotated[str | None, "where the desk shows it, to who may see that there; null where site.yaml says no address"] = None

    @property
    def path(self) -> str:
        """The page of a desk that it is about."""
        if self.release is not None:
            return f"/releases/{self.release}"
        return "/caps" if self.policy is None else f"/policies/{self.policy}"

    @property
    def text(self) -> str:
        """It as a mail."""
        page = () if self.page is None else (f"At the desk: {self.page}",)
        lines = (self.title, "", self.words, self.remedy, *page, "", f"Site {self.site}, {self.moment}.", f"Id: {self.id}")
        return "\n".join(lines) + "\n"


def read_alert(document: Mapping[str, Any]) -> Alert:
    """An alert that was kept, by this version or another one: keys that this one does not know are left out."""
    known = {field.name for field in dataclasses.fields(Alert)}
    return Alert(**{name: value for name, value in document.items() if name in known})
