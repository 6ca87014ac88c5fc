"""What somebody will link who knows all released columns, as far as simulated releases tell before anything is charged.

Nobody gets these releases: their noise is drawn with a secret that is none of a release's, and what they link is compared with a
limit of the policy. The figure of the release itself is measured afterwards and limits nothing, since a limit on it would choose
the noise that is released (docs/decisions/0026-limits-by-criterion.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.gate_words import keeps_linkage, propose_swap
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.stages.audit import draw_attacked
from release_pipeline.stages.compared import Read, read_with
from release_pipeline.stages.gates import BLOCKED, LINKED, NOBODYS, Gate
from release_pipeline.stages.measures.linkage import Rung, measure_ladder
from release_pipeline.stages.strategies import Strategy
from release_pipeline.stages.strategies.strategy import Progress

DRAWS = 3  # simulated releases; of a table that is attacked in a sample one, which hardly differs from the next
PURPOSE = "linkage"

Ladder: TypeAlias = tuple[Rung, ...]


def expect_linkage(policy: Policy, strategy: Strategy, read: Read, *, secret: bytes, progress: Progress) -> Ladder:
    """The ladder of the simulated release that links most, or of the first that is over the policy's limit.

    Empty where no simulated release has rows. The highest of the draws is judged: the release is one more draw, and exceeds all
    of them in one of four cases. All records are masked, and of many released rows a sample is linked, as the audit does: fewer
    masked records would link less, as their clusters are wider. The same records and method give the same figures.
    """
    worst: Ladder = ()
    made: Mapping[str, pa.Table] | None = None
    for draw in range(DRAWS):
        progress(f"linking a simulated release, {draw + 1} of {DRAWS} at most")
        context = (PURPOSE, draw)
        if made is None or policy.parts > 1:  # parts are drawn anew
            made = strategy.group(read, secret=secret, context=context, progress=_quiet).tables
        of_records = read_with(made, read)
        measured = strategy.measure(of_records, secret=secret, context=context, progress=_quiet)
        of_draw = read_with(measured, of_records)
        masked = strategy.mask(of_draw, secret=secret, context=context, progress=_quiet)
        released = strategy.suppress(of_draw, masked).table  # how much may be suppressed is judged elsewhere
        if not released.num_rows:
            continue

        def stream(*purpose: Context, of: tuple[Context, ...] = context) -> NoiseStream:
            return noise_stream(secret, *of, *purpose)

        compared = strategy.compare(of_draw, released)
        attacked = draw_attacked(compared, stream)
        ladder = measure_ladder(attacked, stream("linked"))
        if not worst or ladder[-1].linked.value > worst[-1].linked.value:
            worst = ladder
        if worst[-1].linked.value > float(policy.gates.linkage or 0) or attacked is not compared:
            break
    return worst


def needs_no_draws(policy: Policy) -> bool:
    """Whether the policy sets no limit on linkage, or one that its method keeps for whatever records."""
    return policy.gates.linkage is None or keeps_linkage(policy, policy.gates.linkage)


def judge_linkage(policy: Policy, linked: float | None) -> list[Gate]:
    """The gate on linkage, where the policy sets one: on what the method promises, where that is enough, or else on what
    simulated releases linked, which fails where that is not known."""
    limit = policy.gates.linkage
    if limit is None:
        return []
    value, basis = np.nan if linked is None else linked, LINKED
    if policy.protect.is_synthetic:
        value, basis = 0.0, NOBODYS
    elif policy.swap is not None and keeps_linkage(policy, limit):
        value, basis = 1 / policy.swap.k, BLOCKED
    return [Gate("linkage by all released columns", value, float(limit), basis=basis)]


def explain_linkage(policy: Policy, ladder: Ladder) -> str:
    """Which columns link more than the policy allows, and what to do, without a figure of the data."""
    if policy.gates.linkage is None or not ladder:
        return ""
    words: list[str] = []
    for rung in ladder[:-1]:
        links = "more than that" if rung.linked.value > float(policy.gates.linkage) else "no more than that"
        known = (
            f"{' and '.join(rung.columns)}{' too' if ladder[0].masked == 0 else ''}" if rung.masked else "only the kept columns"
        )
        words.append(f"Knowing {known} links {links}.")
    words += [propose_swap(policy, policy.gates.linkage), "Release fewer columns, coarser groups, or synthetic rows (dp-table)."]
    return " ".join(filter(None, words))


def _quiet(_: str) -> None:
    """Strategies tell every column."""
