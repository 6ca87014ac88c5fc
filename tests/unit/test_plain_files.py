"""What is opened, read and replaced in folders where other accounts may write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.plain_files import open_below, open_plain
from release_pipeline.store.files import PUBLIC, appearing, write_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that others may write, next to a file that they may not read."""
    (tmp_path / "secret").write_text("secret")
    shared = tmp_path / "shared"
    (shared / "lists").mkdir(parents=True)
    (shared / "lists" / "towns.csv").write_text("towns")
    for place in (shared, shared / "lists"):
        place.chmod(0o2775)
    return shared


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "link": (lambda path: path.symlink_to("../../secret"), "a link to another place"),
    "hard link": (lambda path: path.hardlink_to(path.parents[2] / "secret"), "a second name"),
    "pipe": (os.mkfifo, "no regular file"),
    "folder": (Path.mkdir, "this is a directory"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_file_of_the_folder_is_refused(folder: Path, way: str) -> None:
    """At once, and nothing of what it leads to is read."""
    make, words = WAYS[way]
    make(folder / "lists" / "odd.csv")
    with pytest.raises(WrongUsage, match=words):
        open_below(folder, "lists/odd.csv")


@pytest.mark.parametrize("name", ["../secret", "lists/../../secret", "/etc/passwd", "lists/..", "a\0b", "there/secret"])
def test_no_name_leads_out(folder: Path, name: str) -> None:
    """Neither by dots, nor from the root, nor through a linked folder."""
    (folder / "there").symlink_to(folder.parent)
    with pytest.raises(WrongUsage, match=r"leads out of the folder|a link leads to it"):
        open_below(folder, name)


@pytest.mark.parametrize("put_back", [False, True])
def test_a_second_name_that_is_removed_while_the_file_is_opened_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, put_back: bool
) -> None:
    """A name that is gone, or is another file's by then, says nothing of what was opened."""
    odd, really_open = folder / "lists" / "odd.csv", os.open
    odd.hardlink_to(folder.parent / "secret")

    def open_and_remove(path: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
        opened = really_open(path, flags, dir_fd=dir_fd)
        if path == odd.name:
            odd.unlink()
            if put_back:
                odd.write_text("towns")
        return opened

    monkeypatch.setattr(os, "open", open_and_remove)
    with pytest.raises(WrongUsage, match="a second name"):
        open_below(folder, "lists/odd.csv")


def test_a_pipe_and_an_endless_device_are_refused_at_once(tmp_path: Path) -> None:
    """Also where links are followed: nobody waits, and nothing fills the memory."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(WrongUsage, match="no regular file"):
            open_plain(tmp_path / name)


def test_writing_goes_through_what_was_opened(folder: Path) -> None:
    """Whatever is put in the place of the unfinished file: its target keeps content and mode, and the writer learns of it."""
    secret, file = folder.parent / "secret", folder / "a.yaml"
    secret.chmod(0o600)

    def write() -> None:
        with appearing(file) as opened:
            [partial] = folder.glob(".partial-*")
            partial.unlink()
            partial.symlink_to(secret)
            opened.write(b"policy")
            os.fchmod(opened.fileno(), PUBLIC)

    with pytest.raises(ReleasePipelineError, match="is not what was to be written"):
        write()
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o600)
    assert list(folder.glob(".partial-*")) == []


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(folder: Path) -> None:
    """What is written is a file then."""
    (folder / "a.yaml").symlink_to(folder.parent / "secret")
    write_text(folder / "a.yaml", "policy", mode=PUBLIC)
    assert not (folder / "a.yaml").is_symlink()
    assert (folder / "a.yaml").read_text() == "policy"
    assert (folder.parent / "secret").read_text() == "secret"


@pytest.mark.parametrize(("before", "after"), [(0o664, 0o664), (0o600, 0o600), (0o6777, 0o664)])
def test_a_file_that_is_written_again_keeps_its_rights(folder: Path, before: int, after: int) -> None:
    """But none by which it could be run, or written by everybody."""
    file = folder / "a.yaml"
    file.touch()
    file.chmod(before)
    write_text(file, "policy", mode=None)
    assert file.stat().st_mode & 0o7777 == after
