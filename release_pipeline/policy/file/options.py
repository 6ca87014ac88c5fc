"""The options of `protect`, by family of methods: those of columns, of counts by value, of dp-table, of dp-mdav, of mdav and of
k-epsilon.

The family of a method is in `mechanisms.catalogue`; other methods do not exist. How its family uses the options, from rules to
sentences, is in `families`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import Discriminator, Field, StrictInt, Tag, field_validator
from pydantic_core import PydanticCustomError

from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import rho_within
from release_pipeline.mechanisms.catalogue import METHODS, ClaimSpec, Family, MethodSpec, find_claim, find_method, list_methods
from release_pipeline.mechanisms.clusters.lattice import Metric
from release_pipeline.mechanisms.columns.consistency import choose_consistency
from release_pipeline.mechanisms.vectors.vectors import Insensitive, MdavSpec, Order, Statistic, VectorScope
from release_pipeline.policy.file.sections import Suppress, SuppressClasses
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.values.scalars import Budget, Exact, Frozen, Name, Option, YesNo

NOT_A_METHOD = "not_a_method"  # the type of that error
_NO_NOISE = {"mdav": "{method} has no noise and no epsilon"}
_SIZE = Option(hint="It is the number of records per cluster or class, like 25.")

Total = Annotated[Budget, Option(hint="There is no default.", not_for=_NO_NOISE)]
Weights = Annotated[
    dict[Name, Annotated[Exact, Field(gt=0)]],
    Option(not_for={**_NO_NOISE, "whole-table": "{method} has one epsilon for all columns together"}),
]
SCOPE = Option(
    not_for={
        "mdav": "{method} claims k-anonymity, which has no scope",
        "by-value": "{method} claims the list of a column, and there is no other scope",
        "whole-table": "{method} claims the whole table, and there is no other scope",
    }
)
LAW_OF_NOISE = "values outside the domain are for analysts who use the law of the noise, and {method} offers none"


class MethodOptions(Frozen):
    """The options of every method: `partitions`, the number of random parts, each masked separately. `family` is that of the
    catalogue; `only` the one method of it that these options are for, None for all of the family; `suppression` the type of
    `suppress` with them; `makes_clusters` whether k records make a cluster and the number of clusters is public; `is_synthetic`
    whether released rows are synthetic."""

    family: ClassVar[Family]
    suppression: ClassVar[type[Suppress | SuppressClasses]] = Suppress
    only: ClassVar[str | None] = None
    makes_clusters: ClassVar[bool] = True
    is_synthetic: ClassVar[bool] = False

    partitions: Annotated[StrictInt, Field(ge=2, le=10_000)] | None = None
    method: str

    @classmethod
    def methods(cls) -> tuple[str, ...]:
        """The methods that have these options."""
        return list_methods(cls.family) if cls.only is None else (cls.only,)

    @field_validator("method", mode="before")
    @classmethod
    def _is_known(cls, method: Any) -> Any:
        if method not in cls.methods():
            raise PydanticCustomError(NOT_A_METHOD, "not a method")
        return method

    @property
    def spec(self) -> MethodSpec:
        """Return the catalogue's entry for the method."""
        return find_method(self.method, family=self.family)

    @property
    def told_apart_by(self) -> dict[str, str]:
        """Return the options that distinguish the claims of one scope."""
        return {}

    @property
    def by_rho(self) -> bool:
        """Return whether the budget of a release is rho, and its epsilon comes with a delta."""
        return False

    @property
    def charged(self) -> Epsilon | None:
        """Return what a release may lose for one record, in the unit of its definition: epsilon, or rho; None for a method
        without."""
        total: Epsilon | None = getattr(self, "epsilon", None)
        return total

    @property
    def swapped(self) -> Swap | None:
        """Return how values are swapped after masking; None if they are not."""
        swap: Swap | None = getattr(self, "swap", None)
        return swap

    @property
    def order_restored(self) -> str:
        """Return whether the order of released values is restored: isotonic or none."""
        return "none"

    @property
    def clamps(self) -> bool:
        """Return whether released values are moved back into their declared domain."""
        return True

    @property
    def cuts_numbers(self) -> bool:
        """Return whether generalised numbers are cut class by class, each into its own range."""
        return False

    def cluster(self, columns: Mapping[str, NoiseColumn]) -> Insensitive | MdavSpec | None:
        """Return how clusters of all these columns together are made; None if there are none."""
        return None

    def grouped_at_least(self, *, only_masked: bool) -> int:
        """Return how many records each group of equal released quasi-identifiers has by the method alone; 0 if the method
        guarantees none. `only_masked`: whether all of them are masked."""
        return 0

    @classmethod
    def canonical_order(cls, *, masked: list[str], generalised: list[str]) -> dict[str, list[str]]:
        """Return the order of those columns that decides between equally good clusters or classes: a part of the canonical
        form."""
        return {}


