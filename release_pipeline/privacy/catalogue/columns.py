"""The methods that work column by column. An entry here is all that policy, card, report and analyst need to know of one; its
mathematics is in `scales` and `sensitivity`, its section in docs/mechanisms.md, its example for `audit-claims` in
`claims.suite`."""

from fractions import Fraction

from release_pipeline.privacy.catalogue.definitions import (
    DP,
    FOR_ACTUAL_TABLE,
    FOR_ALL_TABLES,
    FOR_ALL_TABLES_RHO,
    IDP,
    SAME,
    ZCDP,
    state_noise,
)
from release_pipeline.privacy.catalogue.spec import BY_RHO, ClaimSpec, Definition, Kit, ListLoss, MethodSpec
from release_pipeline.privacy.scales import (
    CALIBRATED,
    LOCAL_SENSITIVITY,
    OF_DOMAIN,
    OF_DOMAIN_BY_RHO,
    OF_MOVES,
    PLAIN,
    TRIMMED,
    ScaleRule,
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
_OVER_CENTROIDS = "an isotonic value depends on all noisy centroids, so a claim for each centroid on its own would not hold"
_ONE_AND_LN_2 = Fraction("1.693147180559945309418")  # rounded up: losses are exact integers, never below the bound
LOCAL_LISTS = ListLoss(factor=lambda _: _ONE_AND_LN_2, words="1 + ln 2 times epsilon")
CLUSTER_LISTS = ListLoss(factor=lambda clusters: clusters, words="clusters times epsilon", counts=True)
_LINKS = Kit(
    slopes="each column has clusters of its own, which hide how its values go with others inside a cluster: links come out "
    "weaker by an amount that depends on the data."
)


def _both_scopes(
    section: str, definition: Definition, statement: str, *, rule: ScaleRule, covers_table: bool = False, restores_order: str = ""
) -> tuple[ClaimSpec, ...]:
    """A claim for the list of a column, under the name of either scope: what holds for a list holds for each of its values."""
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
