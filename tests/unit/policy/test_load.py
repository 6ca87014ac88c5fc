"""Loading a policy: all errors at once, each at its place and in words with a remedy; exact values; a hash of the meaning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from release_pipeline.policy.plans.views import view_plan
from release_pipeline.policy.values.text import read_yaml
from tests.integration.sites import PARTS, policy_text

RAND_HIE = (Path(__file__).resolve().parents[3] / "policies/rand-hie.yaml").read_text(encoding="utf-8")
POLICY = """\
policy: people
steward: ana
population: all-people
source: {path: people.csv, release_column: wave}
person: {column: id, records_per_release: 1}
releases: ["1", "2"]
protect: {method: idp-cbls, epsilon: 2, k: 5, scope: column, consistency: isotonic, weights: {income: 2}}
columns:
  id: {role: identifier, do: drop}
  site: {role: quasi, do: keep, values: [1, 2, 3], missing: {category: 3}, why: known sites}
  income: {role: confidential, do: noise, domain: [0, 5000], grid: 1, outside: clamp, missing: {fill: 0}, why: top code}
  score: {role: confidential, do: noise, domain: [0, 100], grid: 0.1, outside: fail, missing: fail, why: by construction}
drop: [note, other]
suppress: {quasi_groups_below: 5, at_most: 5%}
gates: {min_rows: 10, differencing_below: 3, expected_error: {income: 0.2}}
review: {reviewers: 2}
publish: {formats: [parquet, csv], not_before: 2027-01-15T09:30Z}
retain: 90 days
"""
SITE = "{role: quasi, do: keep, values: [1, 2, 3], missing: {category: 3}, why: known sites}"
SCORE = "{role: confidential, do: noise, domain: [0, 100], grid: 0.1, outside: fail, missing: fail, why: by construction}"
KNOWN = (
    "Known: policy, steward, population, source, person, releases, protect, columns, drop, derive, expectations, tables, "
    "suppress, "
    "gates, audit, review, publish, retain, audience, about, assessment, shape."
)
NAMES = "Use letters, digits and hyphens (policy, people: lower case), a letter first."
TWO = '["1", "2"]'
MONTHLY = '{every: month, cron: "0 6 1 * *"}'
FORMS = "Allowed: once, a list of names, {list: [...], cron: '0 6 1 * *'}, or {every: month, first: 2026-01, cron: '0 6 1 * *'}."
ONE_KIND = "releases: a timetable has either a list of releases or 'every' with a period."
NOT_COMPARED = ("differencing_below: 3, ", "")


def change(text: str, *changes: tuple[str, str]) -> str:
    """`text` with the first of each old part replaced; every one must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def parse(*changes: tuple[str, str]) -> Policy:
    return parse_policy(change(POLICY, *changes), name="p.yaml")


def problems_of(text: str) -> tuple[str, ...]:
    """The problems of a policy that must have some; the sentence above them counts them rightly."""
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(text, name="p.yaml")
    problems = caught.value.problems
    assert str(caught.value) == f"p.yaml: the policy has {len(problems)} error{'s' if len(problems) != 1 else ''}."
    return problems


def problem(text: str, at: str, message: str) -> str:
    """The problem as it is printed when it stands where `at` starts in `text`; `at` must be there once."""
    assert text.count(at) == 1, at
    before = text[: text.index(at)]
    return f"p.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: {message}"


TWELVE = """\
# twelve things are wrong here
policy: p 1
steward: ana
stewart: ben
population: people
source: {path: people.csv, release_colum: wave}
person: {column: id, records_per_release: 0}
releases: ["1", "1"]
protect: {method: idp-cbls, epsilon: 0, k: 5, scope: table}
columns:
  id: {role: identifier, do: drop}
  site: {role: quasi, do: keep, values: [], why: known sites}
  income: {role: confidential, do: noise, domain: [0, 5000], grid: 1, outside: clamp}
  score: {role: confidential, do: noise, domain: [0, 100], grid: 0.3, outside: fail, why: by construction}
drop: [note, site]
gates: {min_rows: 9}
"""