class ConcentratedOptions(MethodOptions):
    """A method that may claim (epsilon, delta)-DP by rho: `definition: zcdp` with `delta`."""

    definition: Annotated[
        Literal["zcdp"] | None,
        Option(
            not_for=dict.fromkeys(
                ("vectors", "mdav", "classes"), "it is for dp-table, dp-cdf and dp-um, and {method} has no claim by rho"
            ),
        ),
    ] = None
    delta: Annotated[
        Annotated[Exact, Field(gt=0, lt=1)] | None,
        Option(
            hint="Name a small one, like 0.000001.",
            not_for=dict.fromkeys(("vectors", "mdav", "classes"), "only definition: zcdp has a delta, and {method} has none"),
        ),
    ] = None
    epsilon: Total

    @property
    def by_rho(self) -> bool:
        """Return whether the budget of a release is rho, and its epsilon comes with a delta."""
        return self.definition is not None and self.delta is not None

    @property
    def charged(self) -> Epsilon:
        """Return epsilon, or the most rho that gives it at this delta."""
        if self.definition is None or self.delta is None:
            return self.epsilon
        return Epsilon(rho_within(self.epsilon.nano, self.delta))

    @property
    def told_apart_by(self) -> dict[str, str]:
        """Return the options that distinguish the claims of one scope."""
        return {} if self.definition is None else {"definition": self.definition}


class Swap(Frozen):
    """Each column's masked values are swapped at random, column by column, inside blocks of `k` or more similar records that have
    the same kept quasi-identifiers."""

    k: Annotated[StrictInt, Field(ge=2), Option(hint="It is the number of people in a block, like 10.")]
    within: Annotated[Literal["kept"], Option(hint="Say kept: blocks lie within the groups of kept quasi-identifiers.")]


SwapOption = Annotated[
    Swap | None,
    Option(
        hint="Say {k: 10, within: kept}.",
        not_for={
            "whole-table": "the rows of {method} are nobody's, and there is nothing to swap",
            "vectors": "it is for methods of single columns, and {method} gives whole rows",
            "mdav": "it is for methods of single columns, and {method} gives whole rows",
            "classes": "it is for methods of single columns, and {method} makes classes",
        },
    ),
]


class ColumnOptions(ConcentratedOptions):
    """A method that works column by column, and its claim. `epsilon` is for the whole release, split over the noise columns by
    `weights`. With `clamp: no` released values stay where the noise put them: the claim is the same, because post-processing of
    noisy values costs nothing, and the noise distribution is then exact."""

    family: ClassVar[Family] = "columns"

    k: Annotated[
        Annotated[StrictInt, Field(ge=1)] | None,
        Option(not_for={"whole-table": "{method} makes no clusters: its rows are nobody's"}),
    ] = None
    scope: Annotated[Literal["centroid", "column"], SCOPE] = "column"
    consistency: Annotated[
        Literal["isotonic", "none"] | None,
        Option(
            not_for={
                "by-value": "what {method} releases ascends by itself",
                "whole-table": "the rows of {method} are nobody's, and have no order to restore",
            }
        ),
    ] = None
    clamp: Annotated[
        YesNo,
        Option(
            not_for={
                "mdav": "{method} has no noise, so that no value leaves its domain",
                "by-value": "{method} has its noise on counts, so that no value leaves its domain",
                "whole-table": "{method} has its noise on counts, so that no value leaves its domain",
                "vectors": LAW_OF_NOISE,
                "classes": LAW_OF_NOISE,
            },
        ),
    ] = "yes"
    weights: Weights = Field(default_factory=dict[str, Decimal])
    swap: SwapOption = None

    @property
    def order_restored(self) -> str:
        """Return whether the order of released values is restored: isotonic or none."""
        return choose_consistency(self.consistency, method=self.method, scope=self.scope)

    @property
    def clamps(self) -> bool:
        """Return whether released values are moved back into their declared domain."""
        return self.clamp == "yes"


