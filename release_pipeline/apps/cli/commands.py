"""Every command of the command line, in groups, and the classes that all of them are made of."""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from inspect import cleandoc
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeAlias, cast

import click

from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar


PROGRAM = "release-pipeline"
Params: TypeAlias = Mapping[str, Any]
Stopped: TypeAlias = str | Callable[[Params], str] | None
SECTIONS = {  # command: its module, which is imported when the command is called, and what it does
    "Start": {
        "init": ("policies", "Draft a policy from the header of a file"),
        "demo": ("demo", "Build a demo site from public data, up to a package"),
        "explore": ("exploring", "Compare methods and settings before spending budget"),
    },
    "Policy": {
        "check": ("policies", "List all errors of a policy at once, or show its plan"),
        "diff": ("policies", "Describe the changes between two policies"),
        "mask": ("policies", "Apply a policy's method to a file, without a ledger"),
    },
    "Run": {
        "run": ("running", "Run a release from its source to a candidate"),
        "status": ("status", "List the releases of a site and their states"),
        "ledger": ("status", "Show each population's spent and remaining budget"),
        "hold": ("running", "Stop a series until it is resumed"),
        "resume": ("running", "Let a held series go on"),
        "ui": ("running", "Open the Dagster UI of a site behind a login"),
        "prune": ("running", "Empty the vault of releases past their retention"),
    },
    "Review": {
        "review": ("reviewing", "Export bundles to sign, import signed statements"),
        "sign": ("reviewing", "Inspect a bundle offline on your machine, and sign it"),
        "approve": ("reviewing", "Approve a candidate, a policy or populations.yaml"),
        "reject": ("reviewing", "Reject a candidate for good, with a reason"),
        "return": ("reviewing", "Return a candidate with reasons for a revision"),
        "remark": ("reviewing", "Sign a remark on a passage of a candidate or policy"),
        "desk": ("desk", "Serve web pages for everybody who works with a site"),
    },
    "Publish": {
        "publish": ("publishing", "Verify an approved candidate and write its package"),
        "deliver": ("publishing", "Send published packages to the site's targets"),
        "retract": ("publishing", "Withdraw a published release for good"),
        "supersede": ("publishing", "Refer readers of a release to a later revision"),
        "papers": ("publishing", "Write the papers that a privacy officer files"),
        "dossier": ("publishing", "Pack all evidence of a published series for an auditor"),
    },
    "Verify": {
        "verify": ("verifying", "Verify a package, a dossier or a site offline"),
        "audit-claims": ("verifying", "Attack the privacy claims of a policy"),
    },
    "Keep": {
        "trust": ("trusting", "Add or remove people whose signatures count"),
        "key": ("trusting", "Print the fingerprint of a public key"),
        "officer": ("trusting", "Replace the officer, revoke keys, repair wrong dates"),
        "backup": ("keeping", "Copy the whole site into one file"),
        "restore": ("keeping", "Restore a backup and enter what was spent after it"),
        "head": ("keeping", "Export the last event of the registry as a witness"),
        "alert": ("keeping", "Send alerts that are due"),
    },
}
MODULES = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}
SHORT = {name: text for section in SECTIONS.values() for name, (_, text) in section.items()}


@dataclass
class Running:
    """The running command, its parameters, and the state of the files that it may write before it began."""

    params: Params = field(default_factory=dict[str, Any])
    stopped: Stopped = None
    before: Mapping[Path, object] = field(default_factory=dict[Path, object])


