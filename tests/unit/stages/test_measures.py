"""The measures that need models, and the groups of released quasi-identifiers: against scikit-learn, pyCANON and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycanon import anonymity
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.privacy.noise import noise_stream
from release_pipeline.stages.measures.discrimination import REGRESSION, TREE, tell_apart
from release_pipeline.stages.measures.features import encode_entries, encode_features
from release_pipeline.stages.measures.groups import MOST_BARS, Groups, count_sizes, journalist_risk, measure_groups
from release_pipeline.stages.measures.prediction import predict

STREAM = noise_stream(bytes(32), "test")
POLICY = """
policy: people
steward: ana
population: everybody
source: {path: people.csv}
person: each-row
releases: once
protect: {method: laplace, epsilon: 1}
columns:
  town: {role: quasi, do: keep, values: [north, south, east, west], why: known}
  sex: {role: quasi, do: keep, values: [0, 1], why: known}
  ill: {role: confidential, do: keep, values: [flu, cold, none], why: known}
  income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}
suppress: {quasi_groups_below: 2, at_most: 100%}
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Two kept quasi-identifiers, a kept confidential column and a masked one."""
    return parse_policy(POLICY, name="people.yaml")


def people(count: int, seed: int) -> pa.Table:
    """A table like one that the policy releases."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "town": rng.choice(["north", "south", "east", "west"], count),
            "sex": rng.integers(0, 2, count),
            "ill": rng.choice(["flu", "cold", "none"], count, p=[0.6, 0.3, 0.1]),
            "income": rng.integers(0, 100, count).astype(np.float64),
        }
    )


@pytest.mark.parametrize("seed", range(5))
def test_groups_equal_pycanons(policy: Policy, seed: int) -> None:
    """k and l of the released table."""
    table = people(60 + 40 * seed, seed)
    found = measure_groups(table, policy)
    assert found is not None
    frame = table.to_pandas()
    frame["ill"] = frame["ill"].astype(object)
    frame["town"] = frame["town"].astype(object)
    quasi = ["town", "sex"]
    assert found.smallest == anonymity.k_anonymity(frame, quasi)
    assert found.diversity == {"ill": anonymity.l_diversity(frame, quasi, ["ill"])}


def test_risks_of_groups_by_hand(policy: Policy) -> None:
    """Groups of 1, 2 and 3: the prosecutor finds the single one."""
    towns = ["north", "south", "south", "east", "east", "east"]
    table = pa.table({"town": towns, "sex": [0] * 6, "ill": ["flu"] * 6, "income": [1.0] * 6})
    found = measure_groups(table, policy)
    assert found is not None
    assert (found.number, found.smallest, found.largest, found.mean) == (3, 1, 3, 2)
    assert (found.prosecutor, found.discernibility) == (1, 14)
    assert found.bars == ((1, 1, 1), (2, 2, 1), (3, 3, 1))
    assert measure_groups(table.slice(0, 0), policy) is None


@given(st.lists(st.sampled_from(["north", "south", "east", "west"]), min_size=1, max_size=40))
def test_groups_that_are_merged_tell_less(policy: Policy, towns: list[str]) -> None:
    """One group of all is the largest that there can be; nobody is found more easily than somebody of the smallest group."""

    def groups(towns: list[str]) -> Groups:
        rest = {"sex": [0] * len(towns), "ill": ["flu"] * len(towns), "income": [1.0] * len(towns)}
        found = measure_groups(pa.table({"town": towns, **rest}), policy)
        assert found is not None
        return found

    apart, whole = groups(towns), groups(towns[:1] * len(towns))
    assert apart.smallest <= whole.smallest == len(towns)
    assert whole.prosecutor <= apart.prosecutor <= 1


def test_the_journalist_looks_at_the_population() -> None:
    """Two released of a group of ten, one of two: the worst is the group of two, though in the release both are small."""
    released, everybody = ["a", "a", "b"], ["a"] * 10 + ["b"] * 2 + ["c"] * 5
    assert journalist_risk(pa.table({"town": released}), pa.table({"town": everybody}), ["town"]) == 0.5


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans(), st.booleans()), min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=20),
)
def test_the_journalist_counts_whom_a_record_can_be_of(
    released: list[tuple[str, str, bool, bool]], others: list[tuple[str, str]]
) -> None:
    """A blank fits everybody: compared with counting one by one."""
    everybody = [(a, b) for a, b, _, _ in released] + others
    rows = [(None if hide_a else a, None if hide_b else b) for a, b, hide_a, hide_b in released]

    def table(pairs: list[tuple[str | None, str | None]]) -> pa.Table:
        return pa.table({name: pa.array([pair[side] for pair in pairs], pa.string()) for side, name in enumerate("pq")})

    fewest = min(
        sum(all(mine is None or mine == theirs for mine, theirs in zip(row, other, strict=True)) for other in everybody)
        for row in rows
    )
    assert journalist_risk(table(rows), table(list(everybody)), table(rows).column_names) == pytest.approx(1 / fewest)


