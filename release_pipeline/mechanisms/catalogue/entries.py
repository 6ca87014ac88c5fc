"""The methods that work column by column. An entry here is everything that policy, card, report and analyst need about one; its
mathematics is in `scales` and `sensitivity`, its section in docs/mechanisms.md, its example for `audit-claims` in
`experiments/claims.py`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release_pipeline.mechanisms.accounting.scales import (
    CALIBRATED,
    LOCAL_SENSITIVITY,
    OF_DOMAIN,
    OF_DOMAIN_BY_RHO,
    OF_MOVES,
    PLAIN,
    TRIMMED,
    ScaleRule,
    Sums,
)
from release_pipeline.mechanisms.catalogue.spec import (
    BY_RHO,
    DP,
    FOR_ACTUAL_TABLE,
    FOR_ALL_TABLES,
    FOR_ALL_TABLES_RHO,
    IDP,
    K_ANONYMITY,
    K_EPSILON,
    PSEUDORANDOM,
    SAME,
    UNBOUNDED,
    ZCDP,
    ClaimSpec,
    Definition,
    Kit,
    ListLoss,
    MethodSpec,
    state_noise,
)

IR16 = (
    "Sanchez et al., Utility-preserving differentially private data releases via individual ranking microaggregation, "
    "Information Fusion 30, 2016"
)
IDP24 = (
    "Soria-Comas et al., Conciliating Privacy and Utility in Data Releases via Individual Differential Privacy and "
    "Microaggregation, Transactions on Data Privacy 18, 2025"
)
_LIST = "for each masked column, with its part of epsilon, the noisy {} of all its clusters in ascending order"
_ONE = "for each masked column, with its part of epsilon, the noisy {} of one cluster, by its number in ascending order"
_RECORDS = "for each masked column, with its part of epsilon, every record's number with noise of its own, record by record"
_LIST_LOSES_MORE = "The whole list of a column can lose more than epsilon."
_OVER_RECORDS = "isotonic consistency over records would use their true order, which laplace does not protect"
_OVER_CENTROIDS = "an isotonic value depends on all noisy centroids, so a claim for each centroid separately would not hold"
_ONE_AND_LN_2 = Fraction("1.693147180559945309418")  # rounded up: losses are exact integers, never below the bound
LOCAL_LISTS = ListLoss(factor=lambda _: _ONE_AND_LN_2, text="1 + ln 2 times epsilon")
CLUSTER_LISTS = ListLoss(factor=lambda clusters: clusters, text="clusters times epsilon", counts=True)
_LINKS = Kit(
    slopes="each column has clusters of its own, which hide how its values go with others inside a cluster: links come out "
    "weaker by an amount that depends on the data."
)


def _both_scopes(
    section: str, definition: Definition, statement: str, *, rule: ScaleRule, covers_table: bool = False, restores_order: str = ""
) -> tuple[ClaimSpec, ...]:
    """Return claims for the list of a column, under the names of both scopes: a guarantee for a list holds for each of its
    values."""
    return tuple(
        ClaimSpec(
            scope=scope,
            definition=definition,
            section=f"{section}: scopes centroid and column",
            statement=statement,
            rule=rule,
            lists=SAME,
            covers_table=covers_table,
            restores_order=restores_order,
        )
        for scope in ("centroid", "column")
    )


LAPLACE = MethodSpec(
    name="laplace",
    family="columns",
    summary="Laplace noise on every record",
    paper="Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006",
    key="DMNS06",
    claims=_both_scopes(
        "laplace", DP, state_noise(FOR_ALL_TABLES, _RECORDS), rule=OF_DOMAIN, covers_table=True, restores_order=_OVER_RECORDS
    ),
    takes_k=False,
    on_grid="always",
    kit=Kit(slopes="noise on every value draws links between columns towards 0, and the kit does not correct them."),
)
DP_UM = MethodSpec(
    name="dp-um",
    family="columns",
    summary="individual ranking in clusters of k, noise for the whole domain (IR16, IDP24 Alg. 1)",
    paper=IR16,
    key="IR16",
    claims=(
        *_both_scopes("dp-um", DP, state_noise(FOR_ALL_TABLES, _LIST.format("sums")), rule=OF_DOMAIN),
        ClaimSpec(
            scope="column",
            definition=ZCDP,
            section="dp-um: scope column, definition zcdp",
            statement=state_noise(FOR_ALL_TABLES_RHO, _LIST.format("sums").replace("epsilon", "rho")),
            options=BY_RHO,
            rule=OF_DOMAIN_BY_RHO,
            lists=SAME,
        ),
    ),
    sums=PLAIN,
    kit=_LINKS,
)
IDP_LS = MethodSpec(
    name="idp-ls",
    family="columns",
    summary="individual ranking in clusters of k, noise by local sensitivity (IDP24 Prop. 8)",
    paper=f"{IDP24} (Prop. 8)",
    key="IDP24",
    claims=(
        ClaimSpec(
            scope="centroid",
            definition=IDP,
            section="idp-ls: scope centroid",
            statement=state_noise(FOR_ACTUAL_TABLE, _ONE.format("sum"), _LIST_LOSES_MORE),
            rule=LOCAL_SENSITIVITY,
            lists=LOCAL_LISTS,
            restores_order=_OVER_CENTROIDS,
        ),
        ClaimSpec(
            scope="column",
            definition=IDP,
            section="idp-ls: scope column",
            statement=state_noise(FOR_ACTUAL_TABLE, _LIST.format("sums")),
            rule=CALIBRATED,
            lists=SAME,
            keeps_atoms=True,
        ),
    ),
    sums=PLAIN,
    kit=_LINKS,
)
IDP_CBLS = MethodSpec(
    name="idp-cbls",
    family="columns",
    summary="individual ranking in clusters of k, trimmed means, noise by cluster sensitivity (IDP24 Prop. 9)",
    paper=f"{IDP24} (Prop. 9)",
    key="IDP24",
    claims=(
        ClaimSpec(
            scope="centroid",
            definition=IDP,
            section="idp-cbls: scope centroid",
            statement=state_noise(FOR_ACTUAL_TABLE, _ONE.format("trimmed sum"), _LIST_LOSES_MORE),
            rule=OF_MOVES,
            lists=CLUSTER_LISTS,
            restores_order=_OVER_CENTROIDS,
            keeps_atoms=True,
        ),
        ClaimSpec(
            scope="column",
            definition=IDP,
            section="idp-cbls: scope column",
            statement=state_noise(FOR_ACTUAL_TABLE, _LIST.format("trimmed sums")),
            rule=CALIBRATED,
            lists=SAME,
            keeps_atoms=True,
        ),
    ),
    sums=TRIMMED,
    kit=_LINKS,
)
COLUMN_METHODS = (LAPLACE, DP_UM, IDP_LS, IDP_CBLS)


# The methods that count by value. Their mathematics is in `mechanisms.by_value`.


_COUNTS = (
    "for each masked column, with its part of epsilon, the noisy counts of its cells, stage after stage; which cells a stage has "
    "follows from the noisy counts before it, and the released values from noisy counts alone"
)
_LINKS_BY_VALUE = Kit(
    slopes="which released value a record has is decided by its rank in each column, so that how columns go together is kept by "
    "ranks alone, and links come out changed by an amount that depends on the data."
)

DP_CDF = MethodSpec(
    name="dp-cdf",
    family="by-value",
    summary="noisy counts by value on public cells, finer where noisy counts say that it pays; every rank is given the value "
    "that explains them",
    paper="this project (docs/methods.md, section 7); noisy counts as in Dwork et al., Calibrating Noise to Sensitivity in "
    "Private Data Analysis, TCC 2006",
    key="DMNS06",
    claims=(
        ClaimSpec(
            scope="column",
            definition=DP,
            section="dp-cdf: scope column",
            statement=state_noise(FOR_ALL_TABLES, _COUNTS),
            lists=SAME,
        ),
        ClaimSpec(
            scope="column",
            definition=ZCDP,
            section="dp-cdf: scope column, definition zcdp",
            statement=state_noise(FOR_ALL_TABLES_RHO, _COUNTS.replace("epsilon", "rho")),
            options=BY_RHO,
            lists=SAME,
        ),
    ),
    on_grid="always",
    kit=_LINKS_BY_VALUE,
)
BY_VALUE_METHODS = (DP_CDF,)


# The methods that use several columns at once: clusters of all noise columns together, and classes of generalised ones. How they
# make clusters and noise is in `vectors`, `classes` and `class_noise`.


_ALL_ROWS = "the masked columns of all rows in random order"
_ONE_VECTOR = "the noisy {} of all masked columns of one cluster, by its number along the order"
_BY_ORDER = ListLoss(factor=None, text="clusters that one change may move", counts=True)  # `chains.order_reach`
_TRIMMED = ListLoss(factor=lambda clusters: clusters, text=_BY_ORDER.text, counts=True)
_ORDERS = ("corner", "hilbert")
_GROUPED = "what grouping does to links between columns depends on the data."
STATISTICS: dict[str, tuple[Sums, Definition]] = {"plain": (PLAIN, DP), "trimmed": (TRIMMED, IDP)}


def _vector_claim(statistic: str, scope: str, order: str) -> ClaimSpec:
    sums, definition = STATISTICS[statistic]
    formula = FOR_ALL_TABLES if definition is DP else FOR_ACTUAL_TABLE
    of_table = scope == "table"
    by_order = of_table and sums is PLAIN  # the only one with a different proof for each order
    kind_of_sums = "sums" if sums is PLAIN else "trimmed sums"
    return ClaimSpec(
        scope=scope,
        definition=definition,
        section=f"dp-mdav, {statistic} sums: scope {scope}{f', order {order}' if by_order else ''}",
        statement=state_noise(formula, _ALL_ROWS if of_table else _ONE_VECTOR.format(kind_of_sums)),
        options={"statistic": statistic, "order": order},
        lists=SAME if of_table else _BY_ORDER if sums is PLAIN else _TRIMMED,
        covers_table=True,
        restores_order="dp-mdav has no order to restore",
    )


DP_MDAV = MethodSpec(
    name="dp-mdav",
    family="vectors",
    summary="clusters of k along an order of single records, all columns together, noise on their centroids (KDP13)",
    paper="Soria-Comas et al., Improving the Utility of Differentially Private Data Releases via k-Anonymity, TrustCom 2013",
    key="KDP13",
    claims=tuple(
        _vector_claim(statistic, scope, order) for scope in ("centroid", "table") for statistic in STATISTICS for order in _ORDERS
    ),
    kit=Kit(
        means="records share clusters of all columns together, and values were moved back into the domain after the noise.",
        slopes=_GROUPED,
    ),
)
MDAV = MethodSpec(
    name="mdav",
    family="mdav",
    summary="clusters of k to 2k-1 alike records, all columns together, replaced by their centroids, without noise (DT05)",
    paper="Domingo-Ferrer and Torra, Ordinal, Continuous and Heterogeneous k-Anonymity through Microaggregation, Data Mining and "
    "Knowledge Discovery 11, 2005",
    key="DT05",
    claims=(
        ClaimSpec(
            scope="cluster",
            definition=K_ANONYMITY,
            section="mdav: scope cluster",
            statement="Every combination of masked values in the table stands in k rows or more. No probability is bounded: "
            "there is no noise.",
            lists=UNBOUNDED,
            restores_order="mdav has no order to restore",
        ),
    ),
    is_noisy=False,
    on_grid="no",
    kit=Kit(slopes=_GROUPED),
)
K_EPSILON_METHOD = MethodSpec(
    name="k-epsilon",
    family="classes",
    summary="classes of k records or more that share their generalised quasi-identifiers, noise inside each class (KEA18)",
    paper="Holohan et al., (k,epsilon)-Anonymity: k-Anonymity with epsilon-Differential Privacy, arXiv 1710.01615, 2017",
    key="KEA18",
    claims=(
        ClaimSpec(
            scope="class",
            definition=K_EPSILON,
            section="k-epsilon: scope class",
            statement="Every combination of labels in the table stands in k rows or more. Let two records of one class exchange "
            "their masked numbers, with classes and noise scales as they are: the probability that the noise gives one of them "
            "the numbers y changes by a factor of at most e^epsilon; that it is kept by suppression too, and released so, by at "
            f"most e^(2 epsilon). {PSEUDORANDOM}",
            lists=UNBOUNDED,
            restores_order="k-epsilon has no order to restore",
        ),
    ),
    on_grid="always",
    kit=Kit(
        means="noise inside each class is as large as the class is wide, which is confidential.",
        slopes=_GROUPED,
    ),
)
TOGETHER_METHODS = (DP_MDAV, MDAV, K_EPSILON_METHOD)


# The methods that count a whole table. Their mathematics is in `mechanisms.whole_table`.


_COUNTS_OF_TABLES = (
    "with epsilon for all columns together, the cut points of the columns that are wide, noisy counts of the cells of every "
    "column and of the groups of every pair of columns; the rows follow from these alone, so that the claim is for everything "
    "that a reader sees"
)
_PAIRS = "of every pair of columns;"
_TOGETHER = "of every pair of columns, counted one by one or among those of several columns together;"
_SYNTHETIC = (
    "rows are synthetic: how columns go together in them is of the model that made them as much as of the noisy counts, and no "
    "interval that reruns of the method give covers that (of 95% intervals for correlations 55% held, for slopes 62 to 76%). The "
    "counts of two columns by groups have intervals that do (pair)."
)

DP_TABLE = MethodSpec(
    name="dp-table",
    family="whole-table",
    summary="noisy counts of every column and of every pair of columns; synthetic rows generated from them",
    paper="this project (docs/methods.md, section 9); cut points by the exponential mechanism as in McSherry & Talwar, "
    "Mechanism Design via Differential Privacy, FOCS 2007",
    key="MT07",
    claims=(
        ClaimSpec(
            scope="table",
            definition=DP,
            section="dp-table: scope table",
            statement=state_noise(FOR_ALL_TABLES, _COUNTS_OF_TABLES.replace(_PAIRS, _TOGETHER)),
            lists=SAME,
            covers_table=True,
        ),
        ClaimSpec(
            scope="table",
            definition=ZCDP,
            section="dp-table: scope table, definition zcdp",
            statement=state_noise(FOR_ALL_TABLES_RHO, _COUNTS_OF_TABLES.replace("epsilon", "rho")),
            options=BY_RHO,
            lists=SAME,
            covers_table=True,
        ),
    ),
    takes_k=False,
    on_grid="always",
    kit=Kit(slopes=_SYNTHETIC),
)
WHOLE_TABLE_METHODS = (DP_TABLE,)


# The claim of a table next to the rows, for every method of the rows. Its mathematics is in `mechanisms.tables`.


_CELLS = (
    "for each declared table, with its own epsilon, the noisy cells of all of its levels: in every combination of declared "
    "labels, how many records have them, or what a declared number of theirs adds up to"
)


@dataclass(frozen=True, slots=True)
class TableClaim:
    """A claim of tables: its definition, its formal statement, and the section of docs/mechanisms.md that proves it."""

    definition: Definition
    section: str
    statement: str


PURE_TABLES = TableClaim(DP, "tables: epsilon", state_noise(FOR_ALL_TABLES, _CELLS))
RHO_TABLES = TableClaim(ZCDP, "tables: rho", state_noise(FOR_ALL_TABLES_RHO, _CELLS.replace("epsilon", "rho")))
TABLE_CLAIMS = (PURE_TABLES, RHO_TABLES)
