"""What an analyst needs to use a release well, from public facts alone: its privacy card and its data.

    from release_pipeline.analyst import read_release
    release = read_release("my-people/1/r1")
    release.noise_of("income"), release.mean("income"), release.slope("income", ["age"])

Everything that it cannot answer honestly it declines in words (`NoHonestAnswer`). `simulate` releases a table that you made up in
the same way, to see what your own analysis would give; `spread_ties` makes columns of such a table from released ones.
"""

from release_pipeline.analyst.facts import Facts, NoHonestAnswer, read_facts
from release_pipeline.analyst.laws import Law, explain_kit, law_of
from release_pipeline.analyst.means import Interval, Moments
from release_pipeline.analyst.release import Release, read_release
from release_pipeline.analyst.rerun import Rerun, spread_ties
from release_pipeline.analyst.simulating import simulate
from release_pipeline.analyst.tables import Table

__all__ = [
    "Facts",
    "Interval",
    "Law",
    "Moments",
    "NoHonestAnswer",
    "Release",
    "Rerun",
    "Table",
    "explain_kit",
    "law_of",
    "read_facts",
    "read_release",
    "simulate",
    "spread_ties",
]
