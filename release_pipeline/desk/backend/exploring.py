"""Settings that a steward tries on what the policy believes of the data (`shape`), and the looks at
data that are noted. What is tried reads no data: the page shows the lines that the command prints, and keeps nothing."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from release_pipeline.desk.backend.calls import EVERYBODY, Asked, Call, Document, allow
from release_pipeline.desk.backend.lookups import read_policies
from release_pipeline.desk.backend.runs import command_of, read_tail, run_command
from release_pipeline.desk.backend.stewarding import find_policy
from release_pipeline.desk.people import Role
from release_pipeline.door.refusal import Refused
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.exploring.trials import find_looks
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.catalogue import METHODS, find_method

SECONDS = 20.0
MOST_LINES, MOST_BYTES = 400, 1 << 17  # of what the command prints
_EPSILONS = re.compile(r"(?:[0-9]{1,6}(?:\.[0-9]{1,9})?(?: *, *(?=[0-9]))?){0,12}")
_SIZES = re.compile(r"(?:[0-9]{1,7}(?: *, *(?=[0-9]))?){0,12}")
_ROWS = re.compile(r"[0-9]{0,9}")
_busy = threading.Lock()


def _show_exploration(asked: Asked) -> Document:
    name = find_policy(asked)
    policy = _read(asked.site, name)
    with asked.site.open_registry(read_only=True) as registry:
        looks = find_looks(registry.events, name)
    return {
        "name": name,
        "why_not": _may_explore(asked, policy),
        "methods": _list_methods(policy),
        "epsilons": "" if policy is None else _say_epsilons(policy),
        "sizes": "" if policy is None else str(policy.protect.k or ""),
        "rows": "" if policy is None or policy.shape is None else str(policy.shape.rows),
        "looks": [{"by": look.by, "noted": look.noted, "words": look.words} for look in looks],
        "command": _say_command(name, "--shape", []),
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
    """What can be tried in its place: methods for columns by themselves and for whole tables, and
    its own."""
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
    """The table of what was found; or why nothing was, with the command that has more time."""
    name = find_policy(asked)
    if words := _may_explore(asked, _read(asked.site, name)):
        raise Refused(403, words)
    options = _read_options(asked)
    if not _busy.acquire(blocking=False):
        raise Blocked("another exploration goes on here.", where=name, remedy="Try again in half a minute.")
    try:
        with TemporaryDirectory(prefix="explored-") as folder:
            return _run(asked, name, options, Path(folder) / "log")
    finally:
        _busy.release()


def _run(asked: Asked, name: str, options: list[str], log: Path) -> Document:
    command = command_of("explore", f"{asked.site.policy_file(name)}", "--shape", f"--home={asked.site.home}", *options)
    code = run_command(asked.site, [*command, "--all", "--quiet", f"--by={asked.person.name}"], log, seconds=SECONDS)
    if code is None:
        raise Blocked(
            f"this takes longer than the {SECONDS:.0f} seconds that there are here.",
            where=name,
            remedy=f"Try fewer settings, or run: {_say_command(name, '--shape', options)}",
        )
    lines = read_tail(asked.site, log, most=MOST_LINES, size=MOST_BYTES)
    if code != 0:
        raise Blocked(f"nothing was found. {' '.join(lines[-6:])}".strip(), where=name, remedy="Change what is tried.")
    listed = [option for option in options if not option.startswith("--rows")]
    return {"lines": lines, "write_command": _say_command(name, "--write --choose N", listed)}


def _say_command(name: str, what: str, options: list[str]) -> str:
    return " ".join(["release-pipeline", "explore", f"policies/{name}.yaml", what, *options])


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


CALLS = (
    Call("exploration", EVERYBODY, _show_exploration),
    Call("explore", allow(Role.STEWARD), _explore, changes=True),
)
