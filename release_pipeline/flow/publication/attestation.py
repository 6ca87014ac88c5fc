"""The package's statement in the forms that other people's programs verify: in-toto in a DSSE envelope, SSH's and minisign's.

One key signs in several forms, and no signature of one passes as another. The bytes that it signs begin with `DSSEv1 ` for an
envelope, with `SSHSIG` and the namespace for SSH, with `release-pipeline statement` for the first form of our statements. For
minisign they are a hash of 64 bytes, which is shorter than any of those, or 64 bytes of a signature and a comment, which begin
with a point of the curve that nobody can choose. docs/decisions/0025-signatures-of-others.md has the proof.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import Trust
from release_pipeline.verify import (
    ATTESTATION,
    ATTESTATION_MINISIGN,
    ATTESTATION_SSH,
    ATTESTED,
    ENVELOPE,
    PACKAGE_NAMESPACE,
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    encode_payload,
    read_keys,
    write_allowed_signers,
    write_minisign,
)


def list_signers(trust: Trust) -> str:
    """Who may sign packages, as ssh-keygen reads it. The list of trusted keys vouches for it, and nothing else does."""
    return write_allowed_signers(read_keys(json.loads(trust.text)))


def write_attestations(card: Mapping[str, Any], hashes: Mapping[str, str], trust: Trust, key: PrivateKey) -> dict[str, str]:
    """The statement about files of these hashes, and its signatures, by their names; the same statement gets the same bytes.
    Refused unless the key may sign packages."""
    release = str(card["release"])
    trust.sign(key, kind="package", subject=release, digest="")
    statement = make_statement(card, hashes)
    payload, public = statement.encode(), key.public.raw
    signed = base64.b64encode(key.key.sign(encode_payload(payload))).decode()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key.public.fingerprint, "sig": signed}],
    }
    of_hash = key.key.sign(hashlib.blake2b(payload).digest())
    return {
        ATTESTATION: statement,
        ENVELOPE: json.dumps(envelope) + "\n",  # in one line: such files may be joined to a bundle
        ATTESTATION_SSH: key.sign_for_ssh(payload, PACKAGE_NAMESPACE),
        ATTESTATION_MINISIGN: write_minisign(public, of_hash, release, key.key.sign(of_hash + release.encode())),
    }


def make_statement(card: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """An in-toto statement about the files of a package, that says what its card says."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(hashes.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {name: card[name] for name in ATTESTED},
    }
    return json.dumps(statement, indent=2, ensure_ascii=True) + "\n"
