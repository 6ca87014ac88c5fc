"""Policies at the desk: who may look and edit, faults in their lines, what is written and what never is."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.flow.trust.approvals import approve_policy
from release_pipeline.flow.trust.keys import PrivateKey
from tests.integration.desks import Browser, OpenDesk, Page, name_people, open_desk, read_everything
from tests.integration.people import copy_site
from tests.integration.sites import policy_text

CELLS = re.compile(r"\bp00\d\d\b|\bname\d+\b|\bremark\d+\b")


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate, and two more stewards without a key."""
    tiny = copy_site(candidate, tmp_path / "site")
    name_people(tiny, "{vic: [auditor], otto: [operator], stef: [steward], ana: [steward]}")
    return open_desk(tiny)


def file_of(desk: OpenDesk, name: str = "people") -> Path:
    return desk.tiny.home / "policies" / f"{name}.yaml"


def read_form(page: Page) -> dict[str, str]:
    """What stands in the form of a policy."""
    [text] = re.findall(
        r"<textarea[^>]*>\n?(.*?)</textarea>", re.sub(r'<textarea id="remark".*?</textarea>', "", page.text), re.DOTALL
    )
    began = {said["value"] for tag, said in page.elements if tag == "input" and said.get("name") == "began"}
    return {"text": unescape(text), **({"began": next(iter(began))} if began else {})}


def send(browser: Browser, deed: str, text: str | None = None, name: str = "people", **other: str) -> Page:
    """The form of a policy with another text, as the page has it else."""
    form = read_form(browser.get(f"/policies/{name}"))
    return browser.post(f"/policies/{name}/{deed}", {**form, **({} if text is None else {"text": text}), **other})


