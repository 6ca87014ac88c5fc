"""The package's statement in the form of in-toto, with a signature that ssh-keygen verifies.

One key signs it and the list of sums. Each purpose has a separate namespace of SSH, so that no signature passes for another
purpose.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from release_pipeline.errors import Blocked
from release_pipeline.formats.package import PackageView
from release_pipeline.ledger.office import OFFICERS
from release_pipeline.publish.delivery import SIGNATURE
from release_pipeline.publish.public import render_card_html, render_card_json, render_datapackage, render_hierarchy, render_note
from release_pipeline.publish.standards import STANDARDS
from release_pipeline.store.files import hash_of_file, make_folder, read_sums, sync, write_sums
from release_pipeline.trust.keys import PrivateKey, write_statement
from release_pipeline.trust.members import KEYS, KEYS_SIGNATURE, Trust
from release_pipeline.verifier.attestation import (
    ALLOWED,
    ATTESTATION,
    ATTESTATION_SSH,
    ATTESTED,
    PACKAGE_NAMESPACE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    write_allowed_signers,
)
from release_pipeline.verifier.statements import read_keys


def list_signers(trust: Trust) -> str:
    """Return who may sign packages, as ssh-keygen reads it. Only the list of trusted keys vouches for it."""
    return write_allowed_signers(read_keys(json.loads(trust.text)))


def write_attestations(card: Mapping[str, Any], hashes: Mapping[str, str], trust: Trust, key: PrivateKey) -> dict[str, str]:
    """Return the statement about files of these hashes, and its signature, by their names. Refused unless the key may sign
    packages."""
    release = str(card["release"])
    trust.check_may_sign(key, kind="package", subject=release)
    statement = make_statement(card, hashes)
    return {ATTESTATION: statement, ATTESTATION_SSH: key.sign_for_ssh(statement.encode(), PACKAGE_NAMESPACE)}


def make_statement(card: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """Return an in-toto statement about the files of a package, with the facts of its card."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(hashes.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {name: card[name] for name in ATTESTED},
    }
    return json.dumps(statement, indent=2, ensure_ascii=True) + "\n"


# The public package of a release: a folder with data, card, note, keys and sums, that a stranger
# can verify.


CARD = "privacy-card.json"
Sign: TypeAlias = Callable[[str], dict[str, Any]]  # a signed statement about the hash of the package
Attest: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, str]], Mapping[str, str]]  # files of a card and of hashes by name


def build_package(
    folder: Path, *, candidate: Path, view: PackageView, papers: Mapping[str, str], trust: Trust, attest: Attest, sign: Sign
) -> tuple[str, dict[str, Any]]:
    """Build the package in `folder`, which is temporary, and replace what a stopped attempt has left there; returns its hash and
    the signed statement about it. The data are the candidate's, byte for byte; `papers`: the public ones by their names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    card = view.card
    of_rows = [name for form in card.formats for name in view.name_data(form)]
    data = [*of_rows, *view.counts, *(table.file for table in card.tables)]
    for name in data:
        shutil.copyfile(candidate / name, folder / name)
    known = {name: _know(folder / name) for name in data}
    frozen = read_sums(candidate, card.hashes.candidate)
    if any(frozen.get(name) != digest for name, (digest, _) in known.items()):  # changed since it was checked
        raise Blocked("the candidate's folder is not what was frozen.", where=card.release, remedy="Nothing was published.")
    for name, rows in view.hierarchies:
        (folder / name).write_text(render_hierarchy(rows), encoding="utf-8")
        known[name] = _know(folder / name)
    texts = {
        CARD: render_card_json(card),
        "privacy-card.html": render_card_html(view),
        "RELEASE_NOTE.md": render_note(view),
        "datapackage.json": render_datapackage(view, known),
        KEYS: trust.text,
        KEYS_SIGNATURE: write_statement(trust.signed),
        **({OFFICERS: trust.officers} if trust.officers else {}),
        ALLOWED: list_signers(trust),
        **papers,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        known[name] = _know(folder / name)
    for name, render in STANDARDS.items():
        (folder / name).write_text(render(view, known), encoding="utf-8")
        known[name] = _know(folder / name)
    for name, text in attest(json.loads(texts[CARD]), {name: digest for name, (digest, _) in known.items()}).items():
        (folder / name).write_text(text, encoding="utf-8")
    digest = write_sums(folder)
    signed = sign(digest)
    (folder / SIGNATURE).write_text(write_statement(signed), encoding="utf-8")
    for file in (*folder.iterdir(), folder, folder.parent):
        sync(file)
    return digest, signed


def _know(file: Path) -> tuple[str, int]:
    return hash_of_file(file), file.stat().st_size


def place_package(built: Path, folder: Path) -> None:
    """Put a built package into its final folder, readable by everyone: whole or not at all."""
    make_folder(folder.parent, mode=0o755)
    for left in folder.parent.glob(f".{folder.name}.*"):  # of an attempt that was killed
        shutil.rmtree(left)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        shutil.copytree(built, partial)
        for file in partial.iterdir():
            file.chmod(0o644)
            sync(file)
        partial.chmod(0o755)
        partial.replace(folder)
        sync(folder.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
