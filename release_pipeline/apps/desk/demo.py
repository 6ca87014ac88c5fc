"""The desk of the demo: what there is to play, who plays, and the demo's service, which publishes what has all its votes.

Only a folder that the demo made is touched. Everything here stands for what people and services of a real site do by themselves.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

from release_pipeline.apps.desk.backend.people import make_token, read_people, withdraw_tokens
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.ledger.states import list_statuses
from release_pipeline.operate.demo import LICENSED_POLICY, find_demo_policy, is_demo
from release_pipeline.policy.loading.load import read_text
from release_pipeline.publish.publish import list_publishable, publish, read_service_key
from release_pipeline.store.files import PUBLIC, write_text
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import SECTION, Site

POLICY = "election-desk"
_EVERY_SECONDS = 3.0
_LASTS_DAYS = 7
_PEOPLE = """
# Who comes to the demo's desk beside the people with keys.
desk: {people: {vic: [auditor], ana: [operator]}}
"""
_FIRST = {  # what the story of docs/desk.md begins with; each one's first page says what waits now
    "olga": f"the policy {POLICY} waits for your approval: look at it, and sign",
    "ana": f"your policy {POLICY}: read its plan; once olga approved it, `release-pipeline run {POLICY}` makes its release",
    "ben": "a release waits for your vote: read its report, write a remark, decide",
    "cleo": "the same release waits for your vote; how others voted is shown after all votes",
    "vic": "a release is published: its chain from source to package; verify it",
}


@dataclass(frozen=True, slots=True)
class Player:
    """Somebody of the demo: who they are, what they can do first, and the token that lets them in."""

    name: str
    roles: tuple[str, ...]
    first: str
    token: str


def check_demo(site: Site) -> None:
    """Refuse a folder that the demo did not make."""
    if not is_demo(site.home) or not site.has_registry:
        raise WrongUsage(
            "this is not a folder that the demo made.",
            where=str(site.home),
            remedy="Run `make demo` or `release-pipeline demo` first, and name its folder: --home demo.",
        )


def prepare_demo_desk(site: Site) -> list[Player]:
    """The demo's site has people at its desk and something for each of them to do; what is there already is left as it is. Gives
    the players with fresh tokens; their earlier ones let nobody in any more."""
    check_demo(site)
    _add_once(site, "site.yaml", f"{SECTION}:", _PEOPLE)
    _add_policy(site)
    people = read_people(site)
    players: list[Player] = []
    for name, first in _FIRST.items():
        if name in people:
            withdraw_tokens(site, name)
            roles = tuple(sorted(role.value for role in people[name].roles))
            players.append(Player(name, roles, first, make_token(site, name, days=_LASTS_DAYS)))
    return players


def _add_policy(site: Site) -> None:
    """A policy that nobody approved, about people who have budget left for it."""
    file = site.home / "policies" / f"{POLICY}.yaml"
    if not file.exists():
        text = read_text(find_demo_policy(LICENSED_POLICY))
        write_text(file, text.replace(f"policy: {LICENSED_POLICY}\n", f"policy: {POLICY}\n", 1), mode=PUBLIC)


def _add_once(site: Site, name: str, mark: str, text: str) -> bool:
    """The text at the end of a file of the site, unless a line of it begins with the mark."""
    file = site.home / name
    before = read_text(file)
    if any(line.startswith(mark) for line in before.splitlines()):
        return False
    write_text(file, before.rstrip("\n") + "\n" + text, mode=PUBLIC)
    return True


@contextlib.contextmanager
def publishing(site: Site, tell: Callable[[str, ReleaseId | None], None]) -> Generator[None]:
    """Meanwhile the demo's service publishes what has all its votes, in a thread, by the protocol of every publication. `tell` is
    told what was published, and once what went wrong."""
    ended = threading.Event()
    thread = threading.Thread(target=_publish_until, args=(site, ended, tell), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)


def _publish_until(site: Site, ended: threading.Event, tell: Callable[[str, ReleaseId | None], None]) -> None:
    told: set[str] = set()
    seen: object = None
    while not ended.wait(_EVERY_SECONDS):
        stamp = site.registry_file.stat().st_mtime_ns
        if stamp == seen:
            continue
        try:
            for release in list_approved(site):
                folder = publish(site, release, key=read_service_key(site))
                tell(f"the demo's service published {release}: {folder}", release)
            seen = stamp
        except ReleasePipelineError as error:
            if error.in_full not in told:
                told.add(error.in_full)
                tell(f"the demo's service could not publish: {error.in_full}", None)


def list_approved(site: Site) -> list[ReleaseId]:
    """What may be published now."""
    policies = sorted(
        {known.policy for known, status in list_statuses(site).items() if status.state in ("approved", "publishing")}
    )
    return [release for policy in policies for release in list_publishable(site, policy)[0]]
