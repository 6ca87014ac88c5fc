"""The package view refuses whatever is no short text, whole number or nothing, in every field and however deep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.formats.card import ColumnView
from release_pipeline.formats.package import SHORT, PackageView, check_public
from tests.unit.report.rendered import make_full
from tests.unit.report.views import FACTS, sample_view

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


def list_fields(value: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to each field of a view, and of what is in it."""
    for field in dataclasses.fields(value):
        yield (*way, field.name)
        if dataclasses.is_dataclass(inner := getattr(value, field.name)):
            yield from list_fields(inner, (*way, field.name))


def put(value: Any, way: tuple[str, ...], new: Any) -> Any:
    """The view with something else in one of its fields."""
    name, *rest = way
    return dataclasses.replace(value, **{name: put(getattr(value, name), tuple(rest), new) if rest else new})


FULL = make_full()


@pytest.mark.parametrize("way", [way for way in list_fields(FULL) if way[-1] != "is_k_anonymity"], ids=".".join)
def test_every_field_refuses_what_is_foreign(way: tuple[str, ...]) -> None:
    """By itself, and inside a tuple; the refusal names its type, and not itself, for it may be a cell."""
    for kind, foreign in FOREIGN.items():
        for value in (foreign, ("fine", foreign)):
            with pytest.raises(TypeError) as refused:
                put(FULL, way, value)
            type_of = "text of this length" if kind == "long text" else type(foreign).__name__
            assert str(refused.value) == f"a {type_of} is not for the public view"


@pytest.mark.parametrize("field", COLUMN_FIELDS)
def test_every_field_of_a_column_refuses_what_is_foreign(field: str) -> None:
    """A column is checked when a view takes it up."""
    for foreign in FOREIGN.values():
        column = dataclasses.replace(FACTS["columns"][0], **{field: foreign})
        with pytest.raises(TypeError, match="not for the public view"):
            PackageView(dataclasses.replace(FULL.card, columns=(column,)))


@pytest.mark.parametrize("value", ["", "x" * SHORT, 0, -1, 2**70, None, (), [], {}, ("a", (1, None)), {"a": ["b"]}])
def test_texts_whole_numbers_and_nothing_pass(value: Any) -> None:
    """The longest text too, and any depth."""
    check_public(value)


def test_a_view_cannot_be_changed() -> None:
    """What was checked stays as it was."""
    view = sample_view()
    for part in (view, view.card, view.card.claim, view.card.columns[0]):
        for field in dataclasses.fields(part):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(part, field.name, "else")


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
