"""Published packages go to targets, once and whole, whatever breaks off; and are taken back as far as a target lets one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.publish.delivery import DELIVERED, DELIVERING, RECALLED, NotDelivered, deliver, list_outstanding
from release_pipeline.publish.publish import retract
from release_pipeline.publish.verification import verify, write_events
from release_pipeline.store.files import Probe
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.command import verify_path
from tests.integration.people import RELEASE, copy_site
from tests.integration.sites import TinySite
from tests.integration.targets import CUT, Archive, Bucket, serving
from tests.leaks import find_canaries

Keys = dict[str, PrivateKey]
NAME = str(RELEASE)
KEY_ID, PASSWORD = "AKIAzyxEXAMPLE", "s3cretword-of-the-store"
SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"


class Killed(BaseException):
    """In the place of a signal: nothing of ours catches it."""


@dataclass(frozen=True)
class Case:
    """A kind of target: what site.yaml says, what lies there by name, and the number of deposits."""

    text: str
    contents: Callable[[], dict[str, bytes]]
    count: Callable[[], int]
    archive: Archive | None = None


@dataclass(frozen=True)
class Delivering:
    """A published site with one target."""

    tiny: TinySite
    case: Case

    @property
    def site(self) -> Site:
        """The site."""
        return self.tiny.site

    @property
    def package(self) -> dict[str, bytes]:
        """The package as it is in releases/."""
        return {file.name: file.read_bytes() for file in self.site.package(NAME).iterdir()}

    def kinds(self) -> list[str]:
        """The kinds of the events about deliveries."""
        return [event.kind for event in self.tiny.events() if event.kind in (DELIVERING, DELIVERED, RECALLED)]

    def last(self) -> dict[str, Any]:
        """What the last event has."""
        return dict(self.tiny.events()[-1].content)

    def finish(self, **how: Any) -> list[str]:
        """Deliver what is left, as often as it takes."""
        outcomes: list[str] = []
        for _ in range(3):
            try:
                deliver(self.site, RELEASE, tell=outcomes.append, **how)
            except NotDelivered:
                continue
            return outcomes
        raise AssertionError("it is not finished by the same command")

    def check_whole(self) -> None:
        """Once there, and just what was published."""
        assert self.case.contents() == self.package
        assert self.case.count() == 1
        assert self.kinds() == [DELIVERING, DELIVERED]


def name_target(tiny: TinySite, text: str) -> None:
    """Put targets into site.yaml."""
    file = tiny.home / "site.yaml"
    file.write_text(f"{file.read_text()}targets:\n{text}")


def look(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}


def make_folder_case(tmp_path: Path) -> Case:
    """A folder."""
    folder = tmp_path / "public" / NAME
    return Case(f"  open: {{to: {tmp_path / 'public'}}}\n", lambda: look(folder), folder.is_dir)


def make_bucket_case(bucket: Bucket) -> Case:
    """A part of an object store."""
    start = f"/open-data/health/{NAME}/"
    found = lambda: {key.removeprefix(start): part for key, part in bucket.objects.items() if key.startswith(start)}  # noqa: E731
    return Case('  open: {to: "s3://open-data/health"}\n', found, lambda: len(bucket.objects) > 0, bucket)


@pytest.fixture
def open_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Case]]:
    """A kind of target, by name."""
    with ExitStack() as stack:

        def make(kind: str) -> Case:
            if kind == "folder":
                return make_folder_case(tmp_path)
            bucket = Bucket()
            stack.enter_context(serving(bucket))
            for name, value in {
                "AWS_ENDPOINT_URL": bucket.base,
                "AWS_ACCESS_KEY_ID": KEY_ID,
                "AWS_SECRET_ACCESS_KEY": PASSWORD,
                "AWS_DEFAULT_REGION": "nowhere-1",
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_MAX_ATTEMPTS": "1",
            }.items():
                monkeypatch.setenv(name, value)
            return make_bucket_case(bucket)

        yield make


@pytest.fixture
def delivering(request: pytest.FixtureRequest, published: Path, tmp_path: Path, open_case: Any) -> Delivering:
    """A published site with a target of that kind."""
    tiny, case = copy_site(published, tmp_path / "site"), open_case(request.param)
    name_target(tiny, case.text)
    return Delivering(tiny, case)


KINDS = ["folder", pytest.param("bucket", marks=pytest.mark.slow)]  # a store takes a second to open
each = pytest.mark.parametrize("delivering", KINDS, indirect=True)
of_a_bucket = pytest.mark.parametrize("delivering", ["bucket"], indirect=True)


@each
def test_a_target_gets_the_package_once_and_just_as_it_is(delivering: Delivering, tmp_path: Path) -> None:
    """Byte for byte, so that whoever fetches it can verify it; where it is stands in the registry. Once is enough."""
    [task] = list_outstanding(delivering.site)
    assert task.description.startswith(f"{NAME}: not delivered to open (")
    [told] = delivering.finish()
    delivering.check_whole()
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    for name, content in delivering.case.contents().items():
        (fetched / name).write_bytes(content)
    assert [finding.words for finding in verify_path(fetched) if finding.level == "FAIL"] == []
    event = delivering.last()
    assert told == f"{NAME}: delivered to open: {event['where']}"
    assert event["package_hash"] == delivering.tiny.status().package_hash
    assert delivering.finish() == list_outstanding(delivering.site) == []
    delivering.check_whole()
    assert [finding.words for finding in verify(delivering.tiny.home) if finding.level == "FAIL"] == []


BOUNDARIES = ["delivering is noted", f"{SUMS} is sent", f"{SIGNATURE} is sent", "everything is there"]
BOUNDARIES += ["delivered is noted"]


@each
def test_killed_at_every_boundary_it_is_finished_once(delivering: Delivering) -> None:
    """Each after the other on one site: what was there when it was killed is not sent again, nothing is made twice, and before
    the end nobody takes it for whole."""
    passed: list[str] = []

    def die(boundary: str) -> None:
        if boundary not in passed:
            passed.append(boundary)
            there = delivering.case.contents()
            assert SIGNATURE not in there or there == delivering.package
            raise Killed

    while True:
        try:
            deliver(delivering.site, RELEASE, probe=Probe(reached=die))
        except Killed:
            continue
        break
    assert set(BOUNDARIES) <= set(passed)
    assert len(passed) == len(delivering.package) + 3, "each file is sent once"
    delivering.check_whole()


@pytest.mark.parametrize("status", [403, CUT])
@of_a_bucket
def test_a_refusal_is_a_sentence_without_a_secret(
    delivering: Delivering, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """No credential: not in messages, events or status. What is public stays so."""
    archive = delivering.case.archive
    assert archive is not None
    archive.refuse = {r"PUT .*": [status] * 20}
    with pytest.raises(NotDelivered) as refused:
        deliver(delivering.site, RELEASE)
    assert "the object store cannot be read or written" in refused.value.in_full
    assert f"`release-pipeline deliver {NAME}` finishes what is left." in refused.value.remedy
    assert delivering.tiny.status().state == "published"
    assert [finding.words for finding in verify(delivering.tiny.home) if finding.level == "FAIL"] == []
    assert main(["status", "--home", str(delivering.tiny.home)]) == 0
    printed = capsys.readouterr()
    assert f"outstanding {NAME}: not delivered to open (" in printed.out
    events = write_events(delivering.tiny.events())
    texts = {"error": refused.value.in_full, "cause": repr(refused.value.__context__), "events": events}
    blobs = {name: text.encode() for name, text in {**texts, "out": printed.out, "err": printed.err}.items()}
    assert not find_canaries(blobs, [KEY_ID, PASSWORD])
    archive.refuse = {}
    delivering.finish()
    delivering.check_whole()


# what became of it


@each
def test_a_retraction_takes_the_data_away(delivering: Delivering, keys: Keys) -> None:
    """What was done stands in the registry."""
    deliver(delivering.site, RELEASE)
    retract(delivering.site, RELEASE, key=keys["olga"], why="wrong")
    [task] = list_outstanding(delivering.site)
    assert task.description.endswith("is not told yet that it was retracted")
    delivering.finish()
    assert delivering.kinds() == [DELIVERING, DELIVERED, RECALLED]
    event = delivering.last()
    assert delivering.case.contents() == delivering.package
    assert {"RETRACTED.json", "RETRACTED.md"} < set(delivering.package)
    assert (event["state"], event["removed"]) == ("retracted", ["data.csv", "data.parquet"])
    assert delivering.finish() == list_outstanding(delivering.site) == []
    assert [finding.words for finding in verify(delivering.tiny.home) if finding.level == "FAIL"] == []
