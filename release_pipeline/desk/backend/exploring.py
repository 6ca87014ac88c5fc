"""Settings that a steward tries on what the policy believes of the data (`shape`), and the looks at data that are noted.

No exploration of confidential records is begun here: it would be a look, which is a command, and noted. What is tried here reads
no data, so that its page is none of the confidential ones.
"""

from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path

from release_pipeline.desk.backend.calls import EVERYBODY, Asked, Call, Document, File, allow
from release_pipeline.desk.backend.lookups import read_policies
from release_pipeline.desk.backend.reviewing import hash_blocks
from release_pipeline.desk.backend.runs import command_of, read_tail, run_command
from release_pipeline.desk.backend.stewarding import find_policy
from release_pipeline.desk.people import Role
from release_pipeline.door.refusal import Refused
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.exploring.looks import find_looks
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.catalogue import METHODS, find_method

SECONDS = 20.0
_MOST_KEPT = 40  # pages of a site
_KEY = re.compile(r"[0-9a-f]{32}")
_EPSILONS = re.compile(r"(?:[0-9]{1,6}(?:\.[0-9]{1,9})?(?: *, *(?=[0-9]))?){0,12}")
_SIZES = re.compile(r"(?:[0-9]{1,7}(?: *, *(?=[0-9]))?){0,12}")
_ROWS = re.compile(r"[0-9]{0,9}")
_busy = threading.Lock()


def _show_exploration(asked: Asked) -> Document:
    name = find_policy(asked)
    policy = _read(asked.site, name)
    with asked.site.open_registry(read_only=True) as registry:
        looks = find_looks(registry.events, name)
    key = asked.arguments.get("key", "")
    return {
        "name": name,
        "why_not": _may_explore(asked, policy),
        "methods": _list_methods(policy),
        "epsilons": "" if policy is None else _say_epsilons(policy),
        "sizes": "" if policy is None else str(policy.protect.k or ""),
        "rows": "" if policy is None or policy.shape is None else str(policy.shape.rows),
        "looks": [{"by": look.by, "noted": look.noted, "words": look.words} for look in looks],
        "command": f"release-pipeline explore policies/{name}.yaml --shape -o {name}.html",
        "look_command": f"release-pipeline explore policies/{name}.yaml --on source",
        "key": key if _KEY.fullmatch(key) and _page_of(asked.site, name, key).exists() else "",
    }


def _read(site: Site, name: str) -> Policy | None:
    return next((one.policy for one in read_policies(site) if one.name == name), None)


def _may_explore(asked: Asked, policy: Policy | None) -> str:
    """Empty where who asks may try settings of the policy here; else why not."""
    if policy is None:
        return "The policy has faults. Mend them first."
    if not asked.has(Role.STEWARD) or policy.steward != asked.person.name:
        return f"{policy.steward}, its steward, tries settings here."
    if policy.shape is None:
        return (
            "The policy has no shape: nothing says what the data may look like. Add one, like "
            "shape: {rows: 20000, columns: {income: {quantiles: {50%: 21000, 90%: 62000}}}}, from what is public."
        )
    if policy.generalised_columns:
        return "No table is made up of columns that are generalised. The command tries them on a public file: --like FILE."
    return ""


def _list_methods(policy: Policy | None) -> list[Document]:
    """What can be tried in its place: methods for columns by themselves and for whole tables, and its own."""
    if policy is None:
        return []
    own = policy.protect.method
    names = [name for name in METHODS if find_method(name).family in ("columns", "by-value", "whole-table")]
    return [{"name": name, "is_own": name == own, "words": METHODS[name].summary} for name in dict.fromkeys([own, *names])]


