"""`upstream` of site.yaml: which asset of somebody's Dagster makes what a policy takes as its source.

It stands there and not in the policy: who delivers is the operator's matter, and nobody has to approve a policy anew for it.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, TypeAdapter, ValidationInfo

from release_pipeline.flow.settings import Say, meets, wrong

_HOW = "Say it as in `upstream: {people: warehouse/people}`, or with the parts of the key as a list, [warehouse, people]."


def _split(key: Any) -> Any:
    return key.split("/") if isinstance(key, str) else key


def _check_policy(name: str, info: ValidationInfo) -> str:
    policies = cast("list[str]", info.context)
    if name not in policies:
        there = f"There are: {', '.join(policies) or 'none'}."
        raise wrong(f"upstream names a policy '{name}' that this site has not.", there)
    return name


_Part: TypeAlias = Annotated[StrictStr, meets(lambda part: part.strip() == part != "")]
_Key: TypeAlias = Annotated[
    tuple[_Part, ...],
    Field(min_length=1),
    BeforeValidator(_split),
    Say("this is no key of an asset, or has a part that is no text, or empty.", _HOW),
]
Upstream: TypeAlias = dict[str, tuple[str, ...]]  # the parts of the asset key, by policy
UPSTREAM: TypeAdapter[Upstream] = TypeAdapter(dict[Annotated[str, AfterValidator(_check_policy)], _Key])
