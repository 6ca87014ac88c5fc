"""The methods that count a whole table. Their mathematics is in `privacy.whole_table`."""

from release_pipeline.privacy.catalogue.definitions import DP, FOR_ALL_TABLES, FOR_ALL_TABLES_RHO, SAME, ZCDP, state_noise
from release_pipeline.privacy.catalogue.spec import BY_RHO, ClaimSpec, Kit, MethodSpec

_COUNTS = (
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
    summary="noisy counts of every column and of every pair of columns; synthetic rows that go with them, nobody's record",
    paper="this project's own (docs/methods.md, section 9); cut points by the exponential mechanism as in McSherry & Talwar, "
    "Mechanism Design via Differential Privacy, FOCS 2007",
    key="MT07",
    claims=(
        ClaimSpec(
            scope="table",
            definition=DP,
            section="dp-table: scope table",
            statement=state_noise(FOR_ALL_TABLES, _COUNTS.replace(_PAIRS, _TOGETHER)),
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
        slopes=_SYNTHETIC,
        simulation="a table of one's own would have to be counted anew: rerun does that with the released rows.",
    ),
)
WHOLE_TABLE_METHODS = (DP_TABLE,)
