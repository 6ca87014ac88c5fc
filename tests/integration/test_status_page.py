"""`status --html`: one page of a real site, through the command line."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.cli import main
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.opening import revise_release
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.withdrawal import retract
from release_pipeline.flow.states import move
from release_pipeline.flow.status.ledger import read_ledgers
from release_pipeline.flow.status.ledger_document import ledger_to_json
from release_pipeline.flow.status.overview import list_releases
from release_pipeline.flow.status.page import build_status
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.report.status import ReleaseView, format_amount
from release_pipeline.store.registry import ReleaseId
from tests.integration.people import copy_site, review
from tests.integration.sites import GX_WARNINGS, TinySite, make_rows, make_site, spoil

pytestmark = GX_WARNINGS


@pytest.fixture(autouse=True)
def _signal_handler() -> Iterator[None]:
    """The handler that `main` sets is put back."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A candidate, a blocked release, an open one, and a policy that cannot be read."""
    tiny = make_site(
        tmp_path_factory.mktemp("status") / "office", rows=make_rows(releases=("1", "2", "3")), releases='["1", "2", "3"]'
    )
    tiny.flow("1").run()
    spoil(tiny, "out of domain", make_rows(releases=("2", "3")))
    with pytest.raises(ReleasePipelineError):
        tiny.flow("2").run()
    (tiny.home / "policies" / "broken.yaml").write_text("policy: broken\n")
    return tiny


def test_the_page_of_a_real_site(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The states, the sums of the ledger, what needs attention; written once unless told otherwise; nothing of the data in it."""
    file = tmp_path / "status.html"
    arguments = ["status", "--home", str(tiny.home), "--html", str(file)]
    assert main(arguments) == 0
    said = "needs attention: 1 blocked, 1 waiting for approval, 1 broken at the site"
    assert capsys.readouterr().out == f"{file}: {said}\n"
    page = file.read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<[^>]*>", " ", page.partition("</style>")[2]).split())
    for words in (
        "office",
        "◆ candidate",
        "■ blocked",
        "○ open",
        "column income: up to 10 records outside the declared domain",
        "0 of 2",
        "policies/broken.yaml:",
        "epsilon 2 in all (1 for each of 2 columns)",
    ):
        assert words in text, words
    assert str(tiny.home) not in page
    assert not any(row["name"] in page.split() or row["remark"] in page for row in make_rows())

    assert main(arguments) == 2
    assert "--overwrite" in capsys.readouterr().err
    file.write_text("old")
    assert main([*arguments, "--overwrite"]) == 0
    assert "◆" in file.read_text(encoding="utf-8")


def test_its_sums_are_those_of_the_ledger(tiny: TinySite) -> None:
    """Spent, reserved, remaining, and each charge and plan."""
    [content], [shown] = [ledger_to_json(ledger) for ledger in read_ledgers(tiny.site)], build_status(tiny.site).populations
    sums = {"cap": shown.cap, "spent": shown.spent, "reserved": shown.reserved, "remaining": shown.remaining}
    assert {name: format_amount(amount, shown) for name, amount in sums.items()} == {name: content[name] for name in sums}
    steps = [(step.release, format_amount(step.amount, shown)) for step in shown.steps]
    assert steps == [(step["release"], step["amount"]) for step in [*content["charges"], *content["planned"]]]


def test_a_broken_list_of_populations_is_said_and_the_rest_is_shown(tiny: TinySite) -> None:
    """Once, and without budgets."""
    good = tiny.site.populations_file.read_text()
    tiny.site.populations_file.write_text("folk: {}\n")
    try:
        view = build_status(tiny.site)
    finally:
        tiny.site.populations_file.write_text(good)
    assert view.populations == ()
    assert sum("populations.yaml" in text for text in view.broken) == 1
    assert [release.state for release in view.series[0].releases] == ["candidate", "blocked", "open"]


def test_packages_are_linked_from_where_the_page_lies(candidate: Path, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """Of what was published, superseded or retracted later or not; approvals are named; only files that are there are linked."""
    tiny = copy_site(candidate, tmp_path / "office")
    release = ReleaseId("people", "1")
    review(tiny, keys, "ben")
    assert view_of(tiny).approvers == ("ben",)
    review(tiny, keys, "cleo")
    assert (view_of(tiny).state, view_of(tiny).card, view_of(tiny).needed) == ("approved", "", 2)

    package = publish(tiny.site, release, key=keys["robot"])
    assert view_of(tiny).card == "releases/people/1/r1/privacy-card.html"
    beside = tmp_path / "a b"
    beside.mkdir()
    assert view_of(tiny, beside).note == "../office/releases/people/1/r1/RELEASE_NOTE.md"
    assert view_of(tiny, tiny.home / "policies").card == "../releases/people/1/r1/privacy-card.html"
    with tiny.site.open_registry() as registry:
        move(registry, release, "superseded", successor="people/1/r2")
    assert (view_of(tiny).state, view_of(tiny).successor, view_of(tiny).card != "") == ("superseded", "people/1/r2", True)
    retract(tiny.site, release, key=keys["olga"], why="withdrawn")
    shown = view_of(tiny)
    assert (shown.state, shown.successor, shown.card != "") == ("retracted", "people/1/r2", True)
    assert shown.reason == "withdrawn"
    (package / "RELEASE_NOTE.md").unlink()
    assert (view_of(tiny).card != "", view_of(tiny).note) == (True, "")


def test_a_release_that_was_given_up_says_for_which(tmp_path: Path) -> None:
    """Once, as a field that becomes a link, and not in the words of its reason too."""
    tiny = make_site(tmp_path / "office", cap="epsilon: 100, definition: idp, scope: column")
    tiny.flow("1").run()
    revise_release(tiny.site, "people", "1", why="a wrong top code")
    old, new, _ = build_status(tiny.site).series[0].releases
    assert (old.name, old.given_up, old.reason) == ("people/1/r1", "people/1/r2", "")
    assert (new.name, new.state, new.reason) == ("people/1/r2", "open", "opened: a wrong top code")


def view_of(tiny: TinySite, folder: Path | None = None) -> ReleaseView:
    """The first release of the first policy, on a page in that folder."""
    return build_status(tiny.site, folder=folder).series[0].releases[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--overwrite"], "none is named"),
        (["--html", "page.txt"], "must end in .html"),
        (["--html", "vault/page.html"], "the site's own files"),
        (["--html", "releases/people/page.html"], "the site's own files"),
    ],
)
def test_what_the_command_refuses(
    tiny: TinySite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    """With exit code 2, before anything is written."""
    (tiny.home / "releases" / "people").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tiny.home)
    assert main(["status", *options]) == 2
    assert words in capsys.readouterr().err
    assert not list(tiny.home.rglob("page.*"))


def test_status_says_who_approved_and_what_the_officer_has_not(
    candidate: Path, keys: dict[str, PrivateKey], tmp_path: Path
) -> None:
    """The reviewers see each other; a file that was changed since its approval is told before anybody runs it."""
    tiny = copy_site(candidate, tmp_path / "site")
    review(tiny, keys, "ben")
    lines, broken = list_releases(tiny.site)
    assert ([line.claim.rpartition(" (")[2] for line in lines[:1]], broken) == (["1 of 2 votes are in: ben)"], [])
    assert view_of(tiny).reason == ""
    tiny.write_cap("epsilon: 11, definition: idp, scope: column")
    [words] = list_releases(tiny.site)[1]
    assert "populations.yaml is not approved by the privacy officer as it is now" in words
