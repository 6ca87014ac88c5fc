"""mdav: k-anonymity by clusters of alike records, all columns together, whose centroids are exact."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.families.base import (
    NOTHING_ADDS_UP,
    ColumnPlan,
    Family,
    Plan,
    refuse_generalised,
    together_words,
)
from release_pipeline.policy.families.vectors import check_together, check_vector_rows
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.gate_words import tell_criteria
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import MdavOptions
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.text import Problem
from release_pipeline.sentences import POLICY


class MdavFamily(Family[MdavOptions]):
    """Clusters, and no noise: centroids are exact, so that masked quasi-identifiers make groups, too."""

    single_records = "a cluster counts records, and k of them may be fewer than k people."
    makes_groups_of_masked = True

    def find_contradictions(self, parts: Parts, protect: MdavOptions) -> Iterator[Problem]:
        """Nothing is generalised."""
        yield from refuse_generalised(parts, f"{protect.method} makes clusters of numbers and generalises no column.")

    def check_noise(self, parts: Parts, protect: MdavOptions) -> Iterator[Problem]:
        """There is none; sums could leave 64 bits all the same."""
        yield from check_together(parts, protect.cluster(parts.noise), least_k=1)

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """No noise."""
        yield from (ColumnPlan(name, None, 0.0, 0.0, False) for name in policy.noise_columns)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Sums of all columns together."""
        check_vector_rows(policy, self.of(policy).cluster(policy.noise_columns), rows)

    def describe_claim(self, policy: Policy) -> str:
        """How many records share their masked values."""
        return POLICY("claim.mdav", k=policy.protect.k, columns=together_words(policy), parts=self.describe_parts(policy))

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """What is not covered."""
        for sentence in self.list_uncovered(plan.policy):
            yield "not covered", sentence
        yield "series", NOTHING_ADDS_UP

    def list_uncovered(self, policy: Policy) -> Iterator[str]:
        """What the claim does not protect, a sentence each."""
        yield POLICY("uncovered.cluster")
        yield POLICY("uncovered.agreeing")
        if policy.kept_columns:
            yield POLICY("uncovered.kept_beside_clusters", columns=name_some(policy.kept_columns))
        yield from tell_criteria(policy)
        yield POLICY("uncovered.series")
        yield POLICY("uncovered.facts")
