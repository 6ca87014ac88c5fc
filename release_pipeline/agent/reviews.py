"""What becomes of a ticket: its bundle is fetched and judged, a person looks and signs or does not, the desk takes the statement.

Reviews are in memory, their bundles in a folder for this account alone; both are gone when the agent ends.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from release_pipeline.agent.desk import APPROVE, MOST_WORDS, REMARK, TICKET, Desk, NotTaken, Ticket
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.fingerprint import spell
from release_pipeline.sign import (
    CANDIDATE,
    REPORT,
    Bundle,
    Signer,
    describe_changes,
    keep,
    make_plain,
    make_remarks,
    make_statement,
    read_bundle,
)
from release_pipeline.verify import VOTES, Fault, Key, Tree, WrongUsage, hash_remarks, message_of, open_tree

OPEN, SIGNED, TAKEN, REFUSED = "open", "signed", "taken", "refused"
MOST_REVIEWS = 8  # at the same time: the oldest makes room
TO_TYPE = 8  # characters of the hash, or this many of its words:
WORDS_TO_TYPE = 2


class BundleWrong(ReleasePipelineError):
    """A bundle is not what it must be, or not the one of the ticket: nothing can be signed."""


class NotSigned(ReleasePipelineError):
    """The person asked for something that is not signed."""


_TERMINAL = "Look at the terminal where the agent runs: ssh-keygen says there what was wrong."


@dataclass
class Review:
    """A bundle that somebody looks at. `signer` and `key` are those of the person whom the desk names, if this agent has them;
    `hindrance` says why nothing can be signed here. `token` is known to its own pages alone."""

    desk: Desk
    ticket: Ticket
    bundle: Bundle
    changes: tuple[str, ...]
    signer: Signer | None
    key: Key | None
    hindrance: str
    folder: Path
    kept: Tree
    capability: str = field(repr=False)  # the ticket, until it is used
    name: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    state: str = OPEN
    signed: tuple[dict[str, Any], ...] = ()
    answer: str = ""
    trouble: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What can be signed of it: remarks alone, where somebody wants that, or a verdict and the remarks with it."""
        if self.ticket.verdict == REMARK:
            return (REMARK,)
        return VOTES if self.bundle.what == CANDIDATE else (APPROVE,)

    @property
    def words(self) -> tuple[str, ...]:
        """The hash in words."""
        return spell(self.digest)

    @property
    def digest(self) -> str:
        """The hash that is signed: of the content, or of remarks where they are signed alone."""
        remarks = self.bundle.remarks
        return hash_remarks(remarks.document) if self.ticket.verdict == REMARK and remarks is not None else self.bundle.digest

    def read_report(self) -> bytes | None:
        """The reviewers' page of a candidate, the one whose hash is in the list that is signed, and in which `find_active`
        found nothing; None where there is none any more."""
        if self.bundle.what != CANDIDATE or self.state == REFUSED:
            return None
        page = self.kept.under(CANDIDATE)
        return page.read(REPORT) if page.digest(REPORT) == self.bundle.files[REPORT] else None

    def close(self) -> None:
        """Nothing of the bundle is on the disk any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Reviews:
    """The reviews of an agent, by their names, which nobody can guess."""

    def __init__(self, desks: Sequence[Desk], signers: Sequence[Signer]) -> None:
        self.desks = {desk.origin.text: desk for desk in desks}
        self.signers = tuple(signers)
        self._open = OrderedDict[str, Review]()
        self._folder = Path(tempfile.mkdtemp(prefix="release-pipeline-agent-"))
        self._lock, self._fetching, self._signing = threading.Lock(), threading.Lock(), threading.Lock()

    def __enter__(self) -> Reviews:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def find(self, name: str) -> Review | None:
        """The review of this name."""
        with self._lock:
            return self._open.get(name)

    def open(self, origin: str, ticket: str) -> Review:
        """Fetch what a ticket is for and judge it; `DeskError`, `BundleWrong` or `NotSigned` where nobody can look at it."""
        desk = self.desks.get(origin)
        if desk is None:
            raise NotSigned(
                "this is no desk that the agent was begun with: nothing was asked of it.",
                where=origin[:200],
                remedy="If you trust that desk, end the agent and begin it again with --desk and its address.",
            )
        if not TICKET.fullmatch(ticket):
            raise NotSigned("this is no ticket.", where=origin, remedy="Follow the desk's own link, and do not type it.")
        with self._fetching:
            said = desk.fetch_ticket(ticket)
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            try:
                review = self._judge(desk, said, ticket, folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        self._remember(review)
        return review

    def _remember(self, review: Review) -> None:
        with self._lock:
            self._open[review.name] = review
            over = self._open.popitem(last=False)[1] if len(self._open) > MOST_REVIEWS else None
        if over is not None:
            over.close()

    def _judge(self, desk: Desk, said: Ticket, ticket: str, folder: Path) -> Review:
        packed, content = folder / "bundle.zip", folder / "content"
        content.mkdir(mode=0o700)
        desk.fetch_bundle(ticket, packed)
        try:
            with open_tree(packed) as tree:
                kept, _ = keep(tree, content)
            packed.unlink()
            bundle = read_bundle(kept)
        except (Fault, WrongUsage) as fault:
            raise _refuse_bundle(desk, f"the bundle is wrong: {fault.what.removeprefix(f'{packed}: ').rstrip('.')}") from None
        if (bundle.what, bundle.subject) != (said.what, said.subject):
            raise _refuse_bundle(desk, f"the ticket is for {said.subject}, and the bundle is of {bundle.subject}")
        key = bundle.keys.get(said.person)
        signer = next((one for one in self.signers if key is not None and one.public == key.public), None)
        hindrance = _find_hindrance(bundle, said, key, signer)
        changes = tuple(describe_changes(bundle, signer or self.signers[0]))
        return Review(desk, said, bundle, changes, signer, key, hindrance, folder, kept, ticket)

    def sign(self, review: Review, verdict: str, why: str, typed: str) -> None:
        """The review is signed, and the desk was given what was signed; `NotSigned` where nothing was. Of two requests at the
        same time one signs."""
        with self._signing, review.lock:
            if review.state != OPEN:
                return
            if review.signer is None or review.hindrance:
                raise NotSigned(review.hindrance)
            if verdict not in review.verdicts:
                raise NotSigned("this verdict cannot be signed here.", remedy="Choose one that the page offers.")
            if not confirms(typed, review.digest):
                raise NotSigned(
                    "what you typed is neither the beginning of the hash nor its first two words: nothing was signed.",
                    remedy=f"Type the first {TO_TYPE} characters of the hash, or its first {WORDS_TO_TYPE} words.",
                )
            reason = " ".join(why.split())
            if verdict not in (APPROVE, REMARK) and not reason:
                raise NotSigned("this needs its reason: nothing was signed.", remedy="Write what is wrong, in a sentence.")
            try:
                statements = make_statements(review.bundle, review.signer, verdict, reason)
                review.signed = tuple({"statement": one, "sshsig": review.signer.sign(message_of(one))} for one in statements)
            except WrongUsage as error:
                raise NotSigned(f"nothing was signed: {error.what}.", remedy=_TERMINAL) from None
            review.state = SIGNED
            self._hand_in(review)

    def hand_in_again(self, review: Review) -> None:
        """The desk was given once more what was signed and did not arrive."""
        with review.lock:
            if review.state == SIGNED:
                self._hand_in(review)

    def refuse(self, review: Review) -> None:
        """Nothing is signed for this ticket, and nothing of it is on the disk; the desk is told nothing."""
        with review.lock:
            if review.state == OPEN:
                review.state = REFUSED
                review.capability = ""
                review.close()

    def _hand_in(self, review: Review) -> None:
        try:
            review.answer, review.trouble = review.desk.hand_in(review.capability, review.signed), ""
        except NotTaken as error:
            review.answer, review.trouble = error.words, str(error)
            return
        review.state, review.capability = TAKEN, ""


def make_statements(bundle: Bundle, signer: Signer, verdict: str, why: str) -> list[dict[str, str]]:
    """Everything that is signed for one verdict, remarks too, or for remarks alone; `WrongUsage` where it would count nowhere."""
    remarks = [] if bundle.remarks is None else [make_remarks(bundle, signer, bundle.remarks)]
    if verdict == REMARK:
        if not remarks:
            raise WrongUsage("there are no remarks in the bundle")
        return remarks
    return [make_statement(bundle, signer, verdict=verdict if bundle.what == CANDIDATE else "", why=why), *remarks]


def confirms(typed: str, digest: str) -> bool:
    """Whether somebody typed the beginning of this hash, or its first words."""
    given = re.split(r"[\s,.-]+", typed.strip().lower())
    return given == [digest[:TO_TYPE]] or tuple(given) == spell(digest)[:WORDS_TO_TYPE]


def _find_hindrance(bundle: Bundle, said: Ticket, key: Key | None, signer: Signer | None) -> str:
    """Why nobody can sign this here; empty where somebody can."""
    if key is None:
        return (
            f"The desk gave the ticket to {make_plain(said.person)}, who is in no list of keys of this bundle. You may look; the"
            " privacy officer has to trust your key before you can sign."
        )
    if signer is None:
        return (
            f"The desk gave the ticket to {key.name}, and the key of {key.name} ({key.fingerprint[:16]}...) is none that this"
            " agent was begun with. You may look. To sign, end the agent and begin it with --key and that key; if you are not"
            f" {key.name}, log in at the desk as yourself."
        )
    try:
        make_statements(bundle, signer, REMARK if said.verdict == REMARK else APPROVE, "")
    except WrongUsage as error:
        return f"You may look, and you cannot sign it: {error.what}."
    return ""


def _refuse_bundle(desk: Desk, what: str) -> BundleWrong:
    return BundleWrong(
        f"{what[:MOST_WORDS]}.",
        where=desk.origin.text,
        remedy="Nothing can be signed. Tell the desk's operator: a desk that works gives no such bundle.",
    )
