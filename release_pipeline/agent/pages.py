"""What the person sees: pages without scripts, made of what this machine computed, the words of desk and site marked as such."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from release_pipeline.agent.desk import APPROVE, REMARK, Desk
from release_pipeline.agent.markup import Markup, join, tag
from release_pipeline.agent.reviews import REFUSED, TAKEN, Review
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.sentences import AGENT
from release_pipeline.sign import CANDIDATE, MOST_LINES, OURS, Signer, write_whole
from release_pipeline.verify import hash_remarks, message_of, name_ssh_key

_VERDICTS = {
    "approve": lambda: AGENT("verdict.approve"),
    "return": lambda: AGENT("verdict.return"),
    "reject": lambda: AGENT("verdict.reject"),
    "remarks": lambda: AGENT("verdict.remarks"),
}
_MEANINGS = {
    ("approve", "candidate"): lambda: AGENT("mean.approve.candidate"),
    ("approve", "policy"): lambda: AGENT("mean.approve.policy"),
    ("approve", "populations"): lambda: AGENT("mean.approve.populations"),
    ("return", "candidate"): lambda: AGENT("mean.return.candidate"),
    ("reject", "candidate"): lambda: AGENT("mean.reject.candidate"),
    ("remarks", "candidate"): lambda: AGENT("mean.remarks.candidate"),
    ("remarks", "policy"): lambda: AGENT("mean.remarks.policy"),
}


@cache
def read_style() -> Markup:
    """The style of every page, which stands in each: a page needs nothing but itself."""
    return Markup(Path(__file__).with_name("style.css").read_text(encoding="utf-8"))


@cache
def hash_style() -> str:
    """Its hash, as a policy of content names it."""
    return base64.b64encode(hashlib.sha256(read_style().encode()).digest()).decode()


def build_start(desks: Sequence[Desk], signers: Sequence[Signer], address: str) -> str:
    """What the agent says of itself while nothing is to be signed."""
    title = AGENT("start.title")
    keys = (tag("li", tag("code", f"{name_ssh_key(one.public)}"), " ", tag("code", one.fingerprint)) for one in signers)
    return _build_page(
        title,
        address,
        tag("h1", title),
        tag("p", AGENT("start.waits")),
        tag("h2", AGENT("start.desks")),
        tag("ul", *(tag("li", tag("code", desk.origin.text)) for desk in desks)),
        tag("h2", AGENT("start.keys")),
        tag("ul", *keys),
        tag("p", AGENT("start.ends")),
    )


def build_error(title: str, what: str, address: str, *, remedy: str = "", words: str = "", back: str = "") -> str:
    """A page that says what is wrong and what to do. `words` are the desk's, `back` leads to it."""
    return _build_page(
        title,
        address,
        tag("h1", title),
        tag("p", what, class_="panel bad", role="alert"),
        tag("p", remedy) if remedy else "",
        _quote([words], AGENT("frame.mark")) if words else "",
        tag("p", tag("a", AGENT("done.back"), href=back, rel="noreferrer")) if back else "",
    )


def build_failure(title: str, error: ReleasePipelineError, address: str, *, words: str = "", back: str = "") -> str:
    """The same for an error of ours."""
    what = f"{error.where}: {error.what}" if error.where else error.what
    return build_error(title, what, address, remedy=error.remedy, words=words, back=back)


def build_review(review: Review, address: str, verdict: str, *, trouble: str = "", why: str | None = None) -> str:
    """What somebody must see before they sign `verdict`, and the form with which they do. `trouble` is why nothing was signed
    yet, `why` what they had written."""
    ticket, name = review.ticket, _VERDICTS[verdict]()
    subject = _describe_subject(review)
    asked = AGENT("review.asked", desk=review.desk.origin.text, person=ticket.person)
    parts = [
        tag("h1", tag("span", name, class_=f"verdict {verdict}"), " ", subject),
        _build_form(review, verdict) if review.hindrance else "",
        tag("p", asked),
        _tell_wish(review, verdict),
        _choose_verdict(review, verdict),
        _section(AGENT("review.meaning"), tag("p", _MEANINGS[verdict, review.bundle.what](), class_="panel")),
        _describe_signing(review),
        _section(AGENT("review.changes"), *_list_changes(review.changes)),
        _describe_content(review),
        _describe_report(review),
        _list_remarks(review),
        _describe_words(review),
        "" if review.hindrance else _build_form(review, verdict, trouble=trouble, why=why),
    ]
    return _build_page(f"{name}: {subject}", address, *parts, skip=True)


