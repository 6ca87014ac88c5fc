"""The analyst's kit: estimates from a release's privacy card and data, using public facts only.

    from release_pipeline.analyst import read_release
    release = read_release("my-people/1/r1")
    release.noise_of("income"), release.mean("income")

It declines a question that it cannot answer honestly, and says why (`NoHonestAnswer`).
"""

from release_pipeline.analyst.facts import Facts, NoHonestAnswer, read_facts
from release_pipeline.analyst.laws import Law, explain_kit, law_of
from release_pipeline.analyst.means import Interval, Moments
from release_pipeline.analyst.release import Release, read_release
from release_pipeline.analyst.rerun import Rerun
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
]
