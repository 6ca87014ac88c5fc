"""The command for choosing before budget is spent: explore."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, InvalidOperation
from types import SimpleNamespace
from typing import Any

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.cli.commands import Progress, print_lines, table_drawer
from release_pipeline.apps.cli.options import check_input, print_document, read_name
from release_pipeline.errors import WrongUsage
from release_pipeline.explore.data import Asked
from release_pipeline.explore.explore import describe_exploration
from release_pipeline.explore.explore import explore as try_settings
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.plans.settings import Axes

_ASKED = ("like", "public", "shape", "release", "rows", "home", "refused")


class Listed(click.ParamType[list[Any]]):
    """A parameter type: values of one type, separated by commas."""

    name = "list"

    def __init__(self, each: click.ParamType[Any]) -> None:
        self._each = each

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Return the converted values; fails at the first wrong one."""
        return [self._each.convert(part.strip(), param, ctx) for part in str(value).split(",") if part.strip()]


class Positive(click.ParamType[Decimal]):
    """A parameter type: an exact number above 0."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Return the number; fails if it is none or not above 0."""
        with suppress(InvalidOperation):
            if (number := Decimal(value)).is_finite() and number > 0:
                return number
        raise click.BadParameter(f"'{value}' is no number above 0.", ctx, param)


_SIZES, _SWAPS = Listed(click.IntRange(1, 10**9)), Listed(click.IntRange(0, 10**9))


@cli.command("explore policies/people.yaml --like public.csv --public https://example.org", exclusive=("like", "shape"))
@click.argument("policy", type=cli.PATH, metavar="POLICY.yaml", help="The policy file.")
@cli.path("--like", "FILE", f"Try on a public file that is like the source: {cli.FILES}.")
@cli.flag("--shape", "Try on a table that is made up from the policy's `shape`.")
@cli.value("--public", "WHERE", "Where anybody finds the file of --like.", type=str.strip, default="")
@click.option("--release", help="Which release's records, where the data have several (default: the first).")
@cli.value("--rows", "N", "How many records a release will have (default: as there are).", type=cli.ROWS)
@cli.value("--methods", "A,B,...", "Methods (default: those usual for the policy).", type=Listed(click.STRING), default="")
@cli.value("--epsilons", "X,Y,...", "Of a release (default: 1/4 to 4 times the policy's).", type=Listed(Positive()), default="")
@cli.value("--k", "K,L,...", "Records per cluster (default: the policy's, 3, 10, 30, 100).", type=_SIZES, default="")
@cli.value(
    "--swap", "K,L,...", "People per block of swapped values, 0 for none (default: the policy's).", type=_SWAPS, default=""
)
@cli.flag("--refused", "Try settings that the ledger would refuse too.")
@cli.flag("--all", "List every setting, not only the best.")
@cli.policy_home
@cli.by
@cli.quiet
@cli.as_json("the results")
def explore(**given: Any) -> None:
    """It simulates releases that nobody gets, and shows the range of errors, means by group and
    correlations, how many people can be linked, and what budget would remain.

    Use a public file (--like FILE --public WHERE), or a table made up from what the policy assumes
    (--shape). The confidential data are never read for it. For each setting it prints the line of a
    policy file."""
    options = SimpleNamespace(**given)
    axes = Axes(methods=options.methods, epsilons=options.epsilons, sizes=options.k, swaps=options.swap)
    _check(options)
    asked = Asked(**{name: given[name] for name in _ASKED}, axes=axes, by=read_name(options.by))
    with Progress(quiet=options.quiet) as progress:
        document = try_settings(options.policy, asked, progress=progress)
    if options.json:
        print_document(document)
    else:
        print_lines(describe_exploration(to_json(document), every=options.all, draw=table_drawer()))


def _check(options: SimpleNamespace) -> None:
    """Refuse options that do not go together."""
    if options.like is None and not options.shape:
        raise WrongUsage("it is not said what settings are tried on.", where="explore", remedy="Use --like FILE or --shape.")
    if options.like is not None:
        check_input(options.like)
    if options.public and options.like is None:
        raise WrongUsage("only a file can be public.", where="--public", remedy="Name it with --like.")
    if options.like is not None and not options.public:
        what = "settings are tried on public files only, and it is not said where anybody finds this one."
        raise WrongUsage(what, where=str(options.like), remedy="Say it with --public WHERE, or use --shape.")