def test_twelve_errors_at_once() -> None:
    """Twelve parts are wrong, some of which could hide others, and every one is told in the order of the file."""
    assert problems_of(TWELVE) == (
        problem(TWELVE, "policy: p 1", f"policy: 'p 1' is not a name. {NAMES}"),
        problem(TWELVE, "stewart", "stewart: 'stewart' is not part of a policy. Did you mean 'steward'?"),
        problem(
            TWELVE, "release_colum:", "source.release_colum: 'release_colum' is not known here. Did you mean 'release_column'?"
        ),
        problem(TWELVE, "records_per", "person.records_per_release: '0' is too small. The least allowed is 1."),
        problem(TWELVE, "releases:", "releases: holds the same entry twice."),
        problem(TWELVE, "epsilon: 0", "protect.epsilon: '0': must be above 0."),
        problem(TWELVE, "scope: table", "protect.scope: 'table' is not allowed for scope. Allowed: 'centroid' or 'column'."),
        problem(TWELVE, "values: []", "columns.site.values: values is empty."),
        problem(TWELVE, "income: {", "columns.income.why: 'why' is missing. Say in a few words where this comes from."),
        problem(
            TWELVE,
            "grid: 0.3",
            "columns.score.grid: the domain is not a whole number of grid steps wide. "
            "Choose domain and grid so that (upper - lower) / grid is a whole number.",
        ),
        problem(TWELVE, "site]", "drop.1: 'site' is under columns too. Declare it in one place."),
        problem(
            TWELVE,
            "min_rows",
            "gates.min_rows: min_rows is below 2 k = 10: a release has two clusters of k records at least. Lower k, if a "
            "release may have fewer records; otherwise raise min_rows.",
        ),
    )


def case(id: str, old: str, new: str, at: str, message: str, *more: tuple[str, str]) -> Any:
    return pytest.param(((old, new), *more), at, message, id=id)


IN_WORDS = [
    case("unknown", "retain: 90 days", "weather: red", "weather", f"weather: 'weather' is not part of a policy. {KNOWN}"),
    case("missing", "steward: ana\n", "", "policy: people", "'steward' is missing."),
    case("missing-epsilon", "epsilon: 2, ", "", "protect:", "protect.epsilon: 'epsilon' is missing. There is no default."),
    case(
        "missing-do",
        "do: keep, ",
        "",
        "site:",
        "columns.site: 'do' is missing: what happens to the column? Allowed: drop, keep, swap, noise, generalise, synthesise.",
    ),
    case(
        "unknown-do",
        "do: keep",
        "do: hide",
        "site:",
        "columns.site: 'hide' is not something to do. Allowed: drop, keep, swap, noise, generalise, synthesise.",
    ),
    case("missing-end", "[0, 100]", "[0]", "domain: [0]", "columns.score.domain.1: the domain must be [lower, upper]."),
    case("domain-of-texts", "[0, 100]", "[0, many]", "many", "columns.score.domain.1: 'many': must be a number."),
    case(
        "method",
        "method: idp-cbls",
        "method: median",
        "method: median",
        "protect.method: 'median' is not a method. Allowed: laplace, dp-um, idp-ls, idp-cbls, dp-cdf, dp-table, dp-mdav, mdav, "
        "k-epsilon.",
    ),
    case(
        "role-of-keep",
        "role: quasi",
        "role: identifier",
        "do: keep",
        "columns.site.do: an identifier is never released. Say do: drop, or give it the role of what it is.",
    ),
    case(
        "missing-word",
        "missing: fail",
        "missing: maybe",
        "missing: maybe",
        "columns.score.missing: 'maybe' is not allowed for missing.",
    ),
    case("releases-form", TWO, "weekly", "releases", f"releases: 'weekly' is not allowed for releases. {FORMS}"),
    case("list-and-period", TWO, '{list: ["1"], every: month, cron: "0 6 1 * *"}', "releases", ONE_KIND),
    case("period-without-cron", TWO, "{every: month}", "releases", "releases.cron: 'cron' is missing."),
    case(
        "first-of-another-period",
        TWO,
        '{every: month, first: 2026-Q1, cron: "0 6 1 * *"}',
        "first",
        "releases.first: '2026-Q1': '2026-Q1' is not the name of a month, like 2026-03.",
    ),
    case(
        "first-of-a-list",
        TWO,
        '{list: ["1"], first: "1", cron: "0 6 1 * *"}',
        "first",
        "releases.first: '1': says which period a series begins with, and is for 'every': a list begins with its first release.",
    ),
    case("text", "known sites", "5", "why: 5", "columns.site.why: '5' is not a text. Put it in quotes if it is meant as one."),
    case("whole-number", "k: 5", "k: 5.5", "k: 5.5", "protect.k: '5.5' is not a whole number."),
    case(
        "too-large", "reviewers: 2", "reviewers: 11", "reviewers", "review.reviewers: '11' is too large. The most allowed is 10."
    ),
    case(
        "not-above", "{income: 2}", "{income: 0}", "income: 0}", "protect.weights.income: '0' is too small. It must be above 0."
    ),
    case("no-list", "drop: [note, other]", "drop: note", "drop: note", "drop: drop must be a list."),
    case("empty-text", "path: people.csv", 'path: ""', "path", "source.path: path is empty."),
    case("no-mapping", "{reviewers: 2}", "2", "review:", "review: review must be a mapping."),
    case("column-no-mapping", SITE, "keep", "site:", "columns.site: site must be a mapping."),
    case("epsilon-text", "epsilon: 2", 'epsilon: "2"', "epsilon", "protect.epsilon: '2': must be a number."),
    case(
        "epsilon-ten-decimals",
        "epsilon: 2",
        "epsilon: 1.0000000001",
        "epsilon",
        "protect.epsilon: '1.0000000001': epsilon has more than nine decimals. "
        "The ledger counts whole billionths: round it down.",
    ),
    case("percent", "5%", "0.05", "at_most", "suppress.at_most: '0.05': must be a percentage from 0% to 100%, like 5%."),
    case("days", "90 days", "90", "retain", "retain: '90': must be a number of days, like 90 days."),
    case(
        "instant",
        "2027-01-15T09:30Z",
        "2027-01-15T09:30",
        "not_before",
        "publish.not_before: '2027-01-15T09:30': must be a date and time with its zone, like 2027-01-15T09:30Z.",
    ),
    case("category", "[1, 2, 3]", "[1, [2], 3]", "[2]", "columns.site.values.1: must be a list of texts or whole numbers."),
]