class Command(click.Command):
    """A command with one example in its help, options that exclude each other, and a message for when it is stopped."""

    def __init__(self, *args: Any, example: str, stopped: Stopped = None, exclusive: Collection[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.example, self.stopped, self.exclusive = example, stopped, exclusive

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the options."""
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{PROGRAM} {self.example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command, and keep what a message needs if it is stopped."""
        given = [name for name in self.exclusive if ctx.params[name] not in (None, False, ())]
        if len(given) > 1:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"{options} exclude each other.", ctx)
        running = cast(Running, ctx.obj)
        running.params, running.stopped, running.before = ctx.params, self.stopped, list_outputs(ctx.params)
        return super().invoke(ctx)


class Actions(Command, click.Group):
    """A command with actions."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the actions in the order of their definition."""
        return list(self.commands)


class Program(click.Group):
    """All commands in their groups. Only the module of the command that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the groups."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or None if there is none; its help begins with its summary."""
        if cmd_name not in MODULES:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command = getattr(import_module(f"release_pipeline.apps.cli.{MODULES[cmd_name]}"), name)
        if not (command.help or "").startswith(SHORT[cmd_name]):
            command.help = f"{SHORT[cmd_name]}.\n\n{cleandoc(command.help or '')}"
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and then the commands of each group."""
        click.Command.format_options(self, ctx, formatter)
        width = max(map(len, MODULES))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:<{width}}", text) for name, (_, text) in commands.items()])


PATH = click.Path(path_type=Path)
ROWS = click.IntRange(1, 10**12)
PORT = click.IntRange(1, 65535)
FILES = ".csv, .parquet, .dta, .sav, .sas7bdat or .xpt"


def flag(name: str, what: str) -> Callable[[Any], Any]:
    """Return the decorator for an option without a value."""
    return click.option(name, is_flag=True, help=what)


def path(name: str, metavar: str, what: str, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator for an option that names a file."""
    return click.option(name, type=PATH, metavar=metavar, help=what, **more)


def value(name: str, metavar: str, what: str, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator for an option with a value."""
    return click.option(name, metavar=metavar, help=what, **more)


def _find_site(_context: click.Context, _option: click.Parameter, folder: Path | None) -> Any:
    from release_pipeline.store.site import find_site

    return find_site(folder)


_HOME = "The site (default: RELEASE_PIPELINE_HOME, or this folder)."
home = click.option("--home", "site", type=PATH, callback=_find_site, help=_HOME)
home_path = click.option("--home", type=PATH, help=_HOME)
policy_home = click.option("--home", type=PATH, help="The site (default: the site that holds the policy).")
target = click.argument("target", metavar="RELEASE", help="POLICY/RELEASE, or POLICY/RELEASE/rN.")
why = click.option("--why", required=True, metavar="REASON", help="The reason, which is signed.")
by = click.option("--by", metavar="NAME", help="Your name, for the record (default: the account).")
overwrite = flag("--overwrite", "Replace the output if it exists.")
quiet = flag("--quiet", "Show no progress.")
proxy = path("--trusted-proxy", "FILE", "Trust the reverse proxy that this file describes to name the user.")
uds = path("--uds", "PATH", "Listen on this Unix socket instead of a port.")
_HOST = "Accept this host name too, for example of a tunnel. Repeatable."
allow_host = click.option("--allow-host", "allow_hosts", multiple=True, metavar="NAME:PORT", help=_HOST)


def as_json(what: str) -> Callable[[Any], Any]:
    """Return the decorator for the option --json."""
    return flag("--json", f"Print {what} as JSON, errors too: see docs/json.md.")


def key(whose: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Return the decorator for the option --key, with which the command signs."""
    what = f"{whose}: an OpenSSH key, or the .pub file of one in ssh-agent or a FIDO token."
    return path("--key", "FILE", what, required=required)


def output(metavar: str, what: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Return the decorator for the option --output."""
    return click.option("-o", "--output", type=PATH, required=required, metavar=metavar, help=what)


def command(example: str, name: str | None = None, **more: Any) -> Callable[[Callable[..., int | None]], Command]:
    """Make a function a command, which returns its exit code, or None for 0."""
    return cast(Any, click.command(name, cls=Command, example=example, **more))


def actions(example: str, **more: Any) -> Callable[[Callable[..., Any]], Actions]:
    """Make a function a command with actions."""
    return cast(Any, click.command(cls=Actions, example=example, **more))


def refuse_options_before_action(context: click.Context) -> None:
    """Refuse options between a command and its action, which the action would not see."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise WrongUsage("this option must follow the action.", where=parameter.opts[-1], remedy="Move it to the end.")


# The one way to the terminal: it shows names and texts of a policy as they are, and draws tables
# and progress for people.


_SPACES = "Zs"
_SUSPECT = re.compile(r"[^\n\t -~]")
_NUMBER = re.compile(r"-?[\d,.]*%?")
_COUNTED = re.compile(r"(\d+) of (\d+)\b")
_STYLES = {
    **dict.fromkeys(("ok", "holds", "published", "approved", "spent"), "green"),
    **dict.fromkeys(("note", "late", "returned", "reserved", "superseded"), "yellow"),
    **dict.fromkeys(("FAIL", "BROKEN", "blocked", "damaged", "rejected", "retracted"), "bold red"),
}


def make_visible(text: str) -> str:
    """Return the text with codes in place of controls, escapes, direction overrides and other invisible letters. Line ends and
    tabs stay."""
    return _SUSPECT.sub(_show_letter, text)


def keep_line(text: str) -> str:
    """Return the text made visible in one line, so that no name in it can begin another line."""
    return make_visible(text).replace("\n", "\\n")


def _show_letter(match: re.Match[str]) -> str:
    letter = match[0]
    shown = letter.isprintable() or unicodedata.category(letter) == _SPACES
    return letter if shown else letter.encode("unicode_escape").decode()


class VisibleStream:
    """A stream that writes texts as `make_visible` does."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, made visible."""
        self.stream.write(make_visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line, made visible."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """Make texts visible on standard output and standard error while the block runs."""
    out, err = (cast(TextIO, VisibleStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def open_console(stream: TextIO) -> Console | None:
    """Return a console for a terminal, which lets colour codes pass, or None if the stream is no terminal. Rich respects
    NO_COLOR."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    return Console(file=getattr(stream, "stream", stream), markup=False, emoji=False, highlight=False)


class TableLine(str):
    """A line that represents a table; the first of its rows is the head."""

    rows: Sequence[Sequence[str]] = ()


def draw_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as one line, which a terminal shows as a table."""
    line = TableLine()
    line.rows = rows
    return [line]


def table_drawer() -> Callable[[Sequence[Sequence[str]]], list[str]] | None:
    """Return the function that draws rows as a table on a terminal, or None elsewhere, where a table is aligned text."""
    return draw_table if open_console(sys.stdout) is not None else None


def print_lines(lines: Iterable[str]) -> None:
    """Print each line, and draw the tables among them."""
    console = open_console(sys.stdout)
    for line in lines:
        if console is not None and isinstance(line, TableLine):
            console.print(_make_table(line.rows))
        else:
            print(keep_line(line))


def _make_table(rows: Sequence[Sequence[str]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table, (head, *body) = Table(box=SIMPLE_HEAD, pad_edge=False), rows
    for title, *cells in zip(head, *body, strict=True):
        is_number = all(map(_NUMBER.fullmatch, cells))
        table.add_column(Text(keep_line(title)), justify="right" if is_number else "left", overflow="fold")
    for row in body:
        table.add_row(*(Text(keep_line(cell), style=_STYLES.get(cell, "")) for cell in row))
    return table


class Progress:
    """Steps of long work on standard error, each with the seconds since the start; on a terminal with a bar while it lasts."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._start, self._quiet = time.monotonic(), quiet
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        console = None if self._quiet else open_console(sys.stderr)
        if console is not None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str) -> None:
        """Show the next step; "3 of 20" in it moves the bar."""
        line = keep_line(f"[{time.monotonic() - self._start:6.1f} s] {step}")
        if self._quiet:
            return
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
            return
        counted = _COUNTED.search(step)
        done, total = map(int, counted.groups()) if counted else (0, None)
        [task] = self._bar.tasks
        task.total = total  # `update` takes None for no change
        self._bar.update(task.id, description=keep_line(step), completed=done)
        if counted is None:
            self._bar.console.print(line)


# The message of a stopped command: what was done, and how to go on.


STOPPED = 130
AGAIN = "give the same command again: it finishes what is left, or says that it is done"
_UNKNOWN = "what was done could not be read: `release-pipeline status` says it"
_OUTPUTS = ("output", "evidence")


def list_outputs(params: Params) -> dict[Path, object]:
    """Return the state, before the command runs, of the files that it is to write."""
    return {file: _identify(file) for name in _OUTPUTS if isinstance(file := params.get(name), Path)}


def describe_stop(running: Running) -> str:
    """Return a message: what was done before the command was stopped, and how to go on. Stopping it once more does not wait for
    that."""
    try:
        if callable(running.stopped):
            return running.stopped(running.params)
        return running.stopped or _name_written(running.before)
    except (Exception, KeyboardInterrupt):  # the site is busy or broken, which is not what the person did now
        return _UNKNOWN


def describe_stopped_run(params: Params) -> str:
    """Return a message: how far the release of `run` came."""
    from release_pipeline.operate.run import describe_progress
    from release_pipeline.pipeline.opening import last_revision

    site = params["site"]
    release = last_revision(site, params["policy"], params["release"])
    progress = describe_progress(site, release)
    if params["revise"] is None:
        return progress
    if release == params.get("before", release):
        return f"no revision of it was opened. {progress}"
    return f"{progress}. It was opened as a revision: another --revise would open one more"


def describe_release(params: Params) -> str:
    """Return a message: the state of the release that people sign."""
    from release_pipeline.operate.run import describe_people
    from release_pipeline.pipeline.opening import find_release

    return describe_people(params["site"], find_release(params["site"], params["target"]))


def describe_approval(params: Params) -> str:
    """Return a message: the state of the approved subject, which is a release or a file."""
    return AGAIN if Path(params["target"]).suffix == ".yaml" else describe_release(params)


def _name_written(before: Mapping[Path, object]) -> str:
    written = [str(file) for file, known in before.items() if _identify(file) != known]
    return f"{' and '.join(written)} {'was' if len(written) == 1 else 'were'} written" if written else "nothing was written"


def _identify(file: Path) -> object:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
