"""How options are declared: the hash rule, and that every option that was added later keeps to it."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from release_pipeline.policy.declared import defaults_of_later
from release_pipeline.policy.kinds import KINDS
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import OPTIONS
from release_pipeline.policy.sections import Gates, Person, Scheduled, Source
from tests.unit.policy.test_methods import policy_of

OF_PARTS = {"partitions", "publish_parts", "amplification"}
LATER: dict[type[BaseModel], set[str]] = {
    **dict.fromkeys(OPTIONS.values(), OF_PARTS),
    OPTIONS["columns"]: OF_PARTS | {"clamp", "definition", "delta", "swap"},
    OPTIONS["by-value"]: OF_PARTS | {"definition", "delta", "swap"},
    OPTIONS["whole-table"]: OF_PARTS | {"definition", "delta", "pairs", "never"},
    KINDS["noise"]: {"label", "description", "unit", "question", "codes", "transform", "atoms", "centre", "tail", "dated"},
    KINDS["keep"]: {"label", "description", "unit", "question", "labels", "codes"},
    KINDS["generalise"]: {"label", "description", "unit", "question", "labels", "codes"},
    Person: {"unit", "slots"},
    Scheduled: {"first"},
    Source: {"query"},
    Gates: {
        "relative_error",
        "atom_share",
        "ks",
        "quantile",
        "group_mean",
        "group_error",
        "linkage",
        "singling_out",
        "linkability",
        "inference",
        "anonymity_k",
        "l_diversity",
        "t_closeness",
        "marketer_risk",
        "clamped_at_most",
    },
    Policy: {"about", "assessment", "audit", "derive", "expect", "expectations", "tables"},
}


@pytest.mark.parametrize("model", LATER, ids=lambda model: model.__name__)
def test_which_options_were_added_later(model: type[BaseModel]) -> None:
    """Whoever adds an option says so, or every policy that was approved would need another approval."""
    assert set(defaults_of_later(model)) == LATER[model]


def test_an_option_that_was_added_later_is_in_the_canonical_form_where_it_says_something() -> None:
    """At its default it is left out, and the hash is what it was before anybody knew it."""
    assert policy_of("dp-um", ", k: 5, clamp: yes").canonical_hash() == policy_of("dp-um").canonical_hash()
    assert '"clamp":' not in policy_of("dp-um").canonical_json()
    assert '"clamp":"no"' in policy_of("dp-um", ", k: 5, clamp: no").canonical_json()


def test_the_order_of_options_in_their_own_text_stays() -> None:
    """What is expected of the same data and method is drawn from that text, so that another order would give other figures."""
    assert policy_of("dp-um", ", k: 5, clamp: no").protect.model_dump_json() == (
        '{"method":"dp-um","epsilon":"2","k":5,"scope":"column","consistency":null,"clamp":"no","weights":{}}'
    )