@pytest.mark.parametrize(("changes", "at", "message"), IN_WORDS)
def test_what_one_value_can_know_is_told_in_words(changes: tuple[tuple[str, str], ...], at: str, message: str) -> None:
    """One error, at its place, in words; a message that goes on ends in what is allowed."""
    text = change(POLICY, *changes)
    [sentences] = problems_of(text)
    expected = problem(text, at, message)
    assert sentences == expected or (
        sentences.startswith(expected) and ("Allowed: " in sentences or "200" in sentences or "With: " in sentences)
    )
    assert "Decimal" not in sentences
    assert "pydantic" not in sentences


RULES = [
    case(
        "columns-look-alike",
        "  score:",
        "  Income:",
        "Income:",
        "columns.Income: 'Income' and 'income' look alike. Rename one of them in the source.",
    ),
    case(
        "dropped-looks-like-declared",
        "[note, other]",
        "[note, SCORE]",
        "SCORE]",
        "drop.1: 'SCORE' and 'score' look alike. Rename one of them in the source.",
    ),
    case(
        "release-column-declared",
        "release_column: wave",
        "release_column: site",
        "release_column",
        "source.release_column: 'site' is declared again under columns or drop. "
        "The release column is never released: name it here only.",
    ),
    case(
        "release-column-of-once",
        'releases: ["1", "2"]',
        "releases: once",
        "release_column",
        "source.release_column: a policy that is released once has no release column. "
        "List the releases, or leave release_column out and drop the column.",
        NOT_COMPARED,
    ),
    case(
        "releases-without-column",
        ", release_column: wave",
        "",
        "releases:",
        "releases: several releases need source.release_column to tell their records apart. "
        "Name the column, or set releases to once.",
    ),
    case(
        "differencing-of-once",
        TWO,
        "once",
        "differencing_below",
        "gates.differencing_below: there is one release, and nothing to compare it with. Remove differencing_below.",
        (", release_column: wave", ""),
    ),
    case(
        "differencing-of-nobody",
        "{column: id, records_per_release: 1}",
        "each-row",
        "differencing_below",
        "gates.differencing_below: each row is a person of its own, so nobody can be seen to join or leave. "
        "Name the person's column, or set differencing_below to 0.",
    ),
    case(
        "person-not-declared",
        "column: id",
        "column: person_id",
        "column: person_id",
        "person.column: 'person_id' is not declared under columns. Add it there with {role: identifier, do: drop}.",
    ),
    case(
        "person-no-identifier",
        "id: {role: identifier, do: drop}",
        "id: {role: quasi, do: drop}",
        "column: id",
        "person.column: 'id' must have the role identifier. Set its role, with do: drop.",
    ),
    case(
        "idp-of-groups",
        "records_per_release: 1",
        "records_per_release: 2",
        "records_per_release",
        "person.records_per_release: idp-cbls protects single records: individual differential privacy does not cover groups. "
        "Aggregate to one record per person, or use laplace, dp-um or dp-mdav with plain sums.",
    ),
    case(
        "laplace-with-k",
        "idp-cbls, epsilon: 2, k: 5, scope: column, consistency: isotonic",
        "laplace, epsilon: 2, k: 5",
        "k: 5",
        "protect.k: laplace masks every record on its own and has no k. Remove k.",
    ),
    case(
        "k-missing",
        "k: 5, ",
        "",
        "protect:",
        "protect: k is missing: idp-cbls needs the number of records per cluster. Add k, like k: 25.",
    ),
    case("k-below-the-least", "k: 5", "k: 2", "k: 2", "protect.k: idp-cbls needs k of at least 3."),
    case(
        "isotonic-laplace",
        "idp-cbls, epsilon: 2, k: 5, scope: column",
        "laplace, epsilon: 2",
        "consistency",
        "protect.consistency: isotonic consistency over records would use their true order, which laplace does not protect. "
        "Set consistency to none, or use scope column with a cluster method.",
    ),
    case(
        "isotonic-centroid",
        "scope: column",
        "scope: centroid",
        "consistency",
        "protect.consistency: an isotonic value depends on all noisy centroids, so a claim for each centroid separately "
        "would not hold. Set consistency to none, or use scope column with a cluster method.",
    ),
    case(
        "weight-of-no-noise",
        "weights: {income: 2}",
        "weights: {site: 2}",
        "site: 2",
        "protect.weights.site: 'site' is not a column with do: noise. Remove the weight.",
    ),
    case(
        "weight-of-the-only-column",
        f"  score: {SCORE}\n",
        "",
        "weights",
        "protect.weights: weights share epsilon between several columns; there is one. Remove them.",
    ),
    case(
        "expected-error-of-no-noise",
        "{income: 0.2}",
        "{note: 0.2}",
        "note: 0.2",
        "gates.expected_error.note: 'note' is not a column with do: noise. Remove it.",
    ),
    case(
        "sums-beyond-64-bits",
        "[0, 100], grid: 0.1",
        "[0, 4503599627370496], grid: 1",
        "grid: 1, outside: fail",
        "columns.score.grid: cluster sums would not fit 64-bit integers. Use a smaller k, a coarser grid or a narrower domain.",
        ("k: 5,", "k: 300,"),
        ("min_rows: 10", "min_rows: 600"),
    ),
    case(
        "grid-zero",
        "grid: 0.1",
        "grid: 0",
        "grid: 0",
        "columns.score.grid: the grid is not positive. Name the step between two values, like 1 or 0.01.",
    ),
    case(
        "fill-outside",
        "{fill: 0}",
        "{fill: 5001}",
        "missing: {fill",
        "columns.income.missing: the fill lies outside the domain. Choose a number inside it.",
    ),
    case(
        "category-not-listed",
        "{category: 3}",
        "{category: 4}",
        "missing: {category",
        "columns.site.missing: the category for missing entries is not among the values. Add it to values.",
    ),
    case(
        "nothing-to-suppress",
        "{role: quasi, do: keep",
        "{role: confidential, do: keep",
        "suppress",
        "suppress: there are no groups to suppress: no quasi-identifier is released. "
        "Remove suppress, or keep a column of role quasi.",
    ),
]


