"""The methods that count a whole table. Their mathematics is in `privacy.whole_table`."""

from release_pipeline.privacy.catalogue.definitions import DP, FOR_ALL_TABLES, FOR_ALL_TABLES_RHO, SAME, ZCDP, state_noise
from release_pipeline.privacy.catalogue.spec import BY_RHO, ClaimSpec, Kit, MethodSpec

_COUNTS = (
    "with epsilon for all columns together, the cut points of the columns that are wide, noisy counts of the cells of every "
    "column and of the groups of every pair of columns; the rows follow from these alone, so that the claim is for everything "
    "that a reader sees"
)
_SYNTHETIC = (
    "rows are synthetic: what they tell beside the noisy counts is of the model that made them, and no interval covers that."
)

DP_TABLE = MethodSpec(
    name="dp-table",
    family="whole-table",
    summary="noisy counts of every column and of every pair of columns; synthetic rows that go with them, nobody's record",
    paper="this project's own (docs/methods.md, section 9); cut points by the exponential mechanism as in McSherry & Talwar, "
    "Mechanism Design via Differential Privacy, FOCS 2007",
    key="MT07",
    claims=(
        ClaimSpec(
            scope="table",
            definition=DP,
            section="dp-table: scope table",
            statement=state_noise(FOR_ALL_TABLES, _COUNTS),
            lists=SAME,
            covers_table=True,
        ),
        ClaimSpec(
            scope="table",
            definition=ZCDP,
            section="dp-table: scope table, definition zcdp",
            statement=state_noise(FOR_ALL_TABLES_RHO, _COUNTS.replace("epsilon", "rho")),
            options=BY_RHO,
            lists=SAME,
            covers_table=True,
        ),
    ),
    takes_k=False,
    on_grid="always",
    kit=Kit(
        slopes=_SYNTHETIC, simulation="rows of a table of one's own would need all of its counts: run the method on it instead."
    ),
)
WHOLE_TABLE_METHODS = (DP_TABLE,)
