"""Everything about a method, in one place: looked up by its name, never assumed. An unknown name raises.

The definitions and the methods are frozen entries (`spec`), by family: `columns`, `by_value`, `whole_table`, and `together` for
those that use several columns at once. A new method needs an entry, and the mathematics that it names.
"""

from __future__ import annotations

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.catalogue.entries import BY_VALUE_METHODS, COLUMN_METHODS, TOGETHER_METHODS, WHOLE_TABLE_METHODS
from release_pipeline.mechanisms.catalogue.spec import DEFINITIONS, ClaimSpec, Definition, Family, Kit, ListLoss, MethodSpec

__all__ = [
    "DEFINITIONS",
    "MECHANISM_VERSION",
    "METHODS",
    "ClaimSpec",
    "Definition",
    "Family",
    "Kit",
    "ListLoss",
    "MethodSpec",
    "find_claim",
    "find_definition",
    "find_method",
    "list_methods",
]

# A part of the key of every release's noise. Raise it with any change after which the same policy, records and secret give
# different cells, scales or values: otherwise a release that was charged and not drawn could combine new cells with noise that
# somebody knows.
MECHANISM_VERSION = "1"

_ENTRIES = (*COLUMN_METHODS, *BY_VALUE_METHODS, *WHOLE_TABLE_METHODS, *TOGETHER_METHODS)
METHODS: dict[str, MethodSpec] = {spec.name: spec for spec in _ENTRIES}
if len(METHODS) != len(_ENTRIES):
    raise InvalidArgument("two methods have the same name.", where="method")


def list_methods(family: Family | None = None) -> tuple[str, ...]:
    """Return the names of the methods of a family, or of all."""
    return tuple(spec.name for spec in METHODS.values() if family in (None, spec.family))


def find_method(name: str, *, family: Family | None = None) -> MethodSpec:
    """Return the method with this name, from that family if one is named; raises if there is none."""
    spec = METHODS.get(name)
    if spec is None or family not in (None, spec.family):
        raise InvalidArgument(f"the method is none of {', '.join(list_methods(family))}.", where="method")
    return spec


def find_definition(key: str) -> Definition:
    """Return the definition with this key; raises if there is none."""
    if key not in DEFINITIONS:
        raise InvalidArgument(f"the definition is none of {', '.join(DEFINITIONS)}.", where="definition")
    return DEFINITIONS[key]


def find_claim(name: str, scope: str, **options: str) -> ClaimSpec:
    """Return what a method promises at a scope, with these options: all options that distinguish its claims must be named."""
    spec = find_method(name)
    mine = [claim for claim in spec.claims if claim.scope == scope]
    if not mine:
        scopes = " nor ".join(f"'{known}'" for known in spec.scopes)
        raise InvalidArgument(f"the scope is {'neither ' if len(spec.scopes) > 1 else 'not '}{scopes}.", where="scope")
    matching = [claim for claim in mine if claim.options == options]
    if len(matching) != 1:
        wanted = ", ".join(f"{name} {value}" for name, value in options.items()) or "no options"
        raise InvalidArgument(f"{name} has no claim of scope {scope} with {wanted}.", where="method")
    return matching[0]
