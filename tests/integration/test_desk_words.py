"""What pages say when something waits for others, was sent wrong, or is over: in words, without commands for the desk's work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from release_pipeline.desk.backend.signing import REMARKS_FORMAT
from release_pipeline.flow.opening import revise_release
from release_pipeline.flow.states import ReleaseId
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.verify import hash_remarks
from tests.integration.desks import RELEASE, Browser, OpenDesk, open_desk
from tests.integration.people import copy_site
from tests.integration.test_desk_roles import bring, sign

pytestmark = pytest.mark.slow
PAGE = f"/releases/{RELEASE}"
VOTE = {"what": "candidate", "subject": RELEASE}


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def read_fields(text: str, name: str) -> list[str]:
    """The fields of this name in a page, as they stand in it."""
    return [tag for tag in re.findall(r"<input[^>]*>", text) if f'name="{name}"' in tag]


@pytest.mark.parametrize(("verdict", "why"), [("return", ""), ("reject", "x" * 501)])
def test_a_wrong_reason_is_told_at_its_field(desk: OpenDesk, verdict: str, why: str) -> None:
    """With the choice and the reason as they were sent; of something else the page of refusals tells."""
    page = desk.open("ben").post("/sign", {**VOTE, "verdict": verdict, "why": why})
    assert 400 <= page.status < 500
    assert "Go back" not in page.text
    [reason] = read_fields(page.text, "why")
    assert all(words in reason for words in (f'value="{why}"', "autofocus", 'aria-describedby="why-fault'))
    assert page.text.count('id="why-fault"') == 1
    [chosen] = [tag for tag in read_fields(page.text, "verdict") if " checked" in tag]
    assert f'value="{verdict}"' in chosen
    other = desk.open("olga").post("/sign", {"what": "policy", "subject": "people", "verdict": "return", "why": ""})
    assert "Go back in your browser" in other.text
    assert "Go back" not in desk.open("ben").get("/releases/people/9/r9").text


def test_a_file_that_is_no_statement_is_named(desk: OpenDesk) -> None:
    """Whatever it is, it is not passed over in silence."""
    ben, fields = desk.open("ben"), {**VOTE, "verdict": "approve"}
    for content in (b"{}", b"[]", b"kind"):
        page = ben.post("/statements", fields, {"bundle.json": content, "bundle.json.sig": b"x"})
        assert "bundle.json is no statement as `sign` writes it: it does not say what was decided" in page.text


def test_a_saved_policy_is_told_to_its_steward_and_is_not_broken(desk: OpenDesk) -> None:
    """She waits for the officer; the operator is told of what is broken alone."""
    file = desk.tiny.home / "policies" / "people.yaml"
    file.write_text(file.read_text().replace("min_rows: 20", "min_rows: 25"))
    home = desk.open("ana").get("/").text
    assert "people waits for olga" in home
    assert re.search('href="[^"]*/policies/people"', home)
    (desk.tiny.home / "policies" / "odd.yaml").write_text("policy: odd\n")
    for name, path in (("otto", "/"), ("vic", "/audit")):
        wrong = desk.open(name).get(path).text
        assert "odd.yaml" in wrong
        assert "is not approved" not in wrong
        assert "release-pipeline approve" not in wrong


def test_a_steward_who_answered_waits(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """Until then the page has links to how she answers, and no commands for it."""
    for name, verdict in (("ben", "return"), ("cleo", "approve")):
        bring(desk.open(name), sign(desk, keys[name], name, kind=verdict, why="too coarse" * (verdict == "return")))
    ana = desk.open("ana")
    assert "too coarse" in ana.get("/").text
    page = ana.get(PAGE).text
    assert "You answer by" in page
    for text in (page, ana.get("/").text, ana.get("/releases").text):
        assert "release-pipeline remark" not in text
        assert "run --revise" not in text
    assert "What reviewers are asked" in page
    answer(desk, ana, keys["ana"])
    assert "you answered; it waits for ben" in ana.get("/").text
    ben = desk.open("ben")
    assert "its steward answered" in ben.get("/").text
    page = ben.get(PAGE).text
    assert "You returned it; you may vote again, and only the last vote counts" in page
    assert "Until every vote is in" not in page


def answer(desk: OpenDesk, ana: Browser, key: PrivateKey) -> None:
    """The steward's remark, signed and brought."""
    text = "It is what the cap has room for."
    ana.post("/remarks", {**VOTE, "passage": "", "text": text})
    document = {"format": REMARKS_FORMAT, "subject": RELEASE, "remarks": [{"passage": "", "text": text}]}
    document["hash"] = str(desk.tiny.statuses()[ReleaseId("people", "1")].candidate_hash)
    bring(ana, sign(desk, key, "ana", kind="remarks", digest=hash_remarks(document)))


def test_a_revision_stands_beside_the_release_before_it_in_figures(desk: OpenDesk) -> None:
    """Rows, claim and the errors of each masked column; the pages of both are below. Without one before there is no table."""
    ben = desk.open("ben")
    assert "<table" not in ben.get(f"{PAGE}/compare").text
    revise_release(desk.tiny.site, "people", "1", why="with a note")
    desk.tiny.flow("1").run()
    page = ben.get("/releases/people/1/r2/compare").text
    rows = re.findall('<th scope="row">(.*?)</th><td data-label="Then">(.*?)</td><td data-label="Now">(.*?)</td>', page)
    found = {of: (then, now) for of, then, now in rows}
    assert found["Rows"][0] == found["Rows"][1] != "not there"
    errors = [of for of in found if of.endswith(": actual error")]
    assert errors
    for of in errors:
        then, now = found[of]
        assert re.fullmatch(r"[0-9.]+", then)
        is_bold, least, most = now.startswith("<b>"), *sorted(float(part.strip("</b>")) for part in (then, now))
        assert is_bold == (most > 1.25 * least), (then, now)
        assert {of.replace("actual", "expected"), of.replace("actual error", "Kolmogorov-Smirnov distance")} <= set(found)
    assert page.count("<iframe") == 2
