"""Makes what the golden set holds still: candidates, packages, dossiers, and what the verifier says of them and of mutations."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.publish import publish, retract, supersede
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import PrivateKey, write_statement
from release_pipeline.verifier.command import examine
from tests.golden.cases import CASES, LIFE, Case
from tests.integration.people import PEOPLE, appoint, review
from tests.integration.publishing import sums_of
from tests.integration.sites import TinySite, make_site
from tests.ssh_keys import hold

HERE = Path(__file__).parent
DIGESTS = HERE / "digests"
NAMES = (*CASES, "life")
MUTATIONS, QUICK = 200, 4  # of every package; and those that the test tries of each
FIRST = ReleaseId("people", "1")
MORE = "more-mutations"
SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
# The file of a dossier that changes with every edit of the verifier: no part of what is compared, nor is its line in the sums.
LEFT_OUT = "verify.py"
Files = dict[str, bytes]


def make_keys() -> dict[str, PrivateKey]:
    """Everybody's key, always the same: the seed is the hash of the name."""
    return {name: hold(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())) for name in PEOPLE}


def make(name: str, work: Path, *, mutations: int = MUTATIONS) -> Files:
    """Everything that is compared of one policy, by path; `work` is an empty folder for its site."""
    keys = make_keys()
    if name == "life":
        return _make_life(work, keys, mutations)
    return _make_case(name, CASES[name], work, keys, mutations)


def _make_site(case: Case, work: Path, keys: dict[str, PrivateKey]) -> TinySite:
    parts = {"releases": '["1"]', **case.parts}
    tiny = make_site(work / "site", rows=[], cap=case.cap, **parts)
    tiny.write_rows(case.rows(), header=case.header)
    appoint(tiny, keys)
    return tiny


def _publish(tiny: TinySite, keys: dict[str, PrivateKey], release: ReleaseId) -> Path:
    run_release(tiny.flow(release.release))
    review(tiny, keys, "ben", "cleo", release=release)
    return publish(tiny.site, release, key=keys["robot"])


def _make_case(name: str, case: Case, work: Path, keys: dict[str, PrivateKey], mutations: int) -> Files:
    tiny = _make_site(case, work, keys)
    package = _publish(tiny, keys, FIRST)
    made = {"policy.hash": f"{tiny.site.policy('people').canonical_hash()}\n".encode()}
    made |= _read_below(tiny.site.candidate(str(FIRST)), "candidate")
    made |= _make_verdicts(package, "package", keys, seed=name, mutations=mutations)
    return made | _make_dossier(tiny, FIRST, work, "dossier", keys, mutations=0)


def _make_life(work: Path, keys: dict[str, PrivateKey], mutations: int) -> Files:
    """Two waves: the first is published and superseded by its correction, the second is retracted."""
    tiny = _make_site(LIFE, work, keys)
    correction, second = FIRST.next, ReleaseId("people", "2")
    made = {"policy.hash": f"{tiny.site.policy('people').canonical_hash()}\n".encode()}
    _publish(tiny, keys, FIRST)
    _publish(tiny, keys, second)
    revise_release(tiny.site, "people", "1", why="a correction")
    _publish(tiny, keys, correction)
    supersede(tiny.site, FIRST, correction, key=keys["olga"], why="a value was wrong")
    retract(tiny.site, second, key=keys["olga"], why="it should not have been")
    for state, release in (("superseded", FIRST), ("published", correction), ("retracted", second)):
        made |= _read_below(tiny.site.candidate(str(release)), f"{state}/candidate")
        package = tiny.site.package(str(release))
        made |= _make_verdicts(package, f"{state}/package", keys, seed=state, release=release, mutations=mutations)
        of_dossier = mutations if state == "published" else 0
        made |= _make_dossier(tiny, release, work, f"{state}/dossier", keys, mutations=of_dossier)
    return made


