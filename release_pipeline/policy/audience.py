"""Who may read a release, and what a policy must say for it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator

from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.kinds.labels import Words
from release_pipeline.policy.text import Problem
from release_pipeline.sentences import POLICY

MOST_EPSILON = Decimal(10)  # of a claim for the whole table: one that is larger says little
MOST_LINKED = Decimal("0.1")  # of the rows, for everybody: the paper of (k,epsilon)-anonymity calls more excessively risky
Reader: TypeAlias = Literal["public", "licensed", "internal"]


class Everybody(Frozen):
    """Everybody, for a reason: the release may link more rows than is usual for the public."""

    public: Annotated[Words, Option(hint="Say why more than 10% of the rows may be linked; the card shows it.")]


class Licensed(Frozen):
    """Readers who are bound by terms."""

    licensed: Annotated[Words, Option(hint="Name the readers and their terms, like: Researchers who signed the terms of use.")]


def _read_audience(value: Any) -> Any:
    """Refuse a mapping that names no kind of reader, or nothing of it, before the types are tried."""
    if not isinstance(value, dict):
        return value
    given = cast(dict[str, Any], value)
    if len(given) != 1:
        raise ValueError("must name one kind of reader: public, internal, {licensed: TERMS}, or {public: REASON}")
    [(readers, words)] = given.items()
    if readers == "internal":
        raise ValueError("internal takes no text: write audience: internal")
    if readers not in ("licensed", "public"):
        raise ValueError(
            f"'{readers}' is no kind of reader: allowed are public, internal, {{licensed: TERMS}}, {{public: REASON}}"
        )
    if not isinstance(words, str) or not words.strip():
        asked = "name the readers and their terms" if readers == "licensed" else "give the reason, or write audience: public"
        raise ValueError(f"{readers} is empty: {asked}")
    return given


Audience: TypeAlias = Annotated[Everybody | Licensed | Literal["public", "internal"], BeforeValidator(_read_audience)]


def name_readers(audience: Audience) -> Reader:
    """The kind of readers."""
    if isinstance(audience, Everybody):
        return "public"
    return "licensed" if isinstance(audience, Licensed) else audience


def find_terms(audience: Audience) -> str | None:
    """The terms of licensed readers, or the reason for a public release that links more rows than is usual."""
    if isinstance(audience, Everybody):
        return audience.public
    return audience.licensed if isinstance(audience, Licensed) else None


def describe_audience(audience: Audience | None) -> str:
    """Who may read a release, in words: with the terms of licensed readers, or the reason of a public release."""
    if audience is None:
        return POLICY("audience.missing")
    if isinstance(audience, Everybody):
        return POLICY("audience.public_for_a_reason", terms=audience.public)
    if isinstance(audience, Licensed):
        return POLICY("audience.licensed", terms=audience.licensed)
    return POLICY("audience.public") if audience == "public" else POLICY("audience.internal")


def check_audience(
    audience: Audience, *, table_epsilon: Decimal | None, linkage: Decimal | None, swap_k: int | None
) -> Iterator[Problem]:
    """What a release for everybody needs: synthetic rows under one claim (`table_epsilon`, None for
    other rows), a limit on linkage, swapping, or a reason."""
    if name_readers(audience) != "public":
        return
    is_swapped = swap_k is not None and Decimal(1) / swap_k <= MOST_LINKED
    is_claimed = table_epsilon is not None and table_epsilon <= MOST_EPSILON
    is_enough = is_claimed or is_swapped or (linkage is not None and linkage <= MOST_LINKED)
    limit = "nothing limits how many rows can be linked"
    if linkage is not None:
        limit = f"linkage may be {(100 * linkage).normalize():f}%"
    if not is_enough and not isinstance(audience, Everybody):
        what = (
            "everybody may read this release, its rows are not synthetic under one claim of epsilon 10 or less, "
            f"and {limit}; 10% is the most."
        )
        remedy = (
            "Add gates: {linkage: 10%} or swap: {k: 10, within: kept}, or use dp-table with epsilon 10 or less; "
            "or name licensed readers with their terms (audience: {licensed: TERMS}); "
            "or give a reason that the card shows (audience: {public: REASON})."
        )
        yield ("audience",), what, remedy
    elif is_enough and isinstance(audience, Everybody):
        what = "this release needs no reason: its claim, its gate or its swapping is enough."
        yield ("audience", "public"), what, "Say audience: public."
