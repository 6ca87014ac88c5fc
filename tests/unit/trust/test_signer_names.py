"""One person has one name: what a human eye takes for a signer's name, and is written otherwise, is no name anywhere.

So no steward reviews under a variant of their own name: the policy, the list of trusted keys, statements and the verifier take
small letters of ASCII, digits and hyphens alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.policy import load_policy
from release_pipeline.trust.keys import check_person
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.statements import name_ssh_key, read_keys, verify_statement
from tests.integration.sites import policy_text

VARIANTS = {
    "zero-width space": "an\u200ba",
    "zero-width joiner": "ana\u200d",
    "soft hyphen": "a\u00adna",
    "byte order mark": "\ufeffana",
    "variation selector": "ana\ufe0f",
    "full width": "\uff41na",
    "mathematical": "\U0001d41ana",
    "Cyrillic": "\u0430na",
    "Greek": "\u03b1na",
    "combining": "a\u0301na",
    "another hyphen": "ana\u2010b",
    "right to left": "\u202eana",
    "capital": "Ana",
    "end of line": "ana\n",
    "space": " ana",
}


@pytest.mark.parametrize("name", VARIANTS.values(), ids=VARIANTS)
def test_a_variant_of_a_name_is_no_name(name: str, tmp_path: Path) -> None:
    """Neither as a steward, nor in the list of keys, nor under a statement."""
    with pytest.raises(WrongUsage, match="not a name for a person"):
        check_person(name)
    (tmp_path / "people.yaml").write_text(policy_text(steward='"' + name.replace("\n", "\\n") + '"'), encoding="utf-8")
    with pytest.raises(PolicyInvalid):
        load_policy(tmp_path / "people.yaml")
    key = name_ssh_key(bytes(32))
    with pytest.raises(Fault, match="is not a name with an Ed25519 key"):
        read_keys({"keys": {name: {"key": key, "role": "reviewer"}}})
    statement = {"kind": "approve", "subject": "p/1/r1", "hash": "0" * 64, "signer": "0" * 64, "name": name, "at": "", "why": ""}
    officer = {"keys": {"olga": {"key": key, "role": "officer"}}}
    with pytest.raises(Fault, match="'name' is missing or is not what it must be"):
        verify_statement({"statement": statement, "sshsig": ""}, officer)
