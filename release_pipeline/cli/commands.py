"""Every command of the command line, in groups, and the classes that all of them are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import cleandoc
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeAlias, cast

import click

from release_pipeline.errors import WrongUsage

PROGRAM = "release-pipeline"
WHOLE = "\N{NON-BREAKING HYPHEN}"  # while help is broken into lines
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
        "alert": ("keeping", "Send alerts and lineage that are due"),
    },
}
MODULES = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}
SHORT = {name: text for section in SECTIONS.values() for name, (_, text) in section.items()}


@dataclass
class Running:
    """The command that is running, its parameters, and the files that it may write as they were before."""

    params: Params = field(default_factory=dict[str, Any])
    stopped: Stopped = None
    before: Mapping[Path, object] = field(default_factory=dict[Path, object])


class Formatter(click.HelpFormatter):
    """Help in which no line ends within a name: lines break at spaces, and never at a hyphen."""

    def write(self, string: str) -> None:
        """Write a part, with its hyphens as they were."""
        super().write(string.replace(WHOLE, "-"))

    def write_text(self, text: str) -> None:
        """Write a paragraph, broken into lines."""
        super().write_text(text.replace("-", WHOLE))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of names and what each means."""
        whole = [(name.replace("-", WHOLE), text.replace("-", WHOLE)) for name, text in rows]
        super().write_dl(whole, col_max, col_spacing)


class Context(click.Context):
    """What a command is called with; its help is written by `Formatter`."""

    formatter_class = Formatter


class Command(click.Command):
    """A command with one example in its help, options that exclude each other, and words for when it is stopped."""

    context_class = Context

    def __init__(self, *args: Any, example: str, stopped: Stopped = None, exclusive: Collection[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.example, self.stopped, self.exclusive = example, stopped, exclusive

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the options."""
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{PROGRAM} {self.example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command, once it is known what to say when somebody stops it."""
        from release_pipeline.cli.stopping import list_outputs

        given = [name for name in self.exclusive if ctx.params[name] not in (None, False, ())]
        if len(given) > 1:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"{options} exclude each other.", ctx)
        running = cast(Running, ctx.obj)
        running.params, running.stopped, running.before = ctx.params, self.stopped, list_outputs(ctx.params)
        return super().invoke(ctx)


class Actions(Command, click.Group):
    """A command with actions below it."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The actions in the order of their definition."""
        return list(self.commands)


class Program(click.Group):
    """All commands in their groups. Only the module of the command that is called is imported."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the groups."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None; its help begins with what it does."""
        if cmd_name not in MODULES:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command = getattr(import_module(f"release_pipeline.cli.{MODULES[cmd_name]}"), name)
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
FILES = ".csv (.gz, .zip), .parquet, .dta, .sav, .sas7bdat or .xpt"


def flag(name: str, what: str) -> Callable[[Any], Any]:
    """An option that is given or not."""
    return click.option(name, is_flag=True, help=what)


def path(name: str, metavar: str, what: str, **more: Any) -> Callable[[Any], Any]:
    """An option that names a file."""
    return click.option(name, type=PATH, metavar=metavar, help=what, **more)


def value(name: str, metavar: str, what: str, **more: Any) -> Callable[[Any], Any]:
    """An option with a value."""
    return click.option(name, metavar=metavar, help=what, **more)


def _find_site(_context: click.Context, _option: click.Parameter, folder: Path | None) -> Any:
    from release_pipeline.flow.site import find_site

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
    """The option --json."""
    return flag("--json", f"Print {what} as JSON, errors too: see docs/json.md.")


def key(whose: str, *, required: bool = True) -> Callable[[Any], Any]:
    """The option --key, with which the command signs."""
    what = f"{whose}: an OpenSSH key, or the .pub file of one in ssh-agent or a FIDO token."
    return path("--key", "FILE", what, required=required)


def output(metavar: str, what: str, *, required: bool = True) -> Callable[[Any], Any]:
    """The option --output."""
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
