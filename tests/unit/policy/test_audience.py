"""Who may read a release, and what a policy must say for it."""

from __future__ import annotations

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.about import describe_audience, find_unsaid

TEXT = """\
policy: people
steward: ana
population: people
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 1, k: 10%s}
columns:
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known}
gates: {min_rows: 100%s}
%s
"""
SYNTHETIC = (
    TEXT.replace("dp-um, epsilon: 1, k: 10", "dp-table, epsilon: 9")
    .replace("do: noise", "do: synthesise")
    .replace("min_rows: 100", "min_rows: 1000")
)
REASON = "{public: the register is public already}"
SWAP = ", swap: {k: %s, within: kept}"


def load(audience: str, *, swap: str = "", gate: str = "", text: str = TEXT) -> Policy:
    """The policy with these readers."""
    return parse_policy(text % (swap, gate, f"audience: {audience}" if audience else ""), name="p.yaml")


@pytest.mark.parametrize(
    ("audience", "how"),
    [
        ("internal", {}),
        ("{licensed: those who signed}", {}),
        ("public", {"gate": ", linkage: 10%"}),
        ("public", {"swap": SWAP % 10}),
        ("public", {"text": SYNTHETIC}),
        (REASON, {}),
        (REASON, {"gate": ", linkage: 11%", "swap": SWAP % 9}),
    ],
)
def test_readers_that_a_policy_may_have(audience: str, how: dict[str, str]) -> None:
    """Everybody with a claim for the whole table, a limit on linkage, swapping, or a reason; others with their terms."""
    assert load(audience, **how).audience is not None


@pytest.mark.parametrize(
    ("audience", "how", "words"),
    [
        ("public", {}, "nothing limits how many rows can be linked; 10% is the most"),
        ("public", {"gate": ", linkage: 11%"}, "linkage may be 11%; 10% is the most"),
        ("public", {"text": SYNTHETIC.replace("epsilon: 9", "epsilon: 10.1"), "gate": ", linkage: 1%"}, "epsilon 10 or less"),
        ("public", {"text": TEXT.replace("dp-um, epsilon: 1, k: 10", "laplace, epsilon: 1")}, "its rows are not synthetic"),
        ("public", {"swap": SWAP % 9}, "its rows are not synthetic under one claim"),
        (REASON, {"text": SYNTHETIC}, "Say audience: public"),
        (REASON, {"swap": SWAP % 10}, "Say audience: public"),
        ("everybody", {}, "'everybody' is not allowed"),
        ("{licensed: ''}", {}, "licensed is empty: name the readers and their terms"),
        ("{licenced: x}", {}, "'licenced' is no kind of reader"),
        ("{internal: us}", {}, "write audience: internal"),
        ("{public: a, licensed: b}", {}, "must name one kind of reader"),
    ],
)
def test_readers_that_it_may_not_have(audience: str, how: dict[str, str], words: str) -> None:
    """One sentence each, with what to write."""
    with pytest.raises(PolicyInvalid) as refused:
        load(audience, **how)
    [told] = refused.value.problems
    assert words in told


def test_without_readers_nothing_is_approved() -> None:
    """The officer must be able to read who gets it; the words that are hashed have it too."""
    policy = load("")
    assert next(find_unsaid(policy.audience, policy.about, policy.columns)).startswith("audience is missing")
    assert describe_audience(load(REASON).audience).endswith("the register is public already")
    hashes = {load(audience).canonical_hash() for audience in ("", "internal", "{licensed: x}", "{licensed: y}", REASON)}
    assert len(hashes) == 5
