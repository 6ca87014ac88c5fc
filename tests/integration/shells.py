"""A shell that executes the blocks of a document, in which `release-pipeline` is this checkout: each command is forked by one
process that has everything loaded (it is forked as `processes` says), so that a page of sixty commands does not load Python sixty
times.

A command runs as the account that called it, with its folder, its environment and its pipes: the kernel says which these are
(/proc), not the caller. `sudo -u NAME` becomes one of the accounts of `PEOPLE`, with real uids; only root can.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.processes import PROCESSES

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REFUSED = re.compile(r"^! (.*)$", re.MULTILINE)
# news, uucp, backup, list and irc of Debian, which do nothing there: ssh-keygen works only for accounts that exist.
PEOPLE = {"ana": 9, "olga": 10, "ben": 34, "cleo": 38, "vic": 39}
# The caller's own streams are kept under numbers that no redirection of this shell touches: it moves 0 and 1 while it waits.
CLIENT = """#!/bin/sh
exec 7<&0 8>&1 9>&2
mkfifo "{folder}/$$"
echo $$ > "{folder}/calls"
read code < "{folder}/$$"
rm "{folder}/$$"
exit $code
"""
SUDO = """#!/bin/sh
case "$1 $2" in {cases} *) echo "no such account: $2" >&2; exit 1;; esac
shift 2
exec setpriv --reuid=$uid --regid=$uid --clear-groups "$@"
"""


def read_blocks(name: str) -> list[str]:
    """The blocks of a document that a test executes."""
    return BLOCK.findall((ROOT / "docs" / name).read_text(encoding="utf-8"))


@contextmanager
def open_shell(programs: Path) -> Generator[dict[str, str]]:
    """The environment of a shell in which the commands are there; no site is named in it."""
    programs.mkdir()
    programs.chmod(0o755)
    cases = " ".join(f'"-u {name}") uid={uid};;' for name, uid in PEOPLE.items())
    calls = programs / "run"
    calls.mkdir()
    calls.chmod(0o1777)
    os.mkfifo(calls / "calls")
    (calls / "calls").chmod(0o666)
    for name, text in (("release-pipeline", CLIENT.format(folder=calls)), ("sudo", SUDO.format(cases=cases))):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment.pop("RELEASE_PIPELINE_HOME", None)
    server = PROCESSES.Process(target=_serve, args=(calls,))
    server.start()
    try:
        yield environment
    finally:
        server.terminate()
        server.join()


def execute(blocks: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """One shell, which stops at the first command that does not end as the page says."""
    # a shell does not stop at a command behind "!" that should fail and does not
    text = REFUSED.sub(r'if \1; then echo "NOT REFUSED: \1" >&2; exit 9; fi', blocks)
    shell = ["bash", "-e", "-u", "-o", "pipefail"]
    return subprocess.run(shell, input=text, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _serve(folder: Path) -> None:
    with os.fdopen(os.open(folder / "calls", os.O_RDWR)) as calls:
        while line := calls.readline():
            pid = int(line)
            if os.fork() == 0:
                if os.fork() == 0:
                    _answer(pid, folder / str(pid))
                os._exit(0)
            os.wait()


def _become(uid: int) -> None:
    """Another account, for good. Python's own library may lie where that may not look; it is reached by the open folder."""
    library = Path(os.__file__).parent
    there = f"/proc/self/fd/{os.open(library, os.O_PATH | os.O_DIRECTORY)}"
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: /proc/self stays our own
    sys.path[:] = [path.replace(str(library), there) for path in sys.path]
    for module in list(sys.modules.values()):
        if isinstance(paths := getattr(module, "__path__", None), list):
            module.__path__ = [str(path).replace(str(library), there) for path in paths]
    sys.path_importer_cache.clear()


def _answer(pid: int, reply: Path) -> None:
    """Do what the process was called for, as who called it."""
    code, caller = 70, Path(f"/proc/{pid}")
    answer = os.open(reply, os.O_WRONLY)
    try:
        uid = caller.stat().st_uid
        arguments = caller.joinpath("cmdline").read_bytes().decode().split("\0")[2:-1]  # after the shell and the program
        variables = caller.joinpath("environ").read_bytes().decode().split("\0")[:-1]
        for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_APPEND), (2, os.O_WRONLY | os.O_APPEND)):
            os.dup2(os.open(caller / "fd" / str(number + 7), mode), number)
        os.chdir(caller / "cwd")
        os.environ.clear()
        os.environ.update({name: value for name, _, value in (variable.partition("=") for variable in variables)})
        if uid != os.getuid():
            _become(uid)
        os.umask(0o022)
        from release_pipeline.apps.cli import main

        sys.argv[0] = "release-pipeline"
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(answer, f"{code}\n".encode())
        os._exit(0)
