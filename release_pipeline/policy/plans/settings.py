"""Other ways to protect the same columns: the policy of a file with another method, epsilon, k or swap.

Other parts that a setting needs are changed with `protect` and listed (`Changed.changes`): synthetic rows have no kept columns,
and options unknown to a family of methods are left out. `apply` raises for an impossible setting, with the messages of a check of
such a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, cast

from release_pipeline.mechanisms.catalogue import find_method
from release_pipeline.mechanisms.catalogue.spec import DP, IDP, K_ANONYMITY, K_EPSILON, ZCDP
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import options_of
from release_pipeline.policy.hierarchies import Read
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.loading.load import parse_changed
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.policy.values.scalars import option_of

Values = Mapping[str, Any]
_ORDER = ("method", "definition", "epsilon", "delta", "k", "scope", "partitions", "weights", "swap")
# options of a policy that other methods keep, and that a summary leaves out
_UNSAID = ("clamp", "consistency", "order", "statistic", "grouping", "metric")
_KEPT = (*_UNSAID, "weights", "swap")
_QUIET = (*_UNSAID, "method", "definition", "delta", "weights", "swap")
USUAL = ("laplace", "dp-um", "idp-ls", "idp-cbls", "dp-cdf", "dp-table")  # the methods to try for a policy with noise
TIMES = (Decimal("0.25"), Decimal("0.5"), Decimal(1), Decimal(2), Decimal(4))  # multiples of the policy's epsilon
SIZES = (3, 10, 30, 100)  # of clusters, in addition to the policy's own
USUAL_SCOPE = "column"  # not shown
NEAR = 2  # sizes with a smaller ratio give the same picture


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to protect: `protect` as in a policy file."""

    protect: Values

    @property
    def method(self) -> str:
        """Return its method."""
        return str(self.protect["method"])

    @property
    def summary(self) -> str:
        """Return the setting in one line, which differs from those of the others."""
        parts = [self.method]
        if self.protect.get("definition") == "zcdp":
            parts.append("by rho")
        parts += [
            f"{key} {_flow(value)}"
            for key, value in self.ordered.items()
            if key not in _QUIET and value not in (None, USUAL_SCOPE)
        ]
        if weights := self.protect.get("weights"):
            parts.append("weights " + ", ".join(f"{name} {_flow(weight)}" for name, weight in weights.items()))
        if swap := self.protect.get("swap"):
            parts.append(f"swap k {swap['k']}")
        return ", ".join(parts)

    @property
    def block(self) -> str:
        """Return the line of a policy file."""
        return f"protect: {_flow(self.ordered)}"

    @property
    def ordered(self) -> Values:
        """Return its options in the order in which a file has them."""
        names = [*(key for key in _ORDER if key in self.protect), *(key for key in self.protect if key not in _ORDER)]
        return {name: self.protect[name] for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The axes of settings. Without names: the usual ones for the policy. `swaps`: the k of blocks, 0 for no swapping."""

    methods: Sequence[str] = ()
    epsilons: Sequence[Decimal] = ()
    sizes: Sequence[int] = ()
    swaps: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """The policy of a file under a setting. `changes`: sentences on other parts that differ, besides `protect`."""

    setting: Setting
    policy: Policy
    changes: tuple[str, ...] = ()


def own_setting(raw: Values) -> Setting:
    """Return the setting of the file itself."""
    return Setting(dict(raw["protect"]))


def list_settings(raw: Values, policy: Policy, axes: Axes) -> list[Setting]:
    """Return the policy's own setting first, then all others that the axes make, each once."""
    current = own_setting(raw)
    settings = {_key(current): current}
    for method in axes.methods or _usual_methods(policy):
        for setting in _settings_of(method, current, policy, axes):
            settings.setdefault(_key(setting), setting)
    return list(settings.values())


def apply(text: str, setting: Setting, *, name: str, read: Read) -> Changed:
    """Return the changed policy of the file; raises `PolicyInvalid` if it is not valid."""
    changes: list[str] = []

    def change(raw: dict[str, Any]) -> dict[str, Any]:
        return change_values(raw, setting, changes)

    policy = parse_changed(text, change, name=name, read=read)
    return Changed(setting, policy, tuple(dict.fromkeys(changes)))


def change_values(raw: dict[str, Any], setting: Setting, changes: list[str]) -> dict[str, Any]:
    """Return the values of the file under the setting; other changes are added to `changes`."""
    changed = {**raw, "protect": dict(setting.protect)}
    columns = {name: _change_column(name, dict(column), setting, changes) for name, column in raw["columns"].items()}
    changed["columns"] = columns
    if "swap" in setting.protect:
        _raise_groups(changed, setting.protect["swap"]["k"], changes)
    if find_method(setting.method).family == "whole-table" and "suppress" in changed:
        del changed["suppress"]
        changes.append("without suppress: rows are nobody's")
    return changed


def _raise_groups(changed: dict[str, Any], k: int, changes: list[str]) -> None:
    """Raise the least size of groups of kept quasi-identifiers to that of a block, with k records for each that one person may
    have."""
    person, columns = cast(Any, changed.get("person")), cast(Mapping[str, Values], changed["columns"])
    of_person: Values = cast(Values, person) if isinstance(person, Mapping) else {}
    least = k * int(of_person.get("records_per_release") or 1)
    suppress = cast(Values, changed.get("suppress") or {})
    was = suppress.get("quasi_groups_below")
    if (was is None or was < least) and any(_is_kept_quasi(column) for column in columns.values()):
        changed["suppress"] = {"at_most": "5%", **suppress, "quasi_groups_below": least}
        changes.append(f"suppress: quasi_groups_below: {least}" + (f" in place of {was}" if was else ", at_most: 5%"))


def _is_kept_quasi(column: Values) -> bool:
    """Return whether a column is not swapped, and groups share its entries."""
    return column.get("do") == "keep" and column.get("role") in RECOGNISED


def _change_column(name: str, column: dict[str, Any], setting: Setting, changes: list[str]) -> dict[str, Any]:
    family, does = find_method(setting.method).family, column.get("do")
    if family == "whole-table" and does in ("noise", "keep", "swap"):
        changes.append(f"{name}: do: synthesise in place of do: {does}")
        column["do"] = "synthesise"
        if column.get("role") == "weight":
            changes.append(f"{name}: role: confidential in place of weight, for synthetic rows stand for no number of people")
            column["role"] = "confidential"
    elif family != "whole-table" and does == "synthesise":
        column["do"] = "noise" if "domain" in column else "keep"
        changes.append(f"{name}: do: {column['do']} in place of do: synthesise")
    is_swapped = "swap" in setting.protect
    if family != "whole-table" and column.get("role") == "confidential" and column["do"] in ("keep", "swap"):
        does, column["do"] = column["do"], "swap" if is_swapped else "keep"
        if does != column["do"]:
            changes.append(f"{name}: do: {column['do']} in place of do: {does}")
    if column["do"] in ("noise", "synthesise") and "domain" in column:
        for option in [key for key in column if family in option_of(NoiseColumn, key).not_for]:
            changes.append(f"{name}: without {option}")
            del column[option]
    return column


def _usual_methods(policy: Policy) -> list[str]:
    method = policy.protect.method
    if policy.method.family in ("vectors", "classes"):  # these need other columns than the rest
        return [method]
    return list(dict.fromkeys([method, *USUAL]))


def _settings_of(method: str, current: Setting, policy: Policy, axes: Axes) -> Iterator[Setting]:
    """Yield the settings of a method, with the definition, the scope and the other options of the policy that the method has."""
    spec = find_method(method)
    base = {key: current.protect[key] for key in _KEPT if key in current.protect and _takes(method, key, current)}
    if current.protect.get("definition") == "zcdp":
        if "zcdp" not in {claim.definition.key for claim in spec.claims}:
            return
        base |= {"definition": "zcdp", "delta": current.protect["delta"]}
    total = current.protect.get("epsilon")
    usual = [Decimal(total) * times for times in TIMES] if total is not None else [Decimal(1)]
    epsilons: Sequence[Decimal | None] = [None] if method == "mdav" else axes.epsilons or usual
    scope = _scope_of(method, current)
    for swap, k, epsilon in product(axes.swaps or (None,), _sizes_of(method, policy, axes), epsilons):
        protect: dict[str, Any] = {"method": method, "epsilon": epsilon, "k": k, **base, "scope": scope}
        if swap is not None and _takes(method, "swap", current):
            protect["swap"] = {"k": swap, "within": "kept"} if swap else None
        yield Setting({key: value for key, value in protect.items() if value is not None})


def _sizes_of(method: str, policy: Policy, axes: Axes) -> Sequence[int | None]:
    spec, k = find_method(method), policy.protect.k
    is_by_value = policy.method.family == "by-value"
    if spec.family == "whole-table" or (spec.family == "columns" and spec.sums is None):
        return (None,)
    if spec.family == "by-value" and not axes.sizes:
        return (k if is_by_value and k != 1 else None,)
    current = None if is_by_value else k
    others = [size for size in SIZES if current is None or not current / NEAR < size < current * NEAR]
    return [size for size in axes.sizes or sorted([*others, *([current] if current else [])]) if size >= spec.least_k]


def _scope_of(method: str, current: Setting) -> str | None:
    """Return the scope of the policy if the method has it; else the usual one."""
    scope, spec = current.protect.get("scope"), find_method(method)
    return scope if spec.family in ("columns", "vectors") and scope in spec.scopes else None


def _takes(method: str, key: str, current: Setting) -> bool:
    """Return whether an option of the policy is valid with another method."""
    model = options_of(method)
    if key not in model.model_fields:
        return False
    if key in ("consistency", "clamp"):
        return method == current.method
    return find_method(method).family not in option_of(model, key).not_for


def _key(setting: Setting) -> tuple[Any, ...]:
    return tuple(sorted((key, _flow(value)) for key, value in setting.protect.items()))


def _flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(part)}" for key, part in cast(Values, value).items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, cast(Sequence[Any], value))) + "]"
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return decimal_text(Decimal(value))
    return str(value)