def test_many_different_sizes_are_put_into_ranges() -> None:
    """Every group is in one range, ranges do not overlap, and there are no more than fit in a picture."""
    sizes = np.random.default_rng(3).integers(5, 5_000, 700)
    bars = count_sizes(sizes)
    assert len(bars) <= MOST_BARS
    assert sum(count for _, _, count in bars) == 700
    assert all(count == np.count_nonzero((sizes >= low) & (sizes <= high)) for low, high, count in bars)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(bars))


def test_codes_are_common_to_all_tables() -> None:
    """The same entry has the same code on both sides, whatever else they have; a blank has -1, and numbers stay numbers."""
    first, second = pa.table({"a": ["x", None, "z"], "b": [1.5, 2.0, 3.0]}), pa.table({"a": ["z", "y"], "b": [0.5, 1.0]})
    matrices = encode_features([first, second])
    assert matrices[0].tolist() == [[0, 1.5], [-1, 2.0], [2, 3.0]]
    assert matrices[1].tolist() == [[2, 0.5], [1, 1.0]]
    one, other = encode_entries([pa.chunked_array([[2.5, 1.5]]), pa.chunked_array([[1.5]])])
    assert (one.tolist(), other.tolist()) == ([1, 0], [0])


def test_pmse_equals_scikit_learns_scores() -> None:
    """The mean square of LogisticRegression's own scores around the share, on the same scaled columns."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 3)), rng.normal(0.4, 1.2, size=(200, 3))
    both = np.concatenate([x, y])
    scaled = (both - both.mean(axis=0)) / both.std(axis=0)
    which = np.repeat([0, 1], [300, 200])
    scores = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-8).fit(scaled, which).predict_proba(scaled)[:, 1]
    regression, tree = tell_apart(x, y, seed=1, stream=STREAM)
    assert (regression.model, tree.model) == (REGRESSION, TREE)
    assert regression.pmse == pytest.approx(np.mean((scores - 0.4) ** 2), rel=1e-3)
    assert regression.by_chance == pytest.approx(3 * 0.6 * 0.4 / 500)


@pytest.mark.slow
def test_pmse_by_chance_is_what_independent_samples_have() -> None:
    """Over 60 pairs of samples of one law the mean is met; SNO18's, with the original records fixed, is half of it."""
    rng = np.random.default_rng(2)
    found = [tell_apart(rng.normal(size=(200, 4)), rng.normal(size=(200, 4)), seed=1, stream=STREAM)[0] for _ in range(60)]
    ratio = np.mean([one.pmse / one.by_chance for one in found])
    assert ratio == pytest.approx(1, abs=0.25)


def test_models_tell_apart_what_differs() -> None:
    """A table from itself: not at all by the regression, less than by chance by the tree. From one far off: always."""
    x = np.random.default_rng(4).normal(size=(400, 2))
    assert [one.pmse < one.by_chance for one in tell_apart(x, x, seed=1, stream=STREAM)] == [True, True]
    far = x + np.array([50.0, 0.0])
    assert [one.pmse == pytest.approx(0.25, abs=1e-2) for one in tell_apart(x, far, seed=1, stream=STREAM)] == [True, True]
    circle = np.random.default_rng(5).normal(size=(400, 2)) * 3  # as a regression sees it, the same
    regression, tree = tell_apart(x, circle, seed=1, stream=STREAM)
    assert regression.pmse < 0.02 < 0.06 < tree.pmse
    assert all(one.pmse == 0 for one in tell_apart(np.ones((9, 2)), np.ones((9, 2)), seed=1, stream=STREAM))


@pytest.mark.slow
def test_predictions_equal_scikit_learns() -> None:
    """Trained on the first 66%, tested on the rest of the original: the same F-measures by hand."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(300, 3))
    y = x + rng.normal(0, 0.8, size=x.shape)
    truth, said = x[:, 0] + x[:, 1] > 0.5, y[:, 0] + y[:, 1] > 0.5
    found = predict(x, truth, y, said, seed=1)
    assert (found.trained, found.tested) == (198, 102)
    assert found.guess == pytest.approx(f1_score(truth[198:], np.ones(102)))

    def trained_on(table: npt.NDArray[np.float64], target: npt.NDArray[np.bool_]) -> list[float]:
        forest = RandomForestClassifier(n_estimators=100, min_samples_leaf=2, random_state=1)
        boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=1)
        return [f1_score(truth[198:], model.fit(table[:198], target[:198]).predict(x[198:])) for model in (forest, boosting)]

    assert [model.released for model in found.models] == pytest.approx(trained_on(y, said))
    assert [model.original for model in found.models] == pytest.approx(trained_on(x, truth))


@pytest.mark.slow
def test_a_target_without_both_answers_has_no_models() -> None:
    """Nothing to learn, and no failure: nobody says yes in the released table, or nobody who is tested does."""
    x = np.arange(30.0)[:, None]
    half, nobody = np.arange(30) % 2 == 0, np.zeros(30, dtype=np.bool_)
    assert predict(x, half, x, nobody, seed=1).models == ()
    first = np.arange(30) < 10
    assert predict(x, first, x, first, seed=1).models == ()
    assert len(predict(x, half, x, half, seed=1).models) == 2
