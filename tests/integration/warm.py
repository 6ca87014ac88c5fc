"""What a process has loaded from which others are forked: importing it takes longer than most of them do. It opens no database,
for the threads of one are not there after a fork."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import release_pipeline
from release_pipeline.pages.escaping import load_templates
from release_pipeline.rows.validate import load_great_expectations

LATE = (  # what is loaded when it is needed first: once, here
    *("duckdb", "pyarrow.csv", "pyarrow.parquet", "pandas", "jinja2", "alembic.config", "alembic.command"),
    *("scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model"),  # every audit trains models
    *("release_pipeline.apps.dagster.launch", "release_pipeline.apps.dagster.definitions", "tests.integration.sites"),
)

for module in pkgutil.walk_packages(release_pipeline.__path__, "release_pipeline."):
    if not re.search(r"\.(dagster_app|__main__)\b", module.name):
        import_module(module.name)
for name in LATE:
    import_module(name)
load_great_expectations()
for kind, name in (("html", "internal-report.html"), ("html", "privacy-card.html"), ("markdown", "RELEASE_NOTE.md")):
    load_templates(kind).get_template(name)  # compiled, and kept