@pytest.mark.parametrize(("changes", "at", "message"), RULES)
def test_what_the_parts_must_agree_on(changes: tuple[tuple[str, str], ...], at: str, message: str) -> None:
    """Each rule tells its one error where it is to be mended."""
    text = change(POLICY, *changes)
    assert problems_of(text) == (problem(text, at, message),)


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.0000008"])
def test_an_epsilon_too_small_for_its_share_is_told_here(epsilon: str) -> None:
    """What the epsilon of one column cannot carry is an error of the policy, not a surprise when it is planned or run."""
    text = change(
        POLICY, ("idp-cbls, epsilon: 2", f"dp-um, epsilon: {epsilon}"), ("[0, 5000], grid: 1", "[0, 5000], grid: 0.0000001")
    )
    sentences = problems_of(text)
    assert all("epsilon" in one and "Use a larger epsilon" in one for one in sentences), sentences


def test_whole_number_categories_beyond_int64_are_an_error() -> None:
    """They could not be released as whole numbers."""
    text = change(POLICY, ("[1, 2, 3]", "[1, 9223372036854775808, 3]"))
    [sentences] = problems_of(text)
    assert "columns.site.values" in sentences


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  income:", '  "":', "columns"),
        ("  income:", f"  {'x' * 201}:", "columns"),
        ("k: 5", f"k: {'9' * 5000}", "protect.k"),
        ("note", f"note, {'[' * 800}{']' * 800}", ""),
    ],
    ids=["no-name", "long-name", "many-digits", "nested"],
)
def test_extremes_are_errors_of_the_policy(old: str, new: str, message: str) -> None:
    """Whatever stands in the file, there is a `PolicyInvalid` and no other exception."""
    text = change(POLICY, (", weights: {income: 2}", ""), (", expected_error: {income: 0.2}", ""), (old, new))
    assert message in problems_of(text)[0]


