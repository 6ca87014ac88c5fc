"""The methods that count by value. Their mathematics is in `privacy.by_value`."""

from release_pipeline.privacy.catalogue.definitions import DP, FOR_ALL_TABLES, FOR_ALL_TABLES_RHO, SAME, ZCDP, state_noise
from release_pipeline.privacy.catalogue.spec import BY_RHO, ClaimSpec, Kit, MethodSpec

_COUNTS = (
    "for each masked column, with its part of epsilon, the noisy counts of its cells, stage after stage; which cells a stage has "
    "follows from the noisy counts before it, and the released values from noisy counts alone"
)
_LINKS = Kit(
    slopes="which released value a record has is decided by its rank in each column, so that how columns go together is kept by "
    "ranks alone, and links come out changed by an amount that depends on the data."
)

DP_CDF = MethodSpec(
    name="dp-cdf",
    family="by-value",
    summary="noisy counts by value on public cells, finer where noisy counts say that it pays; every rank is given the value "
    "that explains them",
    paper="this project's own (docs/methods.md, section 7); noisy counts as in Dwork et al., Calibrating Noise to Sensitivity in "
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
    kit=_LINKS,
)
BY_VALUE_METHODS = (DP_CDF,)