def build_outcome(review: Review, address: str, *, ended: bool = False) -> str:
    """What became of a review that is no longer open."""
    back = tag("p", tag("a", AGENT("done.back"), href=review.desk.origin.text + review.ticket.back, rel="noreferrer"))
    if review.state == REFUSED:
        title = AGENT("done.refused")
        return _build_page(title, address, tag("h1", title), tag("p", AGENT("done.refused_is"), class_="panel"), back)
    taken = review.state == TAKEN
    title = AGENT("done.taken") if taken else AGENT("done.not_taken")
    first = review.signed[0]["statement"]
    verdict = first["kind"] if first["kind"] in _VERDICTS else APPROVE
    what = _describe_subject(review)
    is_remarks = verdict == REMARK
    said = AGENT("done.said_remarks", what=what) if is_remarks else AGENT("done.said", verdict=_VERDICTS[verdict](), what=what)
    return _build_page(
        title,
        address,
        tag("h1", title),
        tag("p", said, class_=f"panel {'fine' if taken else 'bad'}", role="status"),
        tag("p", AGENT("done.reason", why=first["why"])) if first["why"] else "",
        tag("p", _MEANINGS[verdict, review.bundle.what]()),
        tag("p", AGENT("done.look")) if taken else _tell_trouble(review),
        _section(
            AGENT("done.answer"),
            _quote([review.answer], AGENT("frame.mark")) if review.answer else tag("p", AGENT("done.no_answer")),
        ),
        _list_signed(review),
        back,
        tag("p", AGENT("done.ends")) if ended else "",
    )


def _tell_trouble(review: Review) -> Markup:
    button = tag("button", AGENT("done.again"), name="do", value="again", class_="go")
    return join(
        tag("p", review.trouble, class_="panel bad", role="alert"),
        tag("p", AGENT("done.trouble")),
        _form(review, button),
    )


def _list_signed(review: Review) -> Markup:
    parts: list[Markup] = []
    for one in review.signed:
        text = message_of(one["statement"]).decode().rstrip("\n")
        parts += [tag("h3", AGENT("done.text")), tag("pre", text)]
        parts += [tag("h3", AGENT("done.signature")), tag("pre", _join_lines(one["sshsig"].rstrip("\n").split("\n")))]
    return _section(AGENT("done.statement"), *parts)


def _describe_subject(review: Review) -> str:
    if review.bundle.what == CANDIDATE:
        return AGENT("what.candidate", subject=review.bundle.subject)
    if review.bundle.what == "policy":
        return AGENT("what.policy", subject=review.bundle.subject)
    return AGENT("what.populations")


def _tell_wish(review: Review, verdict: str) -> Markup | str:
    wish = review.ticket.verdict
    if wish == verdict:
        return ""
    name = _VERDICTS[wish]()
    known = wish in review.verdicts
    words = AGENT("review.other_wish", verdict=name) if known else AGENT("review.unknown_wish", verdict=name)
    return tag("p", words, class_="panel bad")


def _choose_verdict(review: Review, verdict: str) -> Markup | str:
    if len(review.verdicts) == 1 or review.hindrance:
        return ""
    links = (
        tag("li", tag("a", _VERDICTS[one](), href=f"/review/{review.name}?verdict={one}", aria_current=one == verdict and "true"))
        for one in review.verdicts
    )
    return tag("nav", tag("ul", *links), aria_label=AGENT("review.choose"))


def _describe_signing(review: Review) -> Markup:
    rows: list[tuple[str, str]] = []
    signer = review.signer
    if review.key is not None and signer is not None:
        rows.append((AGENT("review.who"), AGENT("review.who_is", name=review.key.name, role=review.key.role)))
        rows.append((AGENT("review.key"), tag("code", signer.fingerprint)))
    words = tag("ol", *(tag("li", word) for word in review.words), class_="words")
    rows.append((AGENT("review.words"), join(words, tag("p", AGENT("review.words_for"), class_="hint"))))
    rows.append((AGENT("review.hash"), tag("code", review.digest)))
    listed = (part for row in rows for part in (tag("dt", row[0]), tag("dd", row[1])))
    return _section(AGENT("review.signs"), tag("dl", *listed))


def _list_changes(lines: Sequence[str]) -> Iterable[Markup]:
    """Each heading that `sign` makes with the changes that stand below it."""
    below: list[str] = []
    for line in [*lines, ""]:
        if line.startswith(OURS):
            below.append(line.removeprefix(OURS))
            continue
        if below:
            yield tag("ul", *(tag("li", tag("code", change)) for change in below), class_="changes")
            below = []
        if line:
            yield tag("p", line)


def _describe_content(review: Review) -> Markup:
    bundle = review.bundle
    if bundle.what != CANDIDATE:
        lines = write_whole(bundle).split("\n")
        return _section(
            AGENT("review.whole"),
            tag("p", AGENT("review.whole_of_policy")),
            _scroll(AGENT("review.whole"), tag("pre", _join_lines(lines))),
        )
    rows = (tag("tr", tag("td", name), tag("td", tag("code", digest))) for name, digest in sorted(bundle.files.items()))
    head = tag("tr", tag("th", AGENT("review.file"), scope="col"), tag("th", AGENT("review.hash"), scope="col"))
    return _section(
        AGENT("review.files"),
        tag("p", AGENT("review.files_are", count=len(bundle.files))),
        _scroll(AGENT("review.files"), tag("table", tag("thead", head), tag("tbody", *rows))),
    )


