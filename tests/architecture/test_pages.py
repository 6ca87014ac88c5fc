"""The pages of docs/: every block says what it is, what they name exists, and the site that is made of them is whole: without a
network, on a phone, in the dark and on paper."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import click
import pytest
import yaml

from tests.architecture.test_text import find_places
from tests.integration.axe import find_violations, load_axe
from tests.integration.browser import Page, open_browser

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
EXAMPLES = ROOT / "examples"
PAGES = [
    *(*TOP, *sorted(DOCS.glob("*.md")), *sorted((DOCS / "decisions").glob("*.md"))),
    *(EXAMPLES / "README.md", *sorted(EXAMPLES.glob("*/README.md"))),
]
FENCE = re.compile(r"^ *```(.*)\n((?:.*\n)*?) *```$", re.MULTILINE)
EXECUTED = {  # pages whose sh and python blocks a test executes, and the test
    "analyst.md": "tests/integration/test_examples.py",
    "api.md": "tests/unit/test_api.py",
    "choosing.md": "tests/integration/test_examples.py",
    "dagster.md": "tests/integration/test_examples.py",
    "five-people.md": "tests/integration/test_five_people.py",
    "operating.md": "tests/integration/test_examples.py",
    "papers.md": "tests/integration/test_examples.py",
    "publishing.md": "tests/integration/test_walk_through.py",
    "restoring.md": "tests/integration/test_restoring.py",
    "reviewing.md": "tests/integration/test_examples.py",
    "roots.md": "tests/integration/test_roots.py",
    "start.md": "tests/integration/test_examples.py",
    "survey.md": "tests/integration/test_survey.py",
}
NOT_EXECUTED = {  # pages with blocks that nothing executes, how many these are, and why
    "README.md": (1, "they set up what this test runs in"),
    "CONTRIBUTING.md": (3, "they run the tests"),
    "docs/start.md": (1, "they set up what this test runs in"),
    "docs/analyst.md": (1, "it asks an index of packages"),
    "docs/deploying.md": (
        9,
        "they need root and systemd, an engine for containers, an index of packages, or two versions of the program",
    ),
    "docs/desk.md": (3, "they serve until they are stopped, or need root and systemd"),
    "docs/reproduction.md": (1, "it takes minutes; tests/integration/test_reproduce.py makes parts of it"),
}
GALLERY = "tests/integration/test_gallery.py calls its commands in this process"
NOT_EXECUTED |= {f"examples/{name}/README.md": (1, GALLERY) for name in ("diary", "hospital", "households", "pay")}
NOT_EXECUTED |= {"examples/register/README.md": (2, GALLERY)}
MADE = ("deploy/.env",)  # by the blocks themselves
SHOWN = {"sh example", "python example", "yaml", "json", "text"}  # and executed by nothing
READERS = ("Steward", "Privacy officer", "Reviewer", "Analyst", "Operator", "Auditor", "Contributor")
PHONE = 360
NO_COMMANDS = ('"$@"', "COMMAND", "statement")  # what a function is given, any command, the words that are signed


def blocks(file: Path) -> list[tuple[str, str]]:
    """What kind of block it is, and the block."""
    return FENCE.findall(file.read_text(encoding="utf-8"))


def test_every_block_says_what_it_is() -> None:
    """`sh` and `python` are executed by the test that the list names; an example says that it is one; YAML can be pasted."""
    for file in PAGES:
        kinds = {kind for kind, _ in blocks(file)}
        assert kinds <= SHOWN | ({"sh", "python"} if file.name in EXECUTED else set()), file
        rest = FENCE.sub("", file.read_text(encoding="utf-8"))
        assert re.findall(r"\n\n {4}\S.*", rest) == [], f"{file}: a block without a kind"
        assert all(isinstance(yaml.safe_load(block), dict) for kind, block in blocks(file) if kind == "yaml"), file


def test_what_is_executed_is_executed_by_that_test() -> None:
    """It reads the page by its name, and there is something to execute."""
    for page, test in EXECUTED.items():
        assert f'"{page}"' in (ROOT / test).read_text(encoding="utf-8"), page
        assert {kind for kind, _ in blocks(DOCS / page)} & {"sh", "python"}, page


def test_what_nothing_executes_has_a_reason() -> None:
    """And can be read by a shell, and names no file of the checkout that is not there."""
    shown = [(file, kind, block) for file in PAGES for kind, block in blocks(file) if kind.endswith(" example")]
    counted = Counter(file.relative_to(ROOT).as_posix() for file, _, _ in shown)
    assert counted == {page: count for page, (count, _) in NOT_EXECUTED.items()}
    for file, kind, block in shown:
        if kind != "sh example":
            continue
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.stderr == "", f"{file}: {block}"
        named = re.findall(r"(?<![\w./-])(?:deploy|docs|tests)/[\w./*-]+", block)
        assert [name for name in named if not (name in MADE or any(ROOT.glob(name)))] == [], file


@cache
def made_pages() -> ModuleType:
    """What makes parts of the site; it lies beside the pages, and is no package."""
    spec = importlib.util.spec_from_file_location("made_pages", DOCS / "made_pages.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018  for types alone
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def commands() -> dict[str, click.Context]:
    """Every command by its words."""
    return {context.command_path: context for context in made_pages().find_commands()}


def find_wrong_commands(text: str) -> list[str]:
    """Commands and options of ours that a page names and the program does not have."""
    code = "".join(block.replace("\\\n", " ") for kind, block in FENCE.findall(text) if kind.startswith("sh"))
    lines = [*code.splitlines(), *re.findall(r"`(release-pipeline [^`\n]+)`", FENCE.sub("", text))]
    return [
        call for line in lines for call in re.findall(r"(?<![\w@-])release-pipeline ([^|;#&`<]+)", line) if not _is_there(call)
    ]


def _is_there(call: str) -> bool:
    words = call.split()
    if words[0] in NO_COMMANDS:
        return True
    name = "release-pipeline"
    while words and f"{name} {words[0]}" in commands():
        name = f"{name} {words.pop(0)}"
    context = commands()[name]
    options = {name for option in context.command.get_params(context) for name in (*option.opts, *option.secondary_opts)}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    return asked <= options and (name != "release-pipeline" or bool(asked))


def test_commands_and_options_that_are_named_exist() -> None:
    """With the options of that command, and not of another; the search finds wrong ones."""
    files = [*PAGES, ROOT / "CHANGELOG.md"]
    assert [(file, call) for file in files for call in find_wrong_commands(file.read_text(encoding="utf-8"))] == []
    text = """
