"""`upstream` of site.yaml: which asset of somebody's Dagster makes what a policy takes as its source.

It stands there and not in the policy: who delivers is the operator's matter, and nobody has to approve a policy anew for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.typed import Plain


def read_upstream(said: Plain, policies: Sequence[str], *, file: str) -> Mapping[str, tuple[str, ...]]:
    """The asset key of each policy that is named, in its parts; `policies`: the names that there are."""
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise ReleasePipelineError("upstream is no list of policies and assets.", where=file, remedy=_HOW)
    return {_known(name, policies, file): _read_key(name, key, file) for name, key in said.items()}


_HOW = "Say it as in `upstream: {people: warehouse/people}`, or with the parts of the key as a list, [warehouse, people]."


def _known(name: str, policies: Sequence[str], file: str) -> str:
    if name not in policies:
        there = f"There are: {', '.join(policies) or 'none'}."
        raise ReleasePipelineError(f"upstream names a policy '{name}' that this site has not.", where=file, remedy=there)
    return name


def _read_key(policy: str, key: Plain, file: str) -> tuple[str, ...]:
    parts = key.split("/") if isinstance(key, str) else key
    if not isinstance(parts, list) or not parts:
        raise ReleasePipelineError(f"upstream of {policy} is no key of an asset.", where=file, remedy=_HOW)
    texts = [part for part in parts if isinstance(part, str) and part.strip() == part and part]
    if len(texts) != len(parts):
        raise ReleasePipelineError(
            f"upstream of {policy} is a key with a part that is no text, or empty.", where=file, remedy=_HOW
        )
    return tuple(texts)