@pytest.mark.parametrize("opening", ["[", "{a: ", "[[],"])
def test_what_is_nested_too_deeply_is_read_no_further(opening: str) -> None:
    """It ends at the first level too many: what a level costs grows with how deep it is."""
    document = read_yaml(opening * 10_000)
    assert [what for _, what, _ in document.problems] == ["this is nested too deeply: more than 40 levels."]
    assert document.place_of(()).column <= 41 * len(opening)


@pytest.mark.slow
def test_what_has_too_many_keys_is_read_no_further() -> None:
    """It ends at the first one too many: each takes the counter of a desk some hundredths of a millisecond."""
    document = read_yaml("- {a: 1, b: 2}\n" * 50_000)
    assert [what for _, what, _ in document.problems] == ["this has more than 25,000 keys and values."]
    assert 5_000 <= document.place_of(()).line <= 25_000


def test_columns_equal_after_normalisation_are_an_error() -> None:
    """The same name composed and decomposed is one column, and must not be declared twice."""
    text = change(POLICY, ("  income:", "  caf\u00e9:"), ("  score:", "  cafe\u0301:"))
    text = change(text, (", weights: {income: 2}", ""), (", expected_error: {income: 0.2}", ""))
    [sentences] = problems_of(text)
    assert sentences.startswith("p.yaml:12:3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.yaml:1:1: the file is empty."),
        ("people", "p.yaml:1:1: a policy is a mapping that starts with 'policy: NAME'."),
        ("policy: people\nsteward: [ana\n", "p.yaml:3:1: this is not readable as YAML: "),
        ("policy: people\nsteward: *ana\n", "anchors and aliases (& and *) are not allowed here. Write the value out."),
        ("policy: people\n---\npolicy: other\n", "p.yaml:2:1: this is not readable as YAML: "),
        ("policy: \x07\n", "p.yaml:1:1: this is not readable as YAML: it holds characters that are no text."),
        ("? [a]\n: 1\n", "p.yaml:1:1: a key must be a plain text."),
    ],
)
def test_what_is_no_policy_at_all(text: str, message: str) -> None:
    """Text that is no mapping, or no YAML, is told with the place where it ends to be one."""
    assert any(message in sentences for sentences in problems_of(text))


def test_duplicate_keys_are_errors_at_the_second(tmp_path: Path) -> None:
    """At the top and inside, every repetition is told with the line of the first."""
    text = change(POLICY, ("retain: 90 days\n", "retain: 90 days\nsteward: ben\n"), ("grid: 0.1", "grid: 0.1, domain: [0, 1]"))
    assert problems_of(text) == (
        problem(
            text,
            "domain: [0, 1]",
            "columns.score.domain (line 12): 'domain' stands here a second time (first in line 12). Remove one.",
        ),
        problem(text, "steward: ben", "steward (line 19): 'steward' stands here a second time (first in line 2). Remove one."),
    )


