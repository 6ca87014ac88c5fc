"""Policies at the desk: who may look and edit, faults in their lines, what is written and what never is."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.flow.editing import MOST_BYTES
from release_pipeline.flow.trust.approvals import approve_policy
from release_pipeline.flow.trust.keys import PrivateKey
from tests.integration.desks import ROLES, Browser, OpenDesk, Page, name_people, open_desk, read_everything
from tests.integration.people import copy_site
from tests.integration.sites import TinySite, policy_text

CELLS = re.compile(r"\bp00\d\d\b|\bname\d+\b|\bremark\d+\b")
XSS = "</textarea><script>alert(1)</script><img src=x onerror=alert(1)>"
PLAIN = {"script", "img", "svg", "object", "embed", "iframe", "style", "base"}  # none of these is on a page of policies


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


def test_all_policies_are_listed_with_what_became_of_them(desk: OpenDesk) -> None:
    """Approved as it is now, changed since, never, and broken, for whoever works there."""
    desk.tiny.write_policy(policy="other")
    file_of(desk, "broken").write_text("policy: broken\nsteward: stef\nprotect: {k: 0}\n")
    file_of(desk, "Odd name").write_text("x")
    for person in ROLES.values():
        text = re.sub(r"\s+", " ", desk.open(person).get("/policies").text)
        rows = {row[1]: row[0] for row in re.findall(r'(<tr><th scope="row">(?:<a [^>]*>)?([^<]*).*?</tr>)', text)}
        assert set(rows) == {"people", "other", "broken", "Odd name"}
        assert ">yes</span>, since" in rows["people"]
        assert "candidate" in rows["people"]
        assert ">no</span>, never" in rows["other"]
        assert "faults</span>: nothing of it runs" in rows["broken"]
        assert ">stef</td>" in rows["broken"]
        assert "href" not in rows["Odd name"]
        assert not CELLS.search(text)


@pytest.mark.parametrize("role", ROLES)
def test_its_steward_alone_edits_a_policy(desk: OpenDesk, role: str) -> None:
    """Everybody looks; for others there is a text to read, and no form of theirs changes anything."""
    browser, before = desk.open(ROLES[role]), read_everything(desk.tiny.home / "policies")
    page = browser.get("/policies/people")
    assert page.status == 200
    assert "epsilon 2 in all" in page.text
    assert not CELLS.search(page.text)
    assert ('formaction="' in page.text) == (role == "steward")
    changed = file_of(desk).read_text().replace("min_rows: 20", "min_rows: 30")
    if role == "steward":
        return
    assert "min_rows: 20" in line_of(page, at(changed, "gates"))
    for deed in ("check", "save"):
        answer = browser.post(f"/policies/people/{deed}", {"text": changed, "began": ""})
        assert answer.status == 403
        assert "min_rows: 30" in read_form(answer)["text"]
    assert read_everything(desk.tiny.home / "policies") == before


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


def test_a_text_of_very_many_lines_is_not_compared(desk: OpenDesk) -> None:
    """Comparing lines that are there again and again would take the backend's time; it is told, and checked all the same."""
    page = send(desk.open("ana"), "check", file_of(desk).read_text() + "# again\n" * 5000)
    assert "It has more than 5000 lines, and is not compared here." in page.text
    assert "It is not saved yet" in page.text
    assert "# again" not in page.text.partition("What is not saved yet")[2].partition("</section>")[0]


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


@pytest.mark.parametrize(
    "name", ["..%2Fsite", "%2e%2e", "..%2F..%2Fetc%2Fpasswd", "people%00", "people%2f", ".people", "people.yaml", "PEOPLE"]
)
def test_no_name_leads_elsewhere(desk: OpenDesk, name: str) -> None:
    """No path comes from one."""
    ana, before = desk.open("ana"), read_everything(desk.tiny.home / "policies")
    assert ana.get(f"/policies/{name}").status == 404
    assert ana.get(f"/policies/{name}/explore").status == 404
    for deed in ("check", "save"):
        assert ana.post(f"/policies/{name}/{deed}", {"text": policy_text(), "began": ""}).status in (404, 405)
    assert read_everything(desk.tiny.home / "policies") == before


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


def test_a_list_that_a_file_names_is_read_as_at_the_desk(desk: OpenDesk) -> None:
    """Stewards with a shell write policies, too: what a file says already opens no other file of the site."""
    (desk.tiny.home / "towns.csv").write_text("north\nsouth\neast\n")
    text = policy_text().replace("values: [north, south, east]", "values: {file: ../towns.csv}")
    file_of(desk).write_text(text)
    ana = desk.open("ana")
    assert "leads out of the folder" in ana.get("/policies/people").text
    assert send(ana, "save", text.replace("min_rows: 20", "min_rows: 25")).status == 409


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


def make_long(text: str) -> str:
    return text + "#" * MOST_BYTES


def make_nul(text: str) -> str:
    return text + "# \0"


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [make_long, make_nul])
@pytest.mark.parametrize("deed", ["check", "save"])
def test_what_is_refused_stays_in_the_page(desk: OpenDesk, spoil: Callable[[str], str], deed: str) -> None:
    """Too long, and no text."""
    ana, text = desk.open("ana"), file_of(desk).read_text()
    page = send(ana, deed, spoil(text))
    assert page.status == 400
    assert read_form(page)["text"] == spoil(text)
    assert file_of(desk).read_text() == text
    assert read_form(page)["began"]


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