```sh example
release-pipeline publsh x   # a
release-pipeline run x --relase 1 | cat
release-pipeline run x --release 1
```
Then `release-pipeline status --htm A`.
"""
    assert [call.split()[0] for call in find_wrong_commands(text)] == ["publsh", "run", "status"]


def test_the_first_page_knows_every_page_and_every_reader() -> None:
    """Once in the list that the navigation is made of; the path of each kind of reader begins somewhere."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)#]+)\)", text.rpartition("\n## ")[2], re.MULTILINE)
    listed = [(DOCS / link).resolve() for link in links]
    top = [*TOP, ROOT / "CHANGELOG.md", DOCS / "decisions" / "README.md", EXAMPLES / "README.md"]
    assert sorted(listed) == sorted([*top, *(page for page in DOCS.glob("*.md") if page.name != "index.md")])
    headings = [heading.partition(":")[0] for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)]
    assert headings == [*READERS, "All pages"]


class Links(HTMLParser):
    """What a page of the site has for others to point at, where it points to, and what it loads by itself."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = set[str](), list[str](), list[str]()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given["id"]} if "id" in given else set()
        leads = tag == "a" or given.get("rel") in ("index", "search", "next", "prev")
        if leads and "href" in given:
            self.links.append(given["href"])
        loaded = given.get("href" if tag == "link" else "src")
        if loaded is not None and not leads:
            self.loads.append(loaded)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made once as `make docs` makes it."""
    if importlib.util.find_spec("sphinx") is None:
        reason = "Sphinx is not here: the extra `docs` has it, and `make` sets it up"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    folder = tmp_path_factory.mktemp("docs")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", "docs", "--doctree-dir", str(folder / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    """Every page of the site, read."""
    return {file: Links(file) for file in site.rglob("*.html")}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One for all tests."""
    with open_browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        yield page