def test_anchors_and_aliases_are_errors_each_at_its_place() -> None:
    """Every one is told where it stands, also two in one line; nothing is built from them."""
    text = change(POLICY, ("ana", "&who ana"), ("[note, other]", "[&a note, *a]"))
    sentences = [one for one in problems_of(text) if "anchors and aliases" in one]
    places = [problem(text, at, "").removesuffix(" ") for at in ("&who", "&a note", "*a]")]
    assert [one[: len(place)] for one, place in zip(sentences, places, strict=True)] == places


def test_aliases_of_aliases_are_not_written_out() -> None:
    """Five lines that stand for 10^4 entries stay five lines."""
    lines = ["a0: &a0 x"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 5)]
    document = read_yaml("\n".join(lines))
    assert document.problems
    assert len(document.places) < 1000


def test_texts_stay_texts() -> None:
    """YAML 1.1 would make booleans, minutes, octals and dates of these; here they are what stands in the file."""
    values = ["no", "yes", "on", "off", "12:30", "017", "0x1f", "1_000", "2020-01-01", "N", "-"]
    policy = parse(("[1, 2, 3], missing: {category: 3}", f"[{', '.join(values)}]"))
    assert policy.kept_columns["site"].values == tuple(values)
    assert not policy.kept_columns["site"].integers


@pytest.mark.parametrize(
    ("written", "values", "integers"),
    [
        ("[1, -2, 3]", (1, -2, 3), True),
        ('["1", 2, 3]', ("1", 2, 3), False),
        ("[true, false, 3]", ("true", "false", 3), False),
        ("[0.5, 1.50, 3]", ("0.5", "1.5", 3), False),
        ("['no', \"3\"]", ("no", "3"), False),
    ],
)
def test_categories_are_whole_numbers_or_texts(written: str, values: tuple[int | str, ...], integers: bool) -> None:
    """Quoted means text; a point means the number in its shortest spelling, as text."""
    policy = parse(("[1, 2, 3], missing: {category: 3}", written))
    assert (policy.kept_columns["site"].values, policy.kept_columns["site"].integers) == (values, integers)


@pytest.mark.parametrize(
    ("written", "nano"),
    [
        ("0.1", 100_000_000),
        (".5", 500_000_000),
        ("1e-3", 1_000_000),
        ("0.123456789", 123_456_789),
        ("+1.000000001", 1_000_000_001),
        ("1000000", 10**15),
    ],
)
def test_epsilon_is_exact_from_the_text(written: str, nano: int) -> None:
    """No float stands between the text and the whole number of nano-epsilon."""
    assert parse(("epsilon: 2", f"epsilon: {written}")).protect.epsilon.nano == nano


EACH_ROW = ("{column: id, records_per_release: 1}", "each-row")


@pytest.mark.parametrize(
    ("changes", "below"),
    [
        ([], 3),
        ([NOT_COMPARED], 10),
        ([NOT_COMPARED, (TWO, MONTHLY)], 10),
        ([("differencing_below: 3", "differencing_below: 0")], 0),
        ([NOT_COMPARED, (TWO, '["1"]')], 0),
        ([NOT_COMPARED, EACH_ROW], 0),
    ],
)
def test_a_series_of_persons_is_compared_unless_it_says_no(changes: list[tuple[str, str]], below: int) -> None:
    """10 where a series with a person column says nothing, what it says where it does, 0 where nobody can be counted."""
    assert parse(*changes).differencing_below == below


def test_epsilon_is_split_by_the_weights() -> None:
    """Weight 2 against 1: two thirds and one third of 2, no unit lost."""
    split = parse().column_epsilon
    assert {name: part.nano for name, part in split.items()} == {"income": 1_333_333_333, "score": 666_666_667}


