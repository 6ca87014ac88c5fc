"""A site in figures for who watches many: OpenMetrics text, counts and ages alone. What Prometheus' older text format reads too:
gauges and counters, without moments of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Literal

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.caps import Spending
from release_pipeline.flow.alerts.look import outbox_of, read_spending
from release_pipeline.flow.alerts.settings import read_alerts, read_lineage
from release_pipeline.flow.openlineage.spool import spool_of
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import FAILED, PUBLISHED, SiteState, read_state
from release_pipeline.flow.status.health import read_free
from release_pipeline.flow.upcoming import next_releases
from release_pipeline.policy import Policy

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
WAITING = ("candidate", "approved")
Sample = tuple[dict[str, str], int | float]


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name. `unit` ends the name where there is one."""

    name: str
    kind: Literal["gauge", "counter"]
    words: str
    samples: tuple[Sample, ...]
    unit: str = ""

    def lines(self) -> Iterator[str]:
        """It as OpenMetrics has it."""
        name = f"release_pipeline_{self.name}"
        yield f"# TYPE {name} {self.kind}"
        if self.unit:
            yield f"# UNIT {name} {self.unit}"
        yield f"# HELP {name} {_escape(self.words)}"
        for labels, value in self.samples:
            said = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
            yield f"{name}{'_total' * (self.kind == 'counter')}{f'{{{said}}}' * bool(said)} {_format(value)}"


def write_metrics(site: Site, *, now: datetime | None = None) -> str:
    """The figures of a site as they are now. Releases are in the states of the registry: no candidate or package is read."""
    now = now or datetime.now(UTC)
    policies, broken = site.read_policies()
    with site.open_registry(read_only=True) as registry:
        state = read_state(registry.events)
    families = (
        Family("version", "gauge", "1, with the version of the program.", (({"version": __version__}, 1),)),
        Family("policies_broken", "gauge", "Policy files that cannot be read.", (({}, len(broken)),)),
        *_of_releases(state, now),
        _late(policies, state, now),
        _spent(read_spending(site, policies, state.events)),
        *_of_events(state),
        Family("vault_free_bytes", "gauge", "Free where the vault lies.", (({}, read_free(site)),), "bytes"),
        _unsent(site),
    )
    return "".join(f"{line}\n" for family in families for line in family.lines()) + "# EOF\n"


def _of_releases(state: SiteState, now: datetime) -> Iterator[Family]:
    counts = Counter((known.id.policy, known.state) for known in state.releases.values())
    samples = tuple(({"policy": policy, "state": state}, count) for (policy, state), count in sorted(counts.items()))
    yield Family("releases", "gauge", "Releases that were begun, by their state in the registry; each revision is one.", samples)
    longest: dict[tuple[str, str], float] = {}
    for known in state.releases.values():
        if known.state in WAITING and known.replaced is None:
            age = max((now - datetime.fromisoformat(known.since)).total_seconds(), 0.0)
            key = (known.id.policy, known.state)
            longest[key] = max(longest.get(key, 0.0), age)
    waiting = tuple(({"policy": policy, "state": state}, age) for (policy, state), age in sorted(longest.items()))
    words = "How long the oldest release has waited for its reviewers (candidate) or its publication (approved)."
    yield Family("waiting_seconds", "gauge", words, waiting, "seconds")


def _late(policies: Iterable[Policy], state: SiteState, now: datetime) -> Family:
    """Of every policy with a timetable, 0 where it is kept or the series is held."""
    samples = list[Sample]()
    for policy in policies:
        if policy.cron is not None:
            late = takewhile(lambda upcoming: upcoming.is_late(now), next_releases(policy, state.events, now))
            first = next(late, None) if policy.policy not in state.holds else None
            age = 0.0 if first is None or first.due is None else (now - first.due).total_seconds()
            samples.append(({"policy": policy.policy}, age))
    return Family(
        "late_seconds", "gauge", "For how long the oldest release that is not opened has been due.", tuple(samples), "seconds"
    )


def _spent(spending: Iterable[Spending]) -> Family:
    samples = list[Sample]()
    for each in spending:
        cap, share = each.account.cap.cap, each.share
        counted = "releases" if cap.releases is not None else "rho" if cap.rho is not None else "epsilon"
        names = {"population": each.account.population, "counted": counted}
        labels = {**names, "definition": cap.definition or "", "scope": cap.scope or ""}
        samples.append((labels, float("inf") if share is None else float(share)))
    return Family("cap_spent_ratio", "gauge", "The part of a population's cap that is spent.", tuple(samples), "ratio")


def _of_events(state: SiteState) -> Iterator[Family]:
    yield Family("chain_events", "counter", "Events of the registry.", (({}, len(state.events)),))
    failed = Counter(event.release.policy for event in state.events if event.kind == FAILED and event.release is not None)
    samples = tuple(({"policy": policy}, count) for policy, count in sorted(failed.items()))
    yield Family("runs_failed", "counter", "Runs that ended without a candidate, since the site began.", samples)
    last: dict[str, float] = {}
    for status in state.releases.values():
        if (moment := status.moments.get(PUBLISHED)) is not None:
            seconds = datetime.fromisoformat(moment).timestamp()
            last[status.id.policy] = max(last.get(status.id.policy, 0.0), seconds)
    published = tuple(({"policy": policy}, seconds) for policy, seconds in sorted(last.items()))
    yield Family("published_timestamp_seconds", "gauge", "When a release was last published.", published, "seconds")


def _unsent(site: Site) -> Family:
    """Of every channel by its place in site.yaml, and of lineage; nothing where site.yaml cannot be read: `status` tells that."""
    samples = list[Sample]()
    try:
        for number, rule in enumerate(read_alerts(site), start=1):
            samples.append(({"to": f"alerts {number}"}, len(outbox_of(site, rule).list_files())))
        if read_lineage(site) is not None:
            samples.append(({"to": "lineage"}, len(spool_of(site).list_files())))
    except ReleasePipelineError:
        pass
    return Family("unsent", "gauge", "Alerts and lineage events that are not sent yet.", tuple(samples))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _format(value: float) -> str:
    """A number as OpenMetrics writes it."""
    return "+Inf" if value == float("inf") else repr(value)
