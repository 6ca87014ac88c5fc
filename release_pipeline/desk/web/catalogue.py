"""Every page of the desk."""

from __future__ import annotations

from release_pipeline.desk.web import approving, auditing, home, operating, reviewing, stewarding

WAYS = (*home.WAYS, *reviewing.WAYS, *stewarding.WAYS, *approving.WAYS, *auditing.WAYS, *operating.WAYS)