def show(browser: Page, file: Path, query: str = "", *, width: int = 1280, media: str = "screen", colours: str = "light") -> None:
    """A page from the disk, without a network."""
    features = [{"name": "prefers-color-scheme", "value": colours}]
    browser.tell("Emulation.setEmulatedMedia", media=media, features=features)
    browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.go("about:blank")
    browser.go(file.as_uri() + query)
    browser.wait("document.readyState === 'complete' && location.protocol === 'file:'")


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site: Path, pages: dict[Path, Links]) -> None:
    """To a file, and to a place in it; every page is there."""
    assert len(pages) == len(PAGES) + 3  # the changelog, the search, and what leads to the first page
    wrong: list[str] = []
    for file, found in pages.items():
        for link in [*found.links, *found.loads]:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            place = (file.parent / unquote(name).partition("?")[0]).resolve() if name else file
            if not place.is_file() or (anchor and place in pages and unquote(anchor) not in pages[place].anchors):
                wrong.append(f"{file.relative_to(site)}: {link}")
    assert wrong == []


@pytest.mark.slow
def test_the_site_asks_nothing_of_a_network(site: Path, pages: dict[Path, Links]) -> None:
    """No font, script, picture or style from elsewhere; no package index, no machine of one workplace."""
    assert {load for found in pages.values() for load in found.loads if re.match(r"(?:[a-z]+:)?//", load)} == set()
    for file in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", file.read_text(encoding="utf-8")) == [], file.name
    assert [place for file in pages for place in find_places(file.name, file.read_text(encoding="utf-8"))] == []


@pytest.mark.slow
def test_commands_and_docstrings_are_those_of_the_program(site: Path) -> None:
    """Every command has its heading; every name that may be imported has its docstring, and no other has."""
    told = (site / "docs" / "commands.html").read_text(encoding="utf-8")
    assert re.findall(r"<h[23]>(release-pipeline[^<]*)<", told) == list(commands())
    api = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^- `(\w+)`: ", api, re.MULTILINE)) | {"ReleasePipelineError", "verify_path"}
    described = (site / "docs" / "reference.html").read_text(encoding="utf-8")
    assert set(re.findall(r'id="release_pipeline\.\w+\.(\w+)"', described)) == listed


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(site: Path, pages: dict[Path, Links], browser: Page) -> None:
    """Blocks and tables that are wider move in frames of their own, and nothing else does."""
    frames = "[...document.querySelectorAll('*')].filter((part) => !part.matches('pre, .table-wrapper, .highlight *'))"
    widest = f"""Math.max(document.documentElement.scrollWidth, ...{frames}
        .filter((part) => ['auto', 'scroll'].includes(getComputedStyle(part).overflowX) && part.clientWidth)
        .map((part) => part.scrollWidth + {PHONE} - part.clientWidth))"""
    wide: dict[str, int] = {}
    for file in sorted(pages):
        if file != site / "index.html":
            show(browser, file, width=PHONE)
            if (width := browser.evaluate(widest)) > PHONE:
                wide[str(file.relative_to(site))] = width
    assert wide == {}


@pytest.mark.slow
def test_axe_finds_nothing_on_the_site(request: pytest.FixtureRequest) -> None:
    """On pages of every shape: the first, long tables, blocks, what is made of docstrings and of help, decisions, the search."""
    axe = load_axe()  # before anything is made
    site, browser = request.getfixturevalue("site"), request.getfixturevalue("browser")
    names = ("index", "policy", "start", "reference", "commands", "decisions/README")
    files = [*(site / "docs" / f"{name}.html" for name in names), site / "search.html", site / "README.html"]
    assert {file.name: found for file in files if (found := find_violations(browser, axe, file))} == {}