@pytest.mark.slow
def test_words_of_policies_are_words(desk: OpenDesk) -> None:
    """In texts, names of columns and options, titles, labels and faults: never a tag, wherever they stand."""
    ana, ben = desk.open("ana"), desk.open("ben")
    quoted = XSS.replace('"', "")
    texts = [
        XSS,
        f"{XSS}\n" + policy_text(),
        policy_text() + f"{quoted}: 1\n",
        policy_text() + f"# {XSS}\n",
        policy_text(steward=f'"{quoted}"'),
        policy_text(population=f'"{quoted}"'),
        policy_text(drop=f'["{quoted}"]'),
        policy_text().replace("title: People", f'title: "{quoted}"'),
        policy_text().replace("label:   town", f'label: "{quoted}"'),
        policy_text().replace("  town:", f'  "{quoted}":'),
        policy_text().replace("why: needed", f'why: "{quoted}"'),
        policy_text(releases=f'["{quoted}"]'),
        policy_text().replace("values: [north", f'values: ["{quoted}"'),
        policy_text(source=f'{{path: "{quoted}"}}'),
    ]
    for text in texts:
        for deed in ("check", "save"):
            page = send(ana, deed, text)
            assert page.status in (200, 409)
            assert not PLAIN & {tag for tag, _ in page.elements}, text
            if deed == "check" or page.status == 409:
                assert read_form(page)["text"] == text
        file_of(desk).write_text(text)
        for person in (ben, ana):
            for path in ("/policies", "/policies/people", "/policies/people/explore"):
                page = person.get(path)
                assert page.status == 200, (path, text)
                assert not PLAIN & {tag for tag, _ in page.elements}, (path, text)
        page = ana.get("/running")
        assert page.status == 200
        assert not PLAIN & {tag for tag, _ in page.elements}
        file_of(desk).write_text(policy_text())


WORDS = (
    *(
        "",
        "null",
        "~",
        "true",
        "[]",
        "{}",
        "[[]]",
        "0",
        "-1",
        "1e999",
        "1e-999",
        "99999999999999999999999",
        "0.1234567890123",
        "nan",
    ),
    *(
        "*a",
        "&a x",
        "!!python/object:os.system x",
        "? x",
        "|",
        ">",
        "'",
        '"',
        "\u2028",
        "\u202e",
        "\ufeff",
        "#",
        "- x",
        "{a: {b: {c: 1}}}",
    ),
    *(
        "1000000000",
        "k-epsilon",
        "mdav",
        "dp-table",
        "dp-cdf",
        "laplace",
        "2026-01-01",
        "12:30",
        "{every: month}",
        "{file: x}",
        "{csv: x}",
    ),
)


def mutate(text: str, chance: random.Random) -> str:
    """A policy with one to three things wrong: a line or word gone, doubled, moved, cut, or another one in its place."""
    for _ in range(chance.randint(1, 3)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[at])
            case 2:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case 3:
                lines[at] = f"{' ' * chance.randrange(4)}{lines[at]}"
            case 4:
                place = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + chance.choice(WORDS) + lines[at][place:]
            case _:
                words = re.findall(r"[\w.-]+|\W", lines[at]) or [""]
                words[chance.randrange(len(words))] = chance.choice(WORDS)
                lines[at] = "".join(words)
        text = "\n".join(lines)
    return text


@pytest.mark.slow  # each text is checked as `check` does
@pytest.mark.parametrize("seed", range(6))
def test_no_text_breaks_the_page(desk: OpenDesk, seed: int) -> None:
    """Whatever is wrong with it: faults in words, or a plan, and the text as it was sent."""
    ana, chance = desk.open("ana"), random.Random(seed)  # noqa: S311
    form = read_form(ana.get("/policies/people"))
    methods = (
        "{method: idp-cbls, epsilon: 2, k: 5}",
        "{method: laplace, epsilon: 1}",
        "{method: dp-cdf, epsilon: 1}",
        "{method: mdav, k: 5}",
    )
    for number in range(40):
        text = mutate(policy_text(protect=methods[number % len(methods)]), chance)
        page = ana.post("/policies/people/check", {**form, "text": text})
        assert page.status == 200, (seed, number, text)
        assert read_form(page)["text"].replace("\r\n", "\n").replace("\r", "\n") == text, (seed, number)


def test_remarks_are_written_of_the_policy_as_it_is(desk: OpenDesk) -> None:
    """By reviewers, the officer and its steward; a draft is its writer's, and gone from the page when the policy is another."""
    for person in ("ben", "olga", "ana"):
        browser = desk.open(person)
        assert ">protect.epsilon<" in browser.get("/policies/people").text
        browser.post(
            "/remarks", {"what": "policy", "subject": "people", "passage": "protect.epsilon", "text": f"too much, says {person}"}
        )
        assert f"says {person}" in browser.get("/policies/people").text
    assert "says ben" not in desk.open("ana").get("/policies/people").text
    for person in ("vic", "otto", "stef"):
        assert ">protect.epsilon<" not in desk.open(person).get("/policies/people").text


def test_a_site_without_an_officer_shows_its_policies(tmp_path: Path) -> None:
    """Nothing is approved there, which the pages say."""
    from tests.integration.sites import make_site

    tiny: TinySite = make_site(tmp_path / "site")
    name_people(tiny, "{ana: [steward]}")
    ana = open_desk(tiny).open("ana")
    assert ">no</span>, never" in ana.get("/policies").text
    assert "never approved" in ana.get("/policies/people").text
    assert "has no privacy officer" in ana.get("/running").text
