"""How a release came to be, for the crate: the steps in order, each with what it was about and the role of who did it, in the
terms of schema.org and of PROV-O. It has what every release must have been through to be published, and what the card tells: of
people the steward's name alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from release_pipeline.report.view import PublicView
from release_pipeline.sentences import PUBLIC

PROV = {"prov": "http://www.w3.org/ns/prov#"}
ACTIVITY, STEPS = "prov:Activity", ("#policy-approval", "#making", "#review", "#publication")  # in order


def tell_chain(view: PublicView) -> list[dict[str, Any]]:
    """The steps but the making, the things that they are about, and the people by their roles."""
    return [
        {
            "@id": "#policy-approval",
            "@type": ["AcceptAction", ACTIVITY],
            "name": PUBLIC("chain.policy_approval"),
            "description": PUBLIC("chain.policy_approved"),
            **tell_activity("#policy-approval", agent="#officer", objects=["#policy"]),
        },
        {
            "@id": "#review",
            "@type": ["AcceptAction", ACTIVITY],
            "name": PUBLIC("chain.review"),
            "description": PUBLIC("chain.reviewed"),
            **tell_activity("#review", agent="#reviewers", objects=["#candidate"]),
        },
        {
            "@id": "#publication",
            "@type": ["CreateAction", ACTIVITY],
            "name": PUBLIC("chain.publication"),
            "description": PUBLIC("chain.published"),
            "endTime": view.published,
            "instrument": {"@id": "#program"},
            **tell_activity("#publication", agent="#signer", objects=["#candidate"], results=["./"]),
        },
        _make_thing("#policy", PUBLIC("chain.policy", policy=view.policy), view.policy_hash),
        _make_thing("#candidate", PUBLIC("chain.candidate", release=view.release), view.candidate_hash),
        {"@id": "#officer", "@type": ["Person", "prov:Agent"], "name": PUBLIC("chain.officer")},
        {"@id": "#reviewers", "@type": "prov:Agent", "name": PUBLIC("chain.reviewers")},
        {"@id": "#signer", "@type": "prov:Agent", "name": PUBLIC("chain.signer")},
    ]


def tell_activity(step: str, *, agent: str, objects: Sequence[str], results: Sequence[str] = ()) -> dict[str, Any]:
    """Who did a step, with what, and what came of it, in the terms of both; and which step was before it."""
    before = STEPS[: STEPS.index(step)]
    used, made = _refer(objects), _refer(results)
    return {
        "agent": {"@id": agent},
        "prov:wasAssociatedWith": {"@id": agent},
        "object": used,
        "prov:used": used,
        **({"result": made, "prov:generated": made} if results else {}),
        **({"prov:wasInformedBy": {"@id": before[-1]}} if before else {}),
    }


def _refer(names: Sequence[str]) -> Any:
    """One as itself, as RO-Crate wants it."""
    refers = [{"@id": name} for name in names]
    return refers[0] if len(refers) == 1 else refers


def _make_thing(name: str, words: str, digest: str) -> dict[str, Any]:
    return {"@id": name, "@type": ["CreativeWork", "prov:Entity"], "name": words, "identifier": f"sha256:{digest}"}