class ByValueOptions(ConcentratedOptions):
    """A method that counts by value. `epsilon` is for the whole release, split over the noise columns by `weights`; k ranks are
    given one value. It always claims the list of a column."""

    family: ClassVar[Family] = "by-value"
    scope: ClassVar[str] = "column"  # the claim is for the list of a column

    k: Annotated[StrictInt, Field(ge=1)] = 1
    weights: Weights = Field(default_factory=dict[str, Decimal])
    swap: SwapOption = None


class WholeTableOptions(ConcentratedOptions):
    """A method that counts a whole table, for all columns together. It always claims the table."""

    family: ClassVar[Family] = "whole-table"
    makes_clusters: ClassVar[bool] = False
    is_synthetic: ClassVar[bool] = True
    scope: ClassVar[str] = "table"  # the claim is for everything that a reader sees
    k: ClassVar[None] = None
    weights: ClassVar[Mapping[str, Decimal]] = {}  # columns share nothing


class DpMdavOptions(MethodOptions):
    """dp-mdav: clusters of all noise columns together, cut from an order of single records, and noise on their centroids.

    `order`: by distance to the domain's `corner` (the paper's), or along a `hilbert` curve. `statistic`: `plain` sums for eps-DP,
    `trimmed` ones for eps-iDP. `scope`: each `centroid` on its own (the paper's), or the whole `table`.
    """

    family: ClassVar[Family] = "vectors"
    only: ClassVar[str | None] = "dp-mdav"  # the code that computes it knows no other

    epsilon: Total
    k: Annotated[StrictInt, Field(ge=1), _SIZE]
    order: Annotated[
        Order,
        Option(hint="Say corner (the paper's) or hilbert.", not_for={"mdav": "an order is what dp-mdav cuts its clusters from"}),
    ]
    statistic: Statistic = "plain"
    scope: Annotated[VectorScope, SCOPE] = "table"
    weights: Weights = Field(default_factory=dict[str, Decimal])

    @property
    def told_apart_by(self) -> dict[str, str]:
        """Return the options that distinguish the claims of one scope."""
        return {"statistic": self.statistic, "order": self.order}

    def cluster(self, columns: Mapping[str, NoiseColumn]) -> Insensitive:
        """Return how clusters of all these columns together, and their noise, are made."""
        return Insensitive(
            epsilons=tuple(split_epsilon(self, columns).values()),
            k=self.k,
            order=self.order,
            statistic=self.statistic,
            scope=self.scope,
        )

    @classmethod
    def canonical_order(cls, *, masked: list[str], generalised: list[str]) -> dict[str, list[str]]:
        """Return the masked columns: distances and curves take them in order."""
        return {"columns": masked}


class MdavOptions(MethodOptions):
    """mdav: k-anonymity on the noise columns together. Each record gets the centroid of k or more similar records; there is no
    noise, and no epsilon."""

    family: ClassVar[Family] = "mdav"
    only: ClassVar[str | None] = "mdav"  # the code that computes it knows no other
    scope: ClassVar[str] = "cluster"  # the claim is about which of the records of its cluster a released one is
    epsilon: ClassVar[None] = None
    weights: ClassVar[Mapping[str, Decimal]] = {}

    k: Annotated[StrictInt, Field(ge=2), _SIZE]

    def cluster(self, columns: Mapping[str, NoiseColumn]) -> MdavSpec:
        """Return how clusters of all these columns together are made."""
        return MdavSpec(self.k)

    def grouped_at_least(self, *, only_masked: bool) -> int:
        """Return k if all are masked: a cluster has k records, which agree in everything that is masked."""
        return self.k if only_masked else 0

    @classmethod
    def canonical_order(cls, *, masked: list[str], generalised: list[str]) -> dict[str, list[str]]:
        """Return the masked columns: distances take them in order."""
        return {"columns": masked}


