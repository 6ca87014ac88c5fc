"""The methods that look at several columns at once: clusters of all noise columns together, and classes of generalised ones. How
they make clusters and noise is in `vectors`, `classes` and `class_noise`."""

from release_pipeline.privacy.catalogue.definitions import (
    DP,
    FOR_ACTUAL_TABLE,
    FOR_ALL_TABLES,
    IDP,
    K_ANONYMITY,
    K_EPSILON,
    PSEUDORANDOM,
    SAME,
    UNBOUNDED,
    state_noise,
)
from release_pipeline.privacy.catalogue.spec import ClaimSpec, Definition, Kit, ListLoss, MethodSpec
from release_pipeline.privacy.scales import PLAIN, TRIMMED, Sums

_ALL_ROWS = "the masked columns of all rows in random order"
_ONE_VECTOR = "the noisy {} of all masked columns of one cluster, by its number along the order"
_BY_ORDER = ListLoss(factor=None, words="clusters that one change may move", counts=True)  # `chains.order_reach`
_TRIMMED = ListLoss(factor=lambda clusters: clusters, words=_BY_ORDER.words, counts=True)
_ORDERS = ("corner", "hilbert")
_GROUPED = "what grouping does to links between columns depends on the data."
_LACKS = "the card lacks options of its method."
STATISTICS: dict[str, tuple[Sums, Definition]] = {"plain": (PLAIN, DP), "trimmed": (TRIMMED, IDP)}


def _vector_claim(statistic: str, scope: str, order: str) -> ClaimSpec:
    sums, definition = STATISTICS[statistic]
    formula = FOR_ALL_TABLES if definition is DP else FOR_ACTUAL_TABLE
    of_table = scope == "table"
    by_order = of_table and sums is PLAIN  # the only one whose proof is another for each order
    words = "sums" if sums is PLAIN else "trimmed sums"
    return ClaimSpec(
        scope=scope,
        definition=definition,
        section=f"dp-mdav, {statistic} sums: scope {scope}{f', order {order}' if by_order else ''}",
        statement=state_noise(formula, _ALL_ROWS if of_table else _ONE_VECTOR.format(words)),
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
        simulation=_LACKS,
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
        simulation=_LACKS,
    ),
)
TOGETHER_METHODS = (DP_MDAV, MDAV, K_EPSILON_METHOD)