def _make_dossier(
    tiny: TinySite, release: ReleaseId, work: Path, path: str, keys: Mapping[str, PrivateKey], *, mutations: int
) -> Files:
    folder = work / path.replace("/", "-")
    zipped = write_dossier(tiny.site, release, work / f"{folder.name}.zip")
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(folder)
    made = _make_verdicts(folder, path, keys, seed=path, release=release, mutations=mutations)
    del made[f"{path}/{LEFT_OUT}"]
    lines = made[f"{path}/{SUMS}"].decode().splitlines(keepends=True)
    made[f"{path}/{SUMS}"] = "".join(line for line in lines if line.split()[1] != LEFT_OUT).encode()
    return made


def _make_verdicts(
    folder: Path,
    path: str,
    keys: Mapping[str, PrivateKey],
    *,
    seed: str,
    release: ReleaseId = FIRST,
    mutations: int,
) -> Files:
    """The files of a package or dossier, the verifier's words on it, and those on its mutations, a line each."""
    files = _read_below(folder)
    officer = keys["olga"].public.fingerprint
    made = {f"{path}/{name}": content for name, content in files.items()}
    verdict = list(_judge(folder, officer))
    made[f"{path}.verdict.txt"] = "".join(f"{line}\n" for line in verdict).encode()
    lines: list[str] = []
    for words, changed in _mutate(files, keys, seed=seed, release=release, count=mutations):
        _write(folder, changed)
        lines.append(f"{words}: {_compare_verdicts(verdict, list(_judge(folder, officer)))}\n")
        _write(folder, {name: files.get(name) for name in changed})
    for file, few in (("mutations", lines[:QUICK]), (MORE, lines[QUICK:])):
        if few:
            made[f"{path}.{file}.txt"] = "".join(few).encode()
    return made


def _compare_verdicts(before: list[str], after: list[str]) -> str:
    """What the verifier says now, and what it does not say any more."""
    changes = [f"+ {line}" for line in after if line not in before] + [f"- {line}" for line in before if line not in after]
    return " | ".join(changes) or "as before"


def _judge(folder: Path, officer: str) -> Iterator[str]:
    """What the verifier says; of an exception what it is."""
    try:
        findings = examine(folder, officer).findings
    except Exception as error:
        yield f"{type(error).__name__} {error}".replace(str(folder), "FOLDER")
        return
    for finding in findings:
        yield f"{finding.level} {finding.words}".replace(str(folder), "FOLDER")


def _read_below(folder: Path, path: str = "") -> Files:
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    return {f"{path}/{name}" if path else name: content for name, content in files.items()}


def _write(folder: Path, changed: Mapping[str, bytes | None]) -> None:
    for name, content in changed.items():
        file = folder / name
        if content is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def _mutate(
    files: Files, keys: Mapping[str, PrivateKey], *, seed: str, release: ReleaseId, count: int
) -> Iterator[tuple[str, dict[str, bytes | None]]]:
    """So many ways to change some files, each in words with what is written instead (None: removed).

    Of every three, one leaves the list of sums as it was; one makes it anew, as anybody can; one has the service sign it too.
    """
    for number in range(count):
        chance = random.Random(f"{seed} {number}")  # noqa: S311
        words, changed = _change(files, chance)
        if number % 3:
            new = {name: content for name, content in {**files, **changed}.items() if content is not None}
            listed = {name for name in new if name not in (SUMS, SIGNATURE) and not name.startswith(("RETRACTED", "SUPERSEDED"))}
            before = {line.split("  ")[1] for line in files[SUMS].decode().splitlines()}
            sums = sums_of({name: new[name] for name in listed & (before | set(changed))})
            changed[SUMS] = sums
            words += ", sums"
            if number % 3 == 2 and SIGNATURE in files:
                at = json.loads(files[SIGNATURE])["statement"]["at"]
                digest = hashlib.sha256(sums).hexdigest()
                signed = keys["robot"].sign(kind="package", subject=str(release), digest=digest, name="robot", at=at)
                changed[SIGNATURE] = write_statement(signed).encode()
                words += " and signature"
        yield f"{number} {words}", changed


