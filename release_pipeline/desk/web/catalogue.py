"""Every page of the desk."""

from __future__ import annotations

from release_pipeline.desk.web import home, operating, reviewing

WAYS = (*home.WAYS, *operating.WAYS, *reviewing.WAYS)
