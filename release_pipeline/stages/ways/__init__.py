"""The ways from checked records to masked ones: column by column, or class by class. `find_way` gives that of a policy."""

from release_pipeline.policy import Policy
from release_pipeline.policy.model import ProtectClasses
from release_pipeline.stages.ways.classes import ClassWay
from release_pipeline.stages.ways.columns import ColumnWay
from release_pipeline.stages.ways.way import CLASS, RECORD, Figures, Grouped, Suppressed, Way

__all__ = ["CLASS", "RECORD", "Figures", "Grouped", "Suppressed", "Way", "find_way"]


def find_way(policy: Policy) -> Way:
    """The way that the policy's method goes."""
    return ClassWay(policy, policy.protect) if isinstance(policy.protect, ProtectClasses) else ColumnWay(policy, policy.protect)
