"""The reviewers' page of synthetic rows: what it says of people and of strangers, of groups and of links."""

from __future__ import annotations

import dataclasses
import re

import pytest

from release_pipeline.formats.attack_views import ClaimView, Difference, NearView, ShareView
from release_pipeline.formats.internal_view import GroupMeansView, GroupMeanView, InternalView, PairDistance, StructureView
from release_pipeline.report.internal import list_sections, render_internal
from tests.unit.report.internal_views import sample_view

ODD = "<b>income & more"


def share(value: float) -> ShareView:
    return ShareView(value, max(value - 0.04, 0.0), min(value + 0.04, 1.0), 500, None)


def make_view(gain: tuple[float, float, float] = (0.012, -0.04, 0.064)) -> InternalView:
    """One of synthetic rows, with what the nearest row tells."""
    beyond = Difference(*gain)
    claim = ClaimView(ODD, share(0.3), share(0.2), 0.25, beyond)
    group = GroupMeanView("town", "north", ODD, 500.0, 530.0, 0.2, 40)
    return dataclasses.replace(
        sample_view(),
        linkage=None,
        linkage_ladder=(),
        linkage_words="",
        is_synthetic=True,
        are_ranks=True,
        structure=StructureView(
            {"town": 0.01},
            0.01,
            0.05,
            0.03,
            (PairDistance("town", ODD, 0.1),),
            None,
            None,
            0,
            group_means=GroupMeansView(0.03, 0.02, 12, (group,)),
        ),
        nearest=NearView(
            ("site", "sex"), share(0.7), share(0.69), beyond, 0.0, 0.01, (claim,), dataclasses.replace(claim, name="")
        ),
    )


def read(view: InternalView) -> str:
    return " ".join(re.sub("<[^>]*>", "", render_internal(view)).split())


def test_nobody_is_linked_and_strangers_are_the_baseline() -> None:
    text = read(make_view())
    assert "No row was made from one person's record, so there is no share of rows linked to their own person." in text.replace(
        "&#39;", "'"
    )
    assert (
        "70% (66% to 74%) of the people that rows were made of have a row just like them in site and sex, and 69% (65% to 73%)"
        in text
    )
    assert "+1.2 percentage points (-4.0 to +6.4); the interval holds 0, so it may be chance" in text
    assert "One column in forty" not in text
    assert "12 means of columns of numbers" in text
    assert "500 in the original, 530 in the rows, which is 0.2 standard deviations" in text
    assert "Correlations of ranks" in text


@pytest.mark.parametrize(
    ("beyond", "words"),
    [((0.2, 0.1, 0.3), "rows reveal more about their people than about strangers"), ((-0.2, -0.3, -0.1), "no gain was seen")],
)
def test_a_clear_difference_is_said_to_be_one(beyond: tuple[float, float, float], words: str) -> None:
    text = read(make_view(beyond))
    assert words in text
    assert ("One column in forty looks so by chance." in text) == (beyond[1] > 0)


def test_sections_about_records_that_are_there_are_left_out() -> None:
    anchors = {section.anchor for section in list_sections(make_view())}
    assert {"structure", "attacks", "correlations", "errors", "subgroups"} - anchors <= {"subgroups"}
    assert not anchors & {"classes", "suppression", "levels"}
    masked = {section.anchor for section in list_sections(sample_view())}
    assert {"classes", "suppression", "levels"} <= masked
    assert "structure" not in masked


def test_of_many_attacks_some_gain_by_chance() -> None:
    """The worst of them is told with how many were tried; the table has all."""
    one = next(attack for attack in sample_view().criteria if attack.criterion == "inference")
    many = [dataclasses.replace(one, attack=f"inferring {number}", beyond=share(0.0)) for number in range(14)]
    many[3] = dataclasses.replace(many[3], beyond=ShareView(0.2, 0.1, 0.3, 500, None))
    [section] = [one for one in list_sections(dataclasses.replace(make_view(), criteria=tuple(many))) if one.anchor == "attacks"]
    assert [len(table.rows) for table in section.tables] == [2, 14]
    said = ["".join(words) for words in section.says]
    assert any("inferring 3 gains most" in words for words in said)
    assert "One in forty attacks that gain nothing is clearly beyond its control by chance: 14 attacks were tried." in said
