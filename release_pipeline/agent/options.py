"""The options of the agent, for this package alone and for the command line of the whole, which has them in every command: what
serves is imported when it is to serve."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from release_pipeline.agent.origins import PORT
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.verify import WrongUsage as Unreadable
from release_pipeline.verify import printable

if TYPE_CHECKING:
    from release_pipeline.sign import Signer

STOPPED = "the agent signs nothing more, and what it had fetched is deleted"
LISTENING = "listening at"  # begins the line that says that browsers are answered from now on
_ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")  # Ctrl-C, who is told to end, and a terminal that was closed
SHARED = (
    "caution: this system does not say whose a connection is: every account of this machine can make the agent sign. If others"
    " have one, end it and sign with files"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the agent."""
    parser.add_argument(
        "--desk",
        action="append",
        required=True,
        metavar="https://DESK",
        help="a desk whose tickets are answered, as your browser has it; again for each. http only for a desk on this machine",
    )
    parser.add_argument(
        "--key",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="your OpenSSH key: private, or .pub of one in ssh-agent or a FIDO token; again for each",
    )
    parser.add_argument(
        "--port", type=_read_port, default=PORT, metavar="N", help=f"listen on 127.0.0.1:N (default: {PORT}, where desks look)"
    )
    parser.add_argument(
        "--once", action="store_true", help="end after one ticket: when the desk says that it has what was signed, or you refused"
    )


def _read_port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1024 <= int(text[:6]) <= 65535):
        raise argparse.ArgumentTypeError("a port is a number from 1024 to 65535")
    return int(text)


def run_agent(options: argparse.Namespace) -> int:
    """Read the keys, listen until somebody ends it, and leave nothing of what was fetched on the disk; gives the exit code."""
    from release_pipeline.agent.desk import Desk
    from release_pipeline.agent.origins import read_origin
    from release_pipeline.agent.peers import can_tell
    from release_pipeline.agent.reviews import Reviews
    from release_pipeline.agent.server import Agent, say

    desks = [Desk(read_origin(text)) for text in options.desk]
    signers = [_read_key(file) for file in options.key]
    with (
        _ended_once(),
        Reviews(desks, signers) as reviews,
        Agent(reviews, port=options.port, once=options.once, tell=say) as agent,
    ):
        for file, signer in zip(options.key, signers, strict=True):
            say(f"key {file}: {signer.fingerprint}")
        say(f"{LISTENING} {agent.address} for {', '.join(reviews.desks)}; Ctrl-C ends it")
        if not can_tell():
            say(SHARED)
        agent.serve_forever(poll_interval=0.1)
    return 0


@contextlib.contextmanager
def _ended_once() -> Generator[None]:
    """Meanwhile every way to be ended is one KeyboardInterrupt, as of Ctrl-C; another that comes while what was fetched is being
    deleted does not keep it from that. What whoever began the agent had ignored, as nohup does, is ignored still."""
    before: dict[int, Any] = {}
    ends = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ends
        if ends:
            return
        earlier: Callable[[int, FrameType | None], Any] | Any = before[number]
        ends = True
        if callable(earlier):
            earlier(number, frame)
            ends = False  # whoever was asked does not end by this one
            return
        raise KeyboardInterrupt

    numbers = [int(getattr(signal, name)) for name in _ENDINGS if hasattr(signal, name)]
    before |= {number: had for number in numbers if (had := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, had in before.items():
            signal.signal(number, had)


def _read_key(file: Path) -> Signer:
    from release_pipeline.sign import read_signer

    try:
        return read_signer(file)
    except Unreadable as error:
        raise WrongUsage(f"{error.what}.", where=str(file)) from None


def main(arguments: list[str] | None = None) -> int:
    """Run the agent; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m release_pipeline.agent", description="Sign on this machine what a desk asks you to sign."
    )
    add_arguments(parser)
    try:
        return run_agent(parser.parse_args(arguments))
    except ReleasePipelineError as error:
        print(printable(str(error)), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print(f"stopped; {STOPPED}", file=sys.stderr, flush=True)
        return 130
