"""The officer's pages: requests for approval, and caps."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.ledger.account import describe_ledger, read_ledgers
from release_pipeline.ledger.policies import read_caps
from release_pipeline.review import requests
from release_pipeline.review.requests import list_requests, read_policy_request
from release_pipeline.signer.bundles import list_changes
from release_pipeline.trust.approvals import approve_policy, approve_populations, check_may_run, remark
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.remarks import Remarks
from tests.integration.desks import OpenDesk, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import TinySite
from tests.integration.test_desk_auditing import CELL
from tests.unit.report.accessibility import find_faults

pytestmark = pytest.mark.slow
CHANGED = {"protect": "{method: idp-cbls, epsilon: 3, k: 6}"}
POLICY, POPULATIONS = "/approvals/policies/people", "/approvals/populations"
CAPS = """
folk: {cap: {epsilon: 3, definition: idp, scope: column}}
adults: {cap: {epsilon: 1, definition: idp, scope: column}, was: folk}
"""


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate, where all is approved."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def read_text(page: str) -> str:
    """The words of a page, as people read them."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def test_the_difference_is_what_the_signer_computes(desk: OpenDesk) -> None:
    """Path by path between the form that was approved and that of now, and in words; the hash is what is signed."""
    before = json.loads(desk.tiny.site.policy("people").canonical_json())
    desk.tiny.write_policy(**CHANGED)
    policy = desk.tiny.site.policy("people")
    exact = list_changes(before, json.loads(policy.canonical_json()))
    assert exact
    assert list(read_policy_request(desk.tiny.site, "people").exact) == exact
    page = read_text(desk.open("olga").get(POLICY).text)
    assert all(line in page for line in exact)
    assert "the claim changes from: epsilon 2 in all" in page
    assert policy.canonical_hash() in page
    assert "noise at most" in page  # what check says


