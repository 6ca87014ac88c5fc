"""A record of the check of an output, by the five safes and in the manner of SATRE's output management: what was asked for, who
looked, by which rules, with which questions, what they decided. Who did what is read from the events of the registry."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.figures import count_of, format_moment
from release_pipeline.report.papers.common import (
    state_claim,
    state_gates,
    state_hashes,
    state_looks,
    state_publication,
    state_recipients,
    state_rows,
)
from release_pipeline.report.papers.statements import Paper, Section, Statement, make_item, make_paper, quote, state_fact
from release_pipeline.report.papers.view import Fields, PaperView, SignedView
from release_pipeline.sentences import PAPERS

NAME = "output-check"
APPROVED = "approved"


def write_output_check(view: PaperView) -> Paper:
    """The paper, of the site."""
    fields, titles = Fields(view), PAPERS.read_section("check.item")
    before = (
        make_item("projects", titles, quote(fields, "purpose"), quote(fields, "lawful_basis")),
        make_item("people", titles, state_fact("check.steward", steward=fields("public.steward")), state_eyes(fields)),
        make_item("settings", titles, quote(fields, "environment"), quote(fields, "controls"), state_recipients(fields)),
        make_item("data", titles, state_rows(fields), state_claim(fields), state_looks(fields)),
    )
    outputs = (
        make_item("output", titles, state_hashes(fields)),
        make_item("rules", titles, state_policy(fields), state_checks(fields), state_gates(fields)),
        make_item("questions", titles, state_questions(fields)),
        make_item("answers", titles, state_approvals(fields), state_answers(fields)),
        make_item("decision", titles, state_holding(fields), quote(fields, "decision"), state_publication(fields)),
        make_item("published", titles, state_publisher(fields)),
    )
    sections = (Section(PAPERS("check.before"), before), Section(PAPERS("check.outputs"), outputs))
    titles = PAPERS("check.title"), PAPERS("check.standard"), PAPERS("check.limits")
    return make_paper(view, NAME, sections, *titles)


def state_eyes(fields: Fields) -> Statement:
    """How many reviewers the policy asks for."""
    needed = fields("checked.needed")
    count = fields("checked.needed", count_of(needed.value or 0, "reviewer"))
    if needed.value is not None and needed.value > 1:
        return state_fact("check.needed", count=count)
    return state_fact("check.needed_one", count=count)


def state_policy(fields: Fields) -> Iterator[Statement]:
    """Who approved the rules before anything was charged."""
    for name in ("policy", "caps"):
        found: SignedView | None = fields(f"checked.{name}").value
        bound = fields(f"checked.{name}")
        if found is None and name == "policy":
            yield state_fact("check.no_policy", bound)
        elif found is None:
            yield state_fact("check.no_caps", bound)
        else:
            at = f"checked.{name}"
            person, event = fields(f"{at}.name"), fields(f"{at}.event")
            moment, key = fields(f"{at}.moment", format_moment(found.moment)), fields(f"{at}.key")
            if name == "policy":
                digest = fields("public.policy_hash")
                yield state_fact("check.policy", name=person, event=event, moment=moment, key=key, hash=digest)
            else:
                yield state_fact("check.caps", name=person, event=event, moment=moment, key=key)


def state_checks(fields: Fields) -> Iterator[Statement]:
    """How many checks of the data passed, by family."""
    checks = fields("checked.checks")
    if not checks:
        yield state_fact("check.no_checks", checks)
    for at, (_, count) in fields.each("checked.checks"):
        yield state_fact("check.family", family=fields(f"{at}.0"), count=fields(f"{at}.1", count_of(count, "check")))
    for at, _ in fields.each("internal.warnings"):
        yield state_fact("check.warning", words=fields(at))


def state_questions(fields: Fields) -> Iterator[Statement]:
    """What the reviewers were asked, word for word, with the figures that it hangs on."""
    asked = fields("internal.decide")
    if not asked:
        yield state_fact("check.no_questions", asked)
    for at, _ in fields.each("internal.decide"):
        yield state_fact("check.question", words=fields(at))


def state_approvals(fields: Fields) -> Iterator[Statement]:
    """What each reviewer signed, and about which candidate."""
    voted, decisions = fields("checked.voted"), fields("checked.decisions")
    if voted.value == 0:
        yield state_fact("check.no_decisions", voted)
        return
    if voted.value is not None:
        yield state_fact("check.blind", count=fields("checked.voted", count_of(voted.value, "reviewer")))
        return
    if not decisions:
        yield state_fact("check.no_decisions", decisions)
    for at, decision in fields.each("checked.decisions"):
        signed = f"{at}.signed"
        name, event, key = fields(f"{signed}.name"), fields(f"{signed}.event"), fields(f"{signed}.key")
        moment = fields(f"{signed}.moment", format_moment(decision.signed.moment))
        verdict, candidate, why = fields(f"{at}.verdict"), fields(f"{at}.candidate"), fields(f"{signed}.why")
        if why.value is None:
            yield state_fact(
                "check.decided", why, name=name, verdict=verdict, candidate=candidate, event=event, moment=moment, key=key
            )
        else:
            yield state_fact(
                "check.decided_why", name=name, verdict=verdict, candidate=candidate, event=event, moment=moment, key=key, why=why
            )


def state_answers(fields: Fields) -> Iterator[Statement]:
    """That one signature is about all that was asked, where signatures are told."""
    if fields("checked.voted").value is None:
        yield state_fact("check.one_answer", fields("checked.decisions"))


def state_holding(fields: Fields) -> Iterator[Statement]:
    """Who approved the candidate as it is, with signatures that hold; and whether these are enough."""
    holding, needed, voted = fields("checked.holding"), fields("checked.needed"), fields("checked.voted")
    if voted.value is not None:
        yield state_fact("check.not_in", count=fields("checked.voted", count_of(voted.value, "reviewer")), needed=needed)
        return
    given = len(holding.value or ())
    if not given:
        yield state_fact("check.none_hold", holding)
        return
    for at, _ in fields.each("checked.holding"):
        yield state_fact("check.holds", name=fields(at))
    if given >= (needed.value or 0):
        yield state_fact("check.enough", holding, needed=needed)
    else:
        yield state_fact("check.not_enough", holding, needed=needed)


def state_publisher(fields: Fields) -> Statement:
    """Who published it, and when."""
    found = fields("checked.published")
    if found.value is None:
        return state_fact("check.not_published", found)
    at = "checked.published"
    name, event, key = fields(f"{at}.name"), fields(f"{at}.event"), fields(f"{at}.key")
    moment = fields(f"{at}.moment", format_moment(found.value.moment))
    return state_fact("check.published", name=name, event=event, moment=moment, key=key)
