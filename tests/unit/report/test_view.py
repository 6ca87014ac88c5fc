"""The view refuses whatever is no short text, whole number or nothing, in every field and however deep."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.report.card import ColumnView
from release_pipeline.report.view import SHORT, PublicView, check_public
from tests.unit.report.views import public_views, sample_view

FIELDS = [field.name for field in dataclasses.fields(PublicView)]
COLUMN_FIELDS = [field.name for field in dataclasses.fields(ColumnView)]
FOREIGN: dict[str, Any] = {
    "float": 0.5,
    "nan": float("nan"),
    "numpy float": np.float64(0.5),
    "numpy integer": np.int64(5),
    "array": np.zeros(2),
    "bool": True,
    "bytes": b"income",
    "Decimal": Decimal("0.5"),
    "Fraction": Fraction(1, 2),
    "complex": 1j,
    "set": {"a"},
    "object": object(),
    "path": Path("vault"),
    "exception": ValueError("cell"),
    "long text": "x" * (SHORT + 1),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_refuses_what_is_foreign(field: str, kind: str) -> None:
    """By itself, and inside a tuple."""
    for value in (FOREIGN[kind], ("fine", FOREIGN[kind])):
        with pytest.raises(TypeError, match="not for the public view"):
            sample_view(**{field: value})


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("field", COLUMN_FIELDS)
def test_every_field_of_a_column_refuses_what_is_foreign(field: str, kind: str) -> None:
    """A column is checked when a view takes it up."""
    column = dataclasses.replace(sample_view().columns[0], **{field: FOREIGN[kind]})
    with pytest.raises(TypeError, match="not for the public view"):
        sample_view(columns=(column,))


@pytest.mark.parametrize("kind", FOREIGN)
def test_the_refusal_does_not_show_the_value(kind: str) -> None:
    """What was refused may be a cell: its type is named, not itself."""
    with pytest.raises(TypeError) as refused:
        sample_view(claim=FOREIGN[kind])
    assert str(refused.value) in {
        f"a {type(FOREIGN[kind]).__name__} is not for the public view",
        "a text of this length is not for the public view",
    }


@pytest.mark.parametrize("value", ["", "x" * SHORT, 0, -1, 2**70, None, (), [], {}, ("a", (1, None)), {"a": ["b"]}])
def test_texts_whole_numbers_and_nothing_pass(value: Any) -> None:
    """The longest text too, and any depth."""
    check_public(value)


@pytest.mark.slow
@given(public_views())
def test_a_view_cannot_be_changed(view: PublicView) -> None:
    """What was checked stays as it was."""
    for field in FIELDS:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(view, field, "else")


@pytest.mark.slow
@given(
    st.recursive(
        st.floats() | st.booleans() | st.binary(), lambda inner: st.lists(inner, min_size=1) | st.tuples(st.just("a"), inner)
    )
)
def test_depth_hides_nothing(value: Any) -> None:
    """Lists in tuples in lists."""
    with pytest.raises(TypeError):
        check_public({"deep": [value]})
