"""A policy read from its canonical form: as it was when it was noted, whatever is asked of policy files today.

The canonical form (`Policy.canonical_json`; docs/formats.md has its rules) is JSON whose keys are in order, and whose numbers are
texts. It holds all of a policy, the rows of its hierarchies too, but for the order of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import options_of
from release_pipeline.policy.scalars import CANONICAL


def read_canonical(form: Mapping[str, Any], columns: Sequence[str]) -> Policy:
    """The policy of a canonical form, its columns in this order. The types of its parts are looked at, and no rule: it met the
    rules of its day."""
    try:
        hashed_only = options_of(form["protect"]["method"]).canonical_order(masked=[], generalised=[])  # no options
        protect = {name: value for name, value in form["protect"].items() if name not in hashed_only}
        names = sorted(form["columns"], key=_place_in(columns))
        content = {**form, "protect": protect, "columns": {name: form["columns"][name] for name in names}}
        return Policy.model_validate(content, context=CANONICAL)
    except (ValidationError, ReleasePipelineError, KeyError, TypeError, AttributeError):
        raise InvalidArgument("this is not the canonical form of a policy that this version can read.") from None


def _place_in(columns: Sequence[str]) -> Callable[[str], tuple[int, str]]:
    places = {name: place for place, name in enumerate(columns)}
    return lambda name: (places.get(name, len(places)), name)
