"""The package's statement in the form of in-toto, with a signature that ssh-keygen verifies.

One key signs it and the list of sums. Each purpose has a namespace of SSH, so that no signature passes for another purpose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import Trust
from release_pipeline.verify import (
    ATTESTATION,
    ATTESTATION_SSH,
    ATTESTED,
    PACKAGE_NAMESPACE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    read_keys,
    write_allowed_signers,
)


def list_signers(trust: Trust) -> str:
    """Who may sign packages, as ssh-keygen reads it. The list of trusted keys vouches for it, and nothing else does."""
    return write_allowed_signers(read_keys(json.loads(trust.text)))


def write_attestations(card: Mapping[str, Any], hashes: Mapping[str, str], trust: Trust, key: PrivateKey) -> dict[str, str]:
    """The statement about files of these hashes, and its signature, by their names. Refused unless the key may sign packages."""
    release = str(card["release"])
    trust.check_may_sign(key, kind="package", subject=release)
    statement = make_statement(card, hashes)
    return {ATTESTATION: statement, ATTESTATION_SSH: key.sign_for_ssh(statement.encode(), PACKAGE_NAMESPACE)}


def make_statement(card: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """An in-toto statement about the files of a package, that says what its card says."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(hashes.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {name: card[name] for name in ATTESTED},
    }
    return json.dumps(statement, indent=2, ensure_ascii=True) + "\n"