def test_a_text_that_was_written_meanwhile_is_not_shown(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file beside a hash is the one that the hash is of."""
    file, check = desk.tiny.site.policy_file("people"), requests.check_policy
    assert read_policy_request(desk.tiny.site, "people").text == file.read_text()

    def write_meanwhile(*given: Any, **more: Any) -> Any:
        file.write_text(file.read_text() + "# another\n")
        return check(*given, **more)

    monkeypatch.setattr(requests, "check_policy", write_meanwhile)
    assert read_policy_request(desk.tiny.site, "people").text == ""


@pytest.mark.parametrize(("carried", "told"), [("", True), (", was: folk", False)])  # which counts both
def test_people_who_are_charged_elsewhere_are_told_of(desk: OpenDesk, carried: str, told: bool) -> None:
    """The same source under a population whose charges do not count here: the budget looks fresh, and may not be."""
    desk.tiny.write_policy(policy="other", population="others")
    file = desk.tiny.home / "populations.yaml"
    file.write_text(f"{file.read_text()}others: {{cap: {{epsilon: 3, definition: idp, scope: column}}{carried}}}\n")
    page = read_text(desk.open("olga").get("/approvals/policies/other").text)
    assert ("people reads the same source, and is charged to folk" in page) == told


def test_remarks_on_a_policy_are_on_its_page(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """With whether they are of the text as it is now: an alert leads there."""
    site = desk.tiny.site
    digest = site.policy("people").canonical_hash()
    remark(site, Remarks("people", digest, (("protect.epsilon", "Say <b>why</b> it is 2."),)), key=keys["ben"])
    page = desk.open("ana").get(POLICY).text
    assert "Say &lt;b&gt;why&lt;/b&gt; it is 2." in page
    assert "as it was before" not in page
    desk.tiny.write_policy(**CHANGED)
    assert "as it was before" in desk.open("olga").get(POLICY).text


def test_an_approval_that_counts_no_more_is_not_compared_with(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """What is approved again is the last; another that was approved before it is history."""
    site = desk.tiny.site
    first = site.policy("people").canonical_hash()
    desk.tiny.write_policy(**CHANGED)
    approve_policy(site, "people", key=keys["olga"])
    desk.tiny.write_policy()
    request = read_policy_request(site, "people")
    assert request.request.hash == first
    assert not request.request.is_approved
    assert request.exact == ('protect.epsilon: "3" -> "2"', "protect.k: 6 -> 5")


def test_the_officer_alone_gets_a_form(desk: OpenDesk) -> None:
    """Who may look sees everything but that; operators see nothing."""
    desk.tiny.write_policy(**CHANGED)
    for name in ("olga", "ana", "ben", "vic"):
        browser = desk.open(name)
        for path in (POLICY, "/approvals"):
            page = browser.get(path)
            assert page.status == 200
            assert ('action="' + browser.base + '/sign"' in page.text) == (name == "olga" and path == POLICY)
        signing = browser.post("/sign", {"what": "policy", "subject": "people", "verdict": "approve", "why": ""})
        assert signing.status == (200 if name == "olga" else 403)
    for path in ("/approvals", POLICY, POPULATIONS, "/caps", "/audit"):
        assert desk.open("otto").get(path).status == 403


def test_a_policy_is_approved(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """From the request to the signature and back to the request; then runs may begin. Likewise the caps."""
    site, olga = desk.tiny.site, desk.open("olga")
    desk.tiny.write_policy(**CHANGED)
    desk.tiny.write_cap("epsilon: 12, definition: idp, scope: column")
    for what, subject, path in (("policy", "people", POLICY), ("populations", "populations", POPULATIONS)):
        [request] = [one for one in list_requests(site) if one.what == what]
        form = {"what": what, "subject": subject, "verdict": "approve", "why": ""}
        assert request.hash in olga.post("/sign", form).text
        signed = keys["olga"].sign(kind=what, subject=subject, digest=request.hash, name="olga")
        files = {"s.json": json.dumps(signed["statement"]).encode(), "s.json.sig": signed["sshsig"].encode()}
        sent = olga.post("/statements", {"what": what, "subject": subject, "verdict": "approve"}, files, follow=False)
        assert sent.header("location").startswith(f"{olga.base}{path}?")
        assert "It is approved as it is now" in olga.get(path).text
    with site.open_registry(read_only=True) as registry:
        check_may_run(site, registry, site.policy("people"), read_caps(site))


def test_what_cannot_be_approved_says_why(desk: OpenDesk) -> None:
    """A policy that says nothing of its data, and caps that forget charges: the reason and the remedy, and no form."""
    olga = desk.open("olga")
    desk.tiny.write_policy(about="")
    page, listed = olga.get(POLICY).text, olga.get("/approvals").text
    assert all(words in read_text(page) for words in ("about is missing", "--skeleton"))
    assert "Go on to sign" not in page
    assert "It cannot be approved as it is" in listed
    assert str(desk.tiny.home) not in page + listed
    desk.tiny.write_policy()
    (desk.tiny.home / "populations.yaml").write_text("others: {cap: {releases: 3}}\n")
    page = read_text(olga.get(POPULATIONS).text)
    assert "the population 'folk' was charged and is not declared any more" in page
    assert "Go on to sign" not in page


def test_caps_are_those_of_the_ledger(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """Every amount that `ledger` prints stands on the page, each charge leads to its chain, and what does not fit is named."""
    (desk.tiny.home / "populations.yaml").write_text(CAPS)
    approve_populations(desk.tiny.site, key=keys["olga"])
    browser = desk.open("olga")
    page = browser.get("/caps")
    text = read_text(page.text)
    for ledger in read_ledgers(desk.tiny.site):
        account = ledger.account
        part = text[text.index(f"{account.population}  (") :]
        assert re.search(rf"Cap\s+{account.limit}\s+Spent\s+{account.spent}\s+Of it reserved\s+0\s+Left\s+{account.left}\s", part)
        assert list(describe_ledger(ledger))
        for charge in ledger.charges:
            assert f'href="{browser.base}/chain/{charge.id}"' in page.text
    assert "More is spent than the cap allows" in text
    assert "It is carried on by adults" in text
    assert page.text.count('<td class="warn">planned: will be refused</td>') == 1
    drawn = [said for tag, said in page.elements if tag in ("svg", "path", "circle", "line", "text", "g")]
    assert drawn
    assert not any("style" in said for said in drawn)
    desk.tiny.write_cap("epsilon: 3, definition: idp, scope: column")
    assert "This planned release does not fit any more: people/2/r1." in read_text(browser.get("/caps").text)


def test_the_pages_are_whole(desk: OpenDesk) -> None:
    """For who does not see them; with no cell of the data, no style or script of their own, and no path of the machine; before
    and after something is to be approved."""
    for change in (lambda: None, lambda: desk.tiny.write_policy(**CHANGED), lambda: _write_caps(desk.tiny)):
        change()
        browser = desk.open("olga")
        for path in ("/approvals", POLICY, POPULATIONS, "/caps"):
            page = browser.get(path)
            assert page.status == 200, path
            assert find_faults(page.text) == [], path
            assert not CELL.search(page.text), path
            assert not re.search(r"<script|<style|\bstyle=|\bon[a-z]+=", page.text), path
            assert str(desk.tiny.home) not in page.text, path


def _write_caps(tiny: TinySite) -> None:
    (tiny.home / "populations.yaml").write_text(CAPS)