def _describe_report(review: Review) -> Markup | str:
    if review.bundle.what != CANDIDATE:
        return ""
    place = f"/review/{review.name}/report"
    alone = tag("a", AGENT("review.report_alone"), href=place)
    frame = tag("iframe", src=place, title=AGENT("review.report"), sandbox=True)
    return _section(AGENT("review.report"), tag("p", AGENT("review.report_is"), " ", alone), frame)


def _list_remarks(review: Review) -> Markup | str:
    """Every remark that is signed with the verdict, whole, line by line."""
    remarks = review.bundle.remarks
    if remarks is None:
        return ""
    listed = (
        tag("li", tag("strong", passage or AGENT("remarks.whole")), tag("pre", _join_lines(text.split("\n"))))
        for passage, text in remarks.entries
    )
    count = len(remarks.entries)
    said = AGENT("remarks.one") if count == 1 else AGENT("remarks.are", count=count)
    return _section(
        AGENT("remarks.title"),
        tag("p", said, class_="panel"),
        tag("ol", *listed),
        tag("p", AGENT("remarks.hash"), " ", tag("code", hash_remarks(remarks.document))),
    )


def _describe_words(review: Review) -> Markup:
    parts: list[Markup] = []
    for name, text in review.bundle.words.items():
        lines = text.rstrip("\n").split("\n")
        parts += [tag("h3", name), _quote(lines[:MOST_LINES], AGENT("frame.mark_site"))]
        if len(lines) > MOST_LINES:
            parts.append(tag("p", AGENT("review.site_cut", count=len(lines) - MOST_LINES)))
    said = [tag("p", AGENT("review.site_is")), *parts] if parts else [tag("p", AGENT("review.site_nothing"))]
    return _section(AGENT("review.site"), *said)


def _build_form(review: Review, verdict: str, *, trouble: str = "", why: str | None = None) -> Markup:
    """Where to sign, or why nobody can. `trouble` stands at the field that has the focus then: nobody must scroll."""
    if review.hindrance:
        return _section(AGENT("review.look"), tag("p", review.hindrance, class_="panel bad"), id="sign")
    wished = verdict == review.ticket.verdict
    given = why if why is not None else review.ticket.why if wished else ""
    needed = verdict not in (APPROVE, REMARK)
    from_desk = wished and bool(review.ticket.why) and given == review.ticket.why
    label = AGENT("sign.why_needed") if needed else AGENT("sign.why")
    reason: tuple[str, ...] = (
        tag("label", label, for_="why"),
        tag("p", AGENT("sign.why_from_desk"), class_="theirs", id="why-from") if from_desk else "",
        tag(
            "textarea",
            given,
            id="why",
            name="why",
            rows=str(2 + len(given) // 60),
            maxlength="500",
            required=needed,
            aria_describedby=from_desk and "why-from",
        ),
    )
    do = AGENT("sign.do_remarks") if verdict == REMARK else AGENT("sign.do", verdict=_VERDICTS[verdict]())
    return _section(
        AGENT("sign.title"),
        tag("p", AGENT("review.key_asked"), class_="panel") if review.signer is not None else "",
        _form(
            review,
            tag("input", type="hidden", name="verdict", value=verdict),
            *(reason if verdict != REMARK else ()),
            tag("p", trouble, class_="panel bad", role="alert", id="trouble") if trouble else "",
            tag("label", AGENT("sign.type"), for_="typed"),
            tag("p", AGENT("sign.type_hint"), class_="hint", id="typed-hint"),
            tag(
                "input",
                id="typed",
                name="typed",
                autocomplete="off",
                autocapitalize="none",
                spellcheck="false",
                maxlength="40",
                required=True,
                aria_describedby="trouble typed-hint" if trouble else "typed-hint",
                autofocus=bool(trouble),
            ),
            tag("div", tag("button", do, name="do", value="sign", class_="go")),
        ),
        _form(
            review,
            tag("button", AGENT("sign.not"), name="do", value="refuse"),
            tag("p", AGENT("sign.not_means"), class_="hint"),
        ),
        id="sign",
    )


def _form(review: Review, *inside: str) -> Markup:
    token = tag("input", type="hidden", name="token", value=review.token)
    return tag("form", token, *inside, method="post", action=f"/review/{review.name}")


def _scroll(name: str, inside: Markup) -> Markup:
    """A part that scrolls by itself, which a keyboard must reach."""
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=name)


def _quote(lines: Sequence[str], whose: str) -> Markup:
    """Words of others, in a box that says whose they are: no line of them can leave it."""
    return tag("blockquote", tag("p", whose, class_="label"), tag("pre", _join_lines(lines)), class_="theirs")


def _join_lines(lines: Sequence[str]) -> Markup:
    return Markup("\n".join(join(line) for line in lines))


def _section(title: str, *inside: str, id: str = "") -> Markup:
    return tag("section", tag("h2", title), *inside, id=id or False, tabindex=bool(id) and "-1")


def _build_page(title: str, address: str, *inside: str, skip: bool = False) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", read_style()),
    )
    body = tag(
        "body",
        tag("a", AGENT("frame.skip"), href="#sign", class_="skip") if skip else "",
        tag("header", tag("span", AGENT("frame.product")), tag("code", address)),
        tag("main", *inside),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
