"""A policy as it was before it said what its data and columns are: what officers approved then has that hash."""

from __future__ import annotations

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds.labels import LabelledColumn

_SAID = {"label": None, "description": None, "unit": None, "question": None}


def without_words(policy: Policy) -> Policy:
    """It without `about`, and its columns without label, description, unit, question and labels of entries."""
    columns = {
        name: column.model_copy(update={**_SAID, **({"labels": {}} if hasattr(column, "labels") else {})})
        if isinstance(column, LabelledColumn)
        else column
        for name, column in policy.columns.items()
    }
    return policy.model_copy(update={"about": None, "columns": columns})
