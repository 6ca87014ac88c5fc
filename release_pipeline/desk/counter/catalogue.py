"""Every call of the counter: a page's question that is not here is asked in vain."""

from __future__ import annotations

from release_pipeline.desk.counter import approving, auditing, exploring, home, operating, reviewing, running, signing, stewarding

CALLS = (
    *(*home.CALLS, *reviewing.CALLS, *signing.CALLS),
    *(*stewarding.CALLS, *exploring.CALLS, *running.CALLS),
    *(*approving.CALLS, *auditing.CALLS, *operating.CALLS),
)