SAME = {
    "comments": [("policy: people", "# why\npolicy: people  # of course")],
    "order-of-parts": [("retain: 90 days\n", ""), ("policy: people\n", "retain: 90 days\npolicy: people\n")],
    "point": [("epsilon: 2", "epsilon: 2.0"), ("[0, 5000], grid: 1", "[0.0, 5000.00], grid: 1.0"), ("{fill: 0}", "{fill: 0.0}")],
    "releases": [('["1", "2"]', "[1, 2]")],
    "zone": [("2027-01-15T09:30Z", "2027-01-15T10:30+01:00")],
    "defaults": [("records_per_release: 1", "records_per_release: 1"), (", records_per_release: 1", "")],
    "clamp": [("consistency: isotonic", "consistency: isotonic, clamp: yes")],
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_hash_ignores_how_it_is_written(changes: list[tuple[str, str]]) -> None:
    """Comments, order of keys, style and the spelling of numbers do not change the hash."""
    assert parse(*changes).canonical_hash() == parse().canonical_hash()


UNITS = {
    "line": re.compile(r".*\n"),
    "word": re.compile(r"\w+|\W"),
    "character": re.compile(r".|\n"),
    "value": re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|[^{}\[\]]+|."),
}
REPLACEMENTS = [
    *"{}[],:#&*!|>'\"%@`-? \t\n0579.e~é\u0301\x00",
    "null",
    "true",
    "1e999",
    "0",
    "-1",
    "[]",
    "{}",
    "9" * 25,
    "a: b",
    "{a: b}",
]
MUTATION = st.tuples(
    st.sampled_from(["delete", "duplicate", "replace", "swap"]),
    st.sampled_from(sorted(UNITS)),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.sampled_from(REPLACEMENTS),
)


def mutate(text: str, mutations: list[tuple[str, str, int, int, str]]) -> str:
    """`text` after deleting, doubling, replacing or swapping some of its lines, values, words or characters."""
    for what, unit, place, other, new in mutations:
        parts = UNITS[unit].findall(text) or [""]
        i, j = place % len(parts), other % len(parts)
        if what == "delete":
            del parts[i]
        elif what == "duplicate":
            parts.insert(j, parts[i])
        elif what == "replace":
            parts[i] = new
        else:
            parts[i], parts[j] = parts[j], parts[i]
        text = "".join(parts)
    return text


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(MUTATION, min_size=1, max_size=4))
def test_a_damaged_policy_loads_or_is_invalid(mutations: list[tuple[str, str, int, int, str]]) -> None:
    """Whatever happens to the demo's policy: it loads and can be planned, or every problem has its place; no other exception."""
    text = mutate(RAND_HIE, mutations)
    problems: tuple[str, ...] = ()
    try:
        policy = parse_policy(text, name="p.yaml")
    except PolicyInvalid as error:
        problems = error.problems
    else:
        plan = make_plan(policy)
        assert list(describe_plan(plan))
        assert to_json(view_plan(plan))["hash"] == policy.canonical_hash()
        return
    lines = text.count("\n") + 1
    places = [re.match(r"p\.yaml:([0-9]+):([0-9]+): .", one) for one in problems]
    assert places
    assert all(place is not None and 1 <= int(place[1]) <= lines for place in places), problems


@pytest.mark.parametrize("name", ["release_pipeline_record", "Release_Pipeline_x"])
def test_a_column_cannot_have_a_name_of_our_own(name: str) -> None:
    """It would collide with a column of the vault, after the charge."""
    columns = f"{{{name}: {{role: confidential, do: noise, domain: [0, 9], grid: 1, outside: fail, why: known}}}}"
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(policy_text(columns=columns), name="people")
    assert any("this software's own" in problem for problem in caught.value.problems)


def test_a_policy_is_parsed_once_for_as_long_as_its_files_are_the_same(tmp_path: Path) -> None:
    """Its own text, and that of a list that it names; a fault is told each time, and another text is another policy."""
    text = policy_text(
        columns=PARTS["columns"].replace("values: [north, south, east]", "values: {file: towns.csv, column: name}")
    )
    file, towns = tmp_path / "people.yaml", tmp_path / "towns.csv"
    file.write_text(text)
    towns.write_text("name\nnorth\nsouth\neast\n")
    first = load_policy(file)
    assert load_policy(file) is first
    towns.write_text("name\nnorth\nsouth\nwest\n")
    second = load_policy(file)
    assert second.canonical_hash() != first.canonical_hash()
    towns.unlink()
    for _ in range(2):
        with pytest.raises(PolicyInvalid, match="the policy has 1 error"):
            load_policy(file)
    towns.write_text("name\nnorth\nsouth\neast\n")
    assert load_policy(file).canonical_hash() == first.canonical_hash()
    file.write_text(text.replace("epsilon: 2", "epsilon: 1"))
    assert load_policy(file).canonical_hash() != first.canonical_hash()