def _change(files: Files, chance: random.Random) -> tuple[str, dict[str, bytes | None]]:
    names = sorted(name for name in files if name != LEFT_OUT and files[name])
    name = chance.choice(names)
    content = files[name]
    kind = chance.choice(["flip", "swap", "remove", "add", "cut", "double", "json", "json", "json", "json"])
    if kind == "flip":
        place = chance.randrange(len(content))
        bit = 1 << chance.randrange(8)
        return f"flip {name} {place}", {name: content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]}
    if kind == "swap":
        other = chance.choice([each for each in names if each != name])
        return f"swap {name} and {other}", {name: files[other], other: content}
    if kind == "remove":
        return f"remove {name}", {name: None}
    if kind == "add":
        return f"add a copy of {name}", {f"more-{name.rpartition('/')[2]}": content}
    if kind == "cut":
        size = chance.randrange(len(content))
        return f"cut {name} to {size}", {name: content[:size]}
    if kind == "double":
        return f"double {name}", {name: content + content}
    name = chance.choice([each for each in names if each.endswith((".json", ".jsonl", SIGNATURE))])
    lines = files[name].decode().splitlines(keepends=True) if name.endswith(".jsonl") else [files[name].decode()]
    place = chance.randrange(len(lines))
    document = json.loads(lines[place])
    where = _change_value(document, chance)
    as_before = lines[place].count("\n") > 1
    text = json.dumps(document, indent=2 if as_before else None, separators=None if as_before else (",", ":"), ensure_ascii=False)
    lines[place] = f"{text}\n"
    return f"change {name} {place} {where}", {name: "".join(lines).encode()}


def _change_value(document: Any, chance: random.Random) -> str:
    """Change one value somewhere below, in place; where it is."""
    where, here = "", document
    while True:
        choices: list[Any] = sorted(here) if isinstance(here, dict) else list(range(len(here)))
        if not choices:
            if isinstance(here, dict):
                here["new"] = 1
            else:
                here.append(1)
            return f"{where}+"
        key = chance.choice(choices)
        value, where = here[key], f"{where}/{key}"
        if isinstance(value, dict | list) and chance.random() < 0.9:
            here = value
            continue
        if chance.random() < 0.2:
            del here[key]
            return f"{where}-"
        here[key] = _other_value(value)
        return where


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        digits = [place for place, sign in enumerate(value) if sign.isdigit()]
        if digits:
            place = digits[-1]
            return f"{value[:place]}{(int(value[place]) + 1) % 10}{value[place + 1 :]}"
        return f"{value}x"
    return 0 if value is None else None


def digest_of(made: Files) -> dict[str, str]:
    """The SHA-256 of every file, but for copies in a dossier of what is beside it; of the policy the hash itself."""
    copies = {name for name in made if "dossier/" in name and made.get(name.replace("dossier/", "", 1)) == made[name]}
    return {name: _digest(name, made[name]) for name in sorted({*made} - copies)}


def _digest(name: str, content: bytes) -> str:
    return content.decode().strip() if name == "policy.hash" else hashlib.sha256(content).hexdigest()


def compare(name: str, digests: Mapping[str, str], *, quick: bool) -> list[str]:
    """How the digests of one policy differ from those that are stored, a line each; `quick`: without most mutations."""
    file = DIGESTS / f"{name}.json"
    stored: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    if quick:
        stored = {path: digest for path, digest in stored.items() if not path.endswith(f".{MORE}.txt")}
    return [
        f"{name}: {path} is {'new' if path not in stored else 'gone' if path not in digests else 'other than stored'}"
        for path in sorted({*stored, *digests})
        if stored.get(path) != digests.get(path)
    ]