def line_of(page: Page, number: int) -> str:
    """What stands at a line of the listing, without tags."""
    [found] = re.findall(rf'<li id="line-{number}".*?</li>', page.text, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>|\s+", " ", found))


def at(text: str, words: str) -> int:
    """The line that these words stand in first."""
    return text[: text.index(words)].count("\n") + 1


def test_another_steward_edits_nothing_of_hers(desk: OpenDesk) -> None:
    """Nor takes a policy over, by its form or by beginning it anew."""
    stef, before = desk.open("stef"), read_everything(desk.tiny.home / "policies")
    text = file_of(desk).read_text()
    assert "ana is its steward" in stef.get("/policies/people").text
    for began in ("", read_form(desk.open("ana").get("/policies/people"))["began"]):
        for deed in ("check", "save"):
            answer = stef.post(
                f"/policies/people/{deed}", {"text": text.replace("steward: ana", "steward: stef"), "began": began}
            )
            assert answer.status in (400, 403), answer.text
    assert "is taken" in stef.get("/new-policy?name=people").text
    file_of(desk).unlink()  # the registry knows whose it was
    assert stef.get("/new-policy?name=people").status == 403
    assert desk.open("ana").get("/new-policy?name=people").status == 200
    file_of(desk).write_text("policy: people\nsteward: [\n")
    assert "ana is its steward" in stef.get("/policies/people").text
    assert 'formaction="' in desk.open("ana").get("/policies/people").text
    file_of(desk).write_text(text)
    assert read_everything(desk.tiny.home / "policies") == before


def test_faults_are_shown_in_their_lines_and_nothing_is_written(desk: OpenDesk) -> None:
    """Every one with line and column, and the summary leads there; the text stays as it was typed."""
    ana, before = desk.open("ana"), file_of(desk).read_bytes()
    text = (
        file_of(desk)
        .read_text()
        .replace("k: 5", "k: 0")
        .replace("outside: clamp", "outsied: clamp")
        .replace("steward: ana", "steward: bob")
    )
    for deed in ("check", "save"):
        page = send(ana, deed, text)
        assert page.status == (200 if deed == "check" else 409)
        protect, rent = at(text, "protect"), at(text, "  rent")
        assert "'0' is too small" in line_of(page, protect)
        assert "Column 41" in line_of(page, protect)
        assert "'outsied' is not known here" in line_of(page, rent)
        assert f'href="#line-{protect}"' in page.text
        assert f'href="#line-{rent}"' in page.text
        assert read_form(page)["text"] == text
        assert file_of(desk).read_bytes() == before
    assert "Nothing was written." in page.text
    page = send(ana, "save", file_of(desk).read_text().replace("steward: ana", "steward: bob"))
    assert "its steward is bob, and you are ana" in line_of(page, 2)
    page = send(ana, "save", file_of(desk).read_text().replace("policy: people", "policy: crowd"))
    assert "calls itself" in line_of(page, 1)
    assert file_of(desk).read_bytes() == before


@pytest.mark.slow
def test_what_is_saved_is_the_file_and_approved_no_more(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """The page says before what saving does, and after it how the policy differs from what was approved."""
    ana = desk.open("ana")
    file_of(desk).chmod(0o640)
    before = ana.get("/policies/people")
    assert "This policy is approved as it is in its file" in before.text
    text = file_of(desk).read_text().replace("min_rows: 20", "min_rows: 30") + "# \u00e4\u4e2d\U0001f600 <b>\n"
    checked = send(ana, "check", text.replace("\n", "\r\n"))
    assert "It is not saved yet" in checked.text
    assert "What is not saved yet" in checked.text
    assert "-gates: {min_rows: 20}" in checked.text
    assert "+gates: {min_rows: 30}" in checked.text
    assert "min_rows: 20" in file_of(desk).read_text()
    page = send(ana, "save", text.replace("\n", "\r\n"))
    assert page.status == 200
    assert "policies/people.yaml is saved" in page.text
    assert "What is not saved yet" not in page.text
    assert file_of(desk).read_text() == text
    assert file_of(desk).stat().st_mode & 0o777 == 0o640
    assert "not approved" in page.text
    assert "What is different from what was approved" in page.text
    assert re.search(r"min_rows[^<]*20[^<]*30", page.text)
    approve_policy(desk.tiny.site, "people", key=keys["olga"])
    assert "This policy is approved as it is in its file" in ana.get("/policies/people").text


@pytest.mark.slow
def test_what_two_people_write_is_not_lost(desk: OpenDesk) -> None:
    """Who saves second sees what the first one wrote, and their own text whole; then they decide."""
    ana, again = desk.open("ana"), desk.open("ana")
    form = read_form(ana.get("/policies/people"))
    mine, theirs = form["text"].replace("min_rows: 20", "min_rows: 31"), form["text"].replace("min_rows: 20", "min_rows: 32")
    assert again.post("/policies/people/save", {**form, "text": theirs}).status == 200
    page = ana.post("/policies/people/save", {**form, "text": mine})
    assert page.status == 409
    assert "Nothing was written" in page.text
    assert file_of(desk).read_text() == theirs
    assert read_form(page)["text"] == mine
    assert "-gates: {min_rows: 32}" in page.text
    assert "+gates: {min_rows: 31}" in page.text
    checked = ana.post("/policies/people/check", read_form(page))
    assert ana.post("/policies/people/save", read_form(checked)).status == 200
    assert file_of(desk).read_text() == mine
    assert ana.post("/policies/people/save", {**form, "text": mine}).status == 409
    file_of(desk).unlink()
    page = ana.post("/policies/people/save", {**form, "text": mine})
    assert page.status == 409
    assert read_form(page) == {"text": mine, "began": ""}


@pytest.mark.slow
def test_a_policy_is_begun_and_saved(desk: OpenDesk) -> None:
    """From a text that says what each part is for; nothing is written before it is without faults, under a name that is free."""
    ana = desk.open("ana")
    page = ana.get("/new-policy?name=fresh")
    assert "policy: fresh" in read_form(page)["text"]
    assert "steward: ana" in read_form(page)["text"]
    assert "population is empty" in page.text
    assert not file_of(desk, "fresh").exists()
    text = policy_text(policy="fresh", protect="{method: laplace, epsilon: 1}")
    form = {**read_form(page), "text": text}
    assert ana.post("/policies/fresh/check", form).status == 200
    assert not file_of(desk, "fresh").exists()
    assert ana.post("/policies/fresh/save", form).status == 200
    assert file_of(desk, "fresh").read_text() == text
    assert ana.post("/policies/fresh/save", form).status in (400, 409)
    for name in ("Fresh", "a/b", "../x", "..", "-x", "x" * 64, "x.yaml", "%2e%2e", "fr\u00e9sh", "peo ple"):
        assert ana.get(f"/new-policy?{urlencode({'name': name})}").status == 400, name
    assert {file.name for file in (desk.tiny.home / "policies").iterdir()} == {"people.yaml", "fresh.yaml"}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["values: {{file: {}}}", "hierarchy: {{csv: {}}}"])
def test_a_text_names_no_file_elsewhere(desk: OpenDesk, tmp_path: Path, form: str) -> None:
    """Else what the site's account can read would be told as the values of a column: another's file, by any way there."""
    secret = tmp_path / "secret.csv"
    secret.write_text("top\nsecret\n")
    folder, ana = desk.tiny.home / "policies", desk.open("ana")
    (folder / "link.csv").symlink_to(secret)
    (folder / "there").symlink_to(tmp_path)
    others = (str(secret), "../../secret.csv", "link.csv", "there/secret.csv", '"a\\0b"', "x" * 5000, "..", "~/x")
    for path in (*others, "../site.yaml", "../people.csv, column: name", "../vault/key"):  # of the site, and none of its policies
        text = policy_text().replace("values: [north, south, east]", form.format(path))
        for deed in ("check", "save"):
            page = send(ana, deed, text)
            assert re.search("no name of a list|leads out of the folder|is a link to another place", page.text), path
            assert page.status == (200 if deed == "check" else 409)
            assert not CELLS.search(page.text)
    (folder / "towns.csv").write_text("north\nsouth\neast\n")
    if form.startswith("values"):
        assert send(ana, "save", policy_text().replace("values: [north, south, east]", "values: {file: towns.csv}")).status == 200


def test_a_link_is_neither_shown_nor_replaced(desk: OpenDesk, tmp_path: Path) -> None:
    """Nobody sees a line of the file that it leads to, and the policy is faulty on every page."""
    ana, elsewhere = desk.open("ana"), tmp_path / "people.yaml"
    form = read_form(ana.get("/policies/people"))
    file_of(desk).rename(elsewhere)
    file_of(desk).symlink_to(elsewhere)
    text = elsewhere.read_text()
    began = ana.get("/policies/people")
    assert "is a link to another place" in began.text
    assert "is a link to another place" in str(desk.tiny.site.read_policies()[1])
    assert "min_rows" not in began.text
    page = ana.post("/policies/people/save", {**form, "text": text.replace("min_rows: 20", "min_rows: 25")})
    assert page.status == 409
    assert "is a link to another place" in page.text
    assert "min_rows: 25" in page.text  # what she wrote is not lost
    assert elsewhere.read_text() == text
    assert file_of(desk).is_symlink()


def test_a_text_outlives_its_session(desk: OpenDesk) -> None:
    """Whoever was logged out meanwhile copies it from the page."""
    ana = desk.open("ana")
    form = read_form(ana.get("/policies/people"))
    keep = list(ana.cookies)
    ana.post("/leave")
    ana.cookies = keep
    page = ana.post("/policies/people/save", {**form, "text": "mine"})
    assert page.status == 401
    assert read_form(page)["text"] == "mine"