# The comparison of claims, and the settings that no other beats: one rule, for lists and for pages.


IMPLIED = {DP.key: (IDP.key, ZCDP.key)}  # definitions implied by another at the same epsilon
OF_CLASSES = (K_ANONYMITY.key, K_EPSILON.key)  # definitions whose k is a promise


@dataclass(frozen=True, slots=True)
class Strength:
    """The kind of claim, apart from its amount: for a `definition` without an epsilon, or with classes of k, the k counts."""

    definition: str
    scope: str
    covers_table: bool = False
    k: int | None = None

    def covers(self, other: Strength) -> bool:
        """Return whether it promises everything that the other does, at the same epsilon.

        >>> dp, idp = Strength("dp", "column"), Strength("idp", "column")
        >>> dp.covers(idp), idp.covers(dp)
        (True, False)
        """
        if self.definition != other.definition:
            return other.definition in IMPLIED.get(self.definition, ()) and self._is_as_wide(other)
        if self.definition in OF_CLASSES and (self.k or 0) < (other.k or 0):
            return False
        return self._is_as_wide(other)

    def _is_as_wide(self, other: Strength) -> bool:
        if self.covers_table or other.covers_table:
            return self.covers_table
        return self.scope == other.scope or (self.scope, other.scope) == ("column", "centroid")


def find_best(claims: Sequence[Strength], epsilons: Sequence[float | None], figures: Sequence[float | None]) -> list[bool]:
    """Return for each setting whether no other with as strong a claim has at most the same epsilon and figure, and less of one.
    False without a figure.

    >>> find_best([Strength("dp", "column")] * 3, [1.0, 2.0, 2.0], [0.5, 0.1, 0.6])
    [True, True, False]
    """
    costs = [math.inf if epsilon is None else epsilon for epsilon in epsilons]
    return [
        figure is not None
        and math.isfinite(figure)
        and not any(
            other is not None
            and math.isfinite(other)
            and claims[j].covers(claims[i])
            and costs[j] <= costs[i]
            and other <= figure
            and (costs[j] < costs[i] or other < figure)
            for j, other in enumerate(figures)
        )
        for i, figure in enumerate(figures)
    ]
