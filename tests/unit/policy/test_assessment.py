"""What a site states for its papers, in a policy."""

from __future__ import annotations

import re

from release_pipeline.policy.assessment import Assessment
from release_pipeline.report.escaping import TEMPLATES


def test_the_papers_quote_every_part_of_it() -> None:
    """Each in one template at least, and none that the policy does not know."""
    text = "".join(file.read_text(encoding="utf-8") for file in (TEMPLATES / "papers").iterdir())
    assert set(re.findall(r'say\.stated\("(\w+)"\)', text)) == set(Assessment.model_fields)