class KEpsilonOptions(MethodOptions):
    """(k,epsilon)-anonymity: classes of k records or more that share their generalised quasi-identifiers, with noise inside them.

    `grouping` makes the classes: `ola` one level of every hierarchy for all records, the best by `metric`; `mondrian` cuts class
    by class. `epsilon` is split over the noise columns by `weights`.
    """

    family: ClassVar[Family] = "classes"
    suppression: ClassVar[type[Suppress | SuppressClasses]] = SuppressClasses
    makes_clusters: ClassVar[bool] = False
    only: ClassVar[str | None] = "k-epsilon"  # the code that computes it knows no other
    scope: ClassVar[str] = "class"  # the claim is about what a record's released numbers reveal among those of its class

    grouping: Annotated[
        Literal["ola", "mondrian"], Option(hint="Say ola (one level for all records) or mondrian (class by class).")
    ]
    metric: Metric | None = None
    k: Annotated[StrictInt, Field(ge=2), _SIZE]
    epsilon: Total
    weights: Weights = Field(default_factory=dict[str, Decimal])

    @property
    def chosen_metric(self) -> Metric:
        """Return the metric of `ola`."""
        return self.metric or "categorical-precision"

    @property
    def cuts_numbers(self) -> bool:
        """Return whether generalised numbers are cut class by class, each into its own range."""
        return self.grouping == "mondrian"

    def grouped_at_least(self, *, only_masked: bool) -> int:
        """Return k: the least number of records of a class."""
        return self.k

    @classmethod
    def canonical_order(cls, *, masked: list[str], generalised: list[str]) -> dict[str, list[str]]:
        """Return the generalised columns: the first of equally good levels, or cuts, is taken."""
        return {"order": generalised}


AnyOptions: TypeAlias = ColumnOptions | ByValueOptions | WholeTableOptions | DpMdavOptions | MdavOptions | KEpsilonOptions
OPTIONS: dict[str, type[AnyOptions]] = {
    model.family: model
    for model in (ColumnOptions, ByValueOptions, WholeTableOptions, DpMdavOptions, MdavOptions, KEpsilonOptions)
}


def options_of(method: Any) -> type[AnyOptions]:
    """Return the options of the methods in this one's family; for an unknown method those of columns, which refuse the name."""
    spec = METHODS.get(method) if isinstance(method, str) else None
    return OPTIONS.get(spec.family, ColumnOptions) if spec is not None else ColumnOptions


def _family_of(value: Any) -> str:
    method = cast(dict[str, Any], value).get("method") if isinstance(value, dict) else getattr(value, "method", None)
    return options_of(method).family


ProtectSection: TypeAlias = Annotated[
    Annotated[ColumnOptions, Tag("columns")]
    | Annotated[ByValueOptions, Tag("by-value")]
    | Annotated[WholeTableOptions, Tag("whole-table")]
    | Annotated[DpMdavOptions, Tag("vectors")]
    | Annotated[MdavOptions, Tag("mdav")]
    | Annotated[KEpsilonOptions, Tag("classes")],
    Discriminator(_family_of),
]


def claim_of(protect: AnyOptions) -> ClaimSpec:
    """Return the catalogue's claim for the method, at the scope and with the options that are chosen."""
    return find_claim(protect.method, protect.scope, **protect.told_apart_by)


def split_epsilon(protect: AnyOptions, names: Iterable[str]) -> dict[str, Epsilon]:
    """Return what each of the columns may spend, of epsilon or of rho; empty if the method has no noise, or one budget for all.
    Leftover billionths are assigned by name: the hash ignores the order in the file."""
    listed, total = list(names), protect.charged
    if total is None or protect.is_synthetic:
        return {}
    ordered = sorted(listed)
    shares = dict(zip(ordered, total.split([protect.weights.get(name, Decimal(1)) for name in ordered]), strict=True))
    return {name: shares[name] for name in listed}
