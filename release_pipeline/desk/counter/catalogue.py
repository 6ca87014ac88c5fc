"""Every call of the counter: a page's question that is not here is asked in vain."""

from __future__ import annotations

from release_pipeline.desk.counter import home, operating, reviewing, signing

CALLS = (*home.CALLS, *operating.CALLS, *reviewing.CALLS, *signing.CALLS)
