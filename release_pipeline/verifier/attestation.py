"""The package's statement, in the form of in-toto."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.verifier.documents import HEX, RELEASE, Fault, canonical_json, find_member, get
from release_pipeline.verifier.ed25519 import verify_signature
from release_pipeline.verifier.report import Package, Report
from release_pipeline.verifier.statements import MAY_SIGN, SSH_NAMESPACE, Key, hash_ssh_key, name_ssh_key, read_ssh_signature
from release_pipeline.verifier.trees import CARD, KEYS, SUMS, Tree

ALLOWED, ATTESTATION = "allowed_signers", "attestation.intoto.json"
ATTESTATION_SSH = f"{ATTESTATION}.sig"
ATTESTATIONS = (ATTESTATION, ATTESTATION_SSH)  # the statement cannot name these
STATEMENT_TYPE, PREDICATE_TYPE = "https://in-toto.io/Statement/v1", "urn:release-pipeline:package:1"
ATTESTED = (  # parts of the card that the statement repeats exactly
    *("release", "published", "supersedes", "tool", "policy", "population", "claim", "method", "looks", "hashes"),
    "registry_head",
)
PACKAGE_NAMESPACE = "package@release-pipeline"  # of SSH signatures of such a statement, and of nothing else


def write_allowed_signers(keys: Mapping[str, Key]) -> str:
    """Return the keys of a list of trusted keys that may sign packages, as ssh-keygen reads them."""
    return "".join(
        f'{key.name} namespaces="{PACKAGE_NAMESPACE},{SSH_NAMESPACE}" {name_ssh_key(key.public)}\n'
        for key in keys.values()
        if key.role in MAY_SIGN["package"]
    )


def check_attestation(report: Report, tree: Tree, keys: Mapping[str, Key], package: Package, signer: str) -> None:
    """Check the statement about the package's files: it agrees with the list of sums and the card,
    and is signed by the key that signed the list of sums, whose revocation was checked there."""
    at, of_package = tree.prefix, {key.fingerprint: key for key in keys.values() if key.role in MAY_SIGN["package"]}
    with report.about(at + ALLOWED):
        if tree.read(ALLOWED) != write_allowed_signers(keys).encode():
            raise Fault(f"it does not have just the keys that may sign packages by {KEYS}")
        report("ok", f"{at}{ALLOWED}: the keys that may sign packages by {KEYS}, which vouches for them; alone it proves nothing")
    with report.about(at + ATTESTATION):
        for name in ATTESTATIONS:
            if name not in package.sums:
                raise Fault(f"{SUMS} does not list {name}, which every package has")
        count = _compare_statement(tree.json(ATTESTATION), tree.json(CARD), package)
        sentence = f"a statement about {count} files, with the hashes that {SUMS} lists; of the release it says what {CARD} says"
        report("ok", f"{at}{ATTESTATION}: {sentence}")
    if ATTESTATION_SSH not in tree.sizes:  # if it should be there, the check of the list of sums has reported that
        return
    with report.about(at + ATTESTATION_SSH):
        try:
            text = tree.read(ATTESTATION_SSH).decode("ascii")
        except UnicodeDecodeError:
            raise Fault("it has bytes that no such signature has") from None
        key = _find_attester(tree.read(ATTESTATION), text, of_package)
        if signer and key.fingerprint != signer:
            raise Fault(f"it is signed by {key.name}, who did not sign {SUMS}")
        report("ok", f"{at}{ATTESTATION_SSH}: that statement is signed by {key.name} ({key.role})")


def _compare_statement(statement: Any, card: Any, package: Package) -> int:
    """Return the number of files that the statement is about; raises `Fault` unless these are all of the package, and it agrees
    with the card."""
    if (get(statement, "_type", str), get(statement, "predicateType", str)) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise Fault(f"it is not a statement of {STATEMENT_TYPE} that says {PREDICATE_TYPE}")
    if set(statement) - {"_type", "subject", "predicateType", "predicate"}:
        raise Fault("it says more than such a statement does")
    hashes = dict[str, str]()
    for subject in get(statement, "subject", list):
        name = get(subject, "name", str)
        if name in hashes:
            raise Fault("it names a file twice")
        digest = get(subject, "digest", dict)
        if set(subject) - {"name", "digest"} or set(digest) - {"sha256"}:
            raise Fault(f"of {name[:200]} it says more than a SHA-256")
        hashes[name] = get(digest, "sha256", HEX)
    wanted = {name: digest for name, digest in package.sums.items() if name not in ATTESTATIONS}
    for name in sorted({*hashes, *wanted}):
        if hashes.get(name) != wanted.get(name):
            raise Fault(f"of {name[:200]} it says otherwise than {SUMS}")
    predicate = get(statement, "predicate", dict)
    if get(predicate, "release", RELEASE) != package.release:
        raise Fault("it is about another release than the card")
    for name in sorted({*predicate, *(name for name in ATTESTED if find_member(card, name) is not None)}):
        if name not in predicate or canonical_json(find_member(card, name)) != canonical_json(predicate[name]):
            raise Fault(f"of '{name[:200]}' it says otherwise than {CARD}")  # it must not have what the card lacks
    return len(hashes)


def _find_attester(payload: bytes, text: str, keys: Mapping[str, Key]) -> Key:
    """Return the key with this SSH signature of just these bytes, in the namespace of packages."""
    made = read_ssh_signature(text, PACKAGE_NAMESPACE)
    key = keys.get(hash_ssh_key(made.public))
    if key is None:
        raise Fault(f"it is signed with a key that may not sign packages by {KEYS}")
    if not verify_signature(key.public[:32], made.signed_bytes(payload), made.signature):
        raise Fault(f"the signature of '{key.name}' is not valid")
    return key