def _say_epsilons(policy: Policy) -> str:
    """Half of its own, its own, and twice as much."""
    own = getattr(policy.protect, "epsilon", None)
    return "" if own is None else ", ".join(format_nano(own.nano * times // 2) for times in (1, 2, 4))


def _explore(asked: Asked) -> Document:
    """The key of the page of what was found. It is there, or why not is said with the command that has more time."""
    name = find_policy(asked)
    policy = _read(asked.site, name)
    if words := _may_explore(asked, policy):
        raise Refused(403, words)
    options = _read_options(asked)
    digest = "" if policy is None else policy.canonical_hash()
    key = hashlib.sha256("\n".join([name, digest, *options]).encode()).hexdigest()[:32]
    page = _page_of(asked.site, name, key)
    # a page of before is made anew: the ledger that it tells of may be another by now
    if not _busy.acquire(blocking=False):
        raise Blocked("another exploration goes on here.", where=name, remedy="Try again in half a minute.")
    try:
        _make_room(asked.site)
        log = page.with_suffix(".log")
        command = command_of(
            "explore", f"{asked.site.policy_file(name)}", "--shape", f"--home={asked.site.home}", f"--output={page}", *options
        )
        code = run_command(asked.site, [*command, "--overwrite", "--quiet", f"--by={asked.person.name}"], log, seconds=SECONDS)
    finally:
        _busy.release()
    said = " ".join(read_tail(asked.site, log, most=6))
    log.unlink(missing_ok=True)
    if code is None:
        page.unlink(missing_ok=True)
        raise Blocked(
            f"this takes longer than the {SECONDS:.0f} seconds that there are here.",
            where=name,
            remedy=f"Try fewer settings, or run: {_say_command(name, options)}",
        )
    if code != 0:
        raise Blocked(f"nothing was found. {said}".strip(), where=name, remedy="Change what is tried.")
    return {"key": key}


def _say_command(name: str, options: list[str]) -> str:
    return f"release-pipeline explore policies/{name}.yaml --shape -o {name}.html {' '.join(options)}"


def _read_options(asked: Asked) -> list[str]:
    """What is to be tried, as options of the command."""
    methods = [name for name in asked.get("methods", most=400).split(",") if name]
    if unknown := [name for name in methods if name not in METHODS]:
        raise WrongUsage(f"there is no method '{unknown[0][:40]}'.", where="methods", remedy="Choose from the list.")
    texts = {
        "epsilons": _read_list(asked, "epsilons", _EPSILONS, "numbers above 0 with commas between, like 0.5, 1, 2"),
        "k": _read_list(asked, "sizes", _SIZES, "whole numbers with commas between, like 3, 10"),
        "rows": _read_list(asked, "rows", _ROWS, "a whole number, or nothing"),
    }
    chosen = [f"--methods={','.join(methods)}"] if methods else []
    return [*chosen, *(f"--{option}={text}" for option, text in texts.items() if text)]


def _read_list(asked: Asked, name: str, pattern: re.Pattern[str], said: str) -> str:
    text = asked.get(name).strip()
    if pattern.fullmatch(text) is None:
        raise WrongUsage("this cannot be read.", where=name, remedy=f"Write {said}.")
    return text.replace(" ", "")


def _page_of(site: Site, name: str, key: str) -> Path:
    return site.desk / "explored" / f"{name}-{key}.html"


def _make_room(site: Site) -> None:
    """The folder is there, and has room for another page: those that were made first are gone."""
    with site.changing_desk():
        folder = site.desk / "explored"
        folder.mkdir(mode=0o700, exist_ok=True)
        pages = sorted(folder.glob("*.html"), key=lambda file: file.stat().st_mtime_ns)
        for page in pages[: max(0, len(pages) - _MOST_KEPT + 1)]:
            page.unlink(missing_ok=True)


def _show_page(asked: Asked) -> File:
    """The page of what was found, as the command writes it, and the hashes of its styles and scripts."""
    page = _page_of(asked.site, find_policy(asked), asked.find("key", _KEY))
    if not page.exists():
        raise Refused(404, "this was not explored, or so long ago that it is gone: explore it again.")
    content = page.read_bytes()
    return File("text/html; charset=utf-8", content=content, facts=hash_blocks(content))


CALLS = (
    Call("exploration", EVERYBODY, _show_exploration),
    Call("explore", allow(Role.STEWARD), _explore, changes=True),
    Call("explored", EVERYBODY, _show_page),
)
