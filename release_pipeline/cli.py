"""`release-pipeline`: the command line. Exit code 0: fine; 1: refused or failed; 2: wrong usage."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from release_pipeline import __version__
from release_pipeline.errors import DataRefused, PolicyInvalid, ReleasePipelineError, WrongUsage

PROGRAM = "release-pipeline"
MOST_ROWS = 10**12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every outcome is an exit code and words, never a traceback."""
    signal.signal(signal.SIGTERM, _stop)
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return options.run(options)
    except ReleasePipelineError as error:
        _print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped; nothing was written.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{PROGRAM}: the operating system refused: {error.strerror or type(error).__name__}.", file=sys.stderr)
        return 1
    except Exception as error:
        print(
            f"{PROGRAM}: internal error: {type(error).__name__} at {_own_frame(error)}. Please report this line.",
            file=sys.stderr,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Governed releases of data about people: a policy file in, a protected table out.",
        epilog="Exit codes: 0 fine, 1 refused or failed, 2 wrong usage. Start with 'make demo', then read README.md.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser("demo", help="protect one wave of the embedded data and show what was done")
    demo.add_argument("--folder", type=Path, default=Path("demo"), help="where to write (default: demo)")
    demo.add_argument("--release", default="1", help="which wave, 1 to 5 (default: 1)")
    demo.set_defaults(run=_demo)

    check = commands.add_parser(
        "check",
        help="all errors of a policy at once, then its plan; touches no data",
        description="All errors of a policy at once, with their places; when there are none, what it will do: method, claim and "
        "wider scopes, epsilon and noise per column. Touches no data.",
    )
    check.add_argument("policy", type=Path, metavar="POLICY", help="the policy file")
    check.add_argument("--rows", type=_positive, help="plan for this many records (default: the policy's min_rows)")
    check.add_argument("--json", action="store_true", help="the plan or the errors as JSON")
    check.set_defaults(run=_check)

    mask = commands.add_parser(
        "mask",
        help="the method of a policy on a CSV or Parquet file; not a release",
        description="Apply the method of a policy to a file, for scripts and benchmarks. There is no ledger here: what comes "
        "out is not a release, and --unaccounted says that you know.",
    )
    mask.add_argument("input", type=Path, metavar="INPUT", help="a .csv or .parquet file")
    mask.add_argument("--policy", type=Path, required=True, help="the policy file")
    mask.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="a .csv or .parquet file to write")
    mask.add_argument("--release", help="which release of the policy, where it has several")
    mask.add_argument("--unaccounted", action="store_true", help="required: no ledger adds up what this exposes")
    mask.add_argument("--evidence", type=Path, metavar="FILE", help="internal figures as .json; confidential")
    mask.add_argument("--overwrite", action="store_true", help="replace OUT and FILE if they exist")
    mask.add_argument("--quiet", action="store_true", help="no progress")
    mask.set_defaults(run=_mask)
    return parser


def _check(options: argparse.Namespace) -> int:
    from release_pipeline.policy import load_policy
    from release_pipeline.policy.plan import describe_plan, make_plan, plan_to_json

    try:
        plan = make_plan(load_policy(options.policy), rows=options.rows)
    except PolicyInvalid as error:
        if not options.json:
            raise
        print(json.dumps({"valid": False, "errors": list(error.problems) or [str(error)]}, indent=2))
        return error.exit_code
    if options.json:
        print(json.dumps({"valid": True, **plan_to_json(plan)}, indent=2))
    else:
        print("\n".join(describe_plan(plan)))
    return 0


def _mask(options: argparse.Namespace) -> int:
    if not options.unaccounted:
        raise WrongUsage(
            "mask keeps no account of what people were exposed to.",
            remedy="Add --unaccounted if this is not a release.",
        )
    from release_pipeline.flow.mask import NOT_APPLIED, mask_file
    from release_pipeline.policy import load_policy

    masked = mask_file(
        load_policy(options.policy),
        options.input,
        options.output,
        release=options.release,
        evidence=options.evidence,
        overwrite=options.overwrite,
        progress=(lambda _: None) if options.quiet else _Progress(),
    )
    for warning in masked.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{options.output}: {masked.records:,} records, {masked.claim}")
    print(f"not a release: no {', '.join(NOT_APPLIED)}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from release_pipeline.flow.demo import run_demo

    for line in run_demo(options.folder, release=options.release, progress=_Progress()):
        print(line)
    return 0


class _Progress:
    """Steps of a long work on standard error, each with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, step: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f} s] {step}", file=sys.stderr, flush=True)


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_ROWS:
        what = f"'{text}' is not a whole number above 0" if number < 1 else f"there are at most {MOST_ROWS:,} rows"
        raise argparse.ArgumentTypeError(what)
    return number


def _print_error(error: ReleasePipelineError) -> None:
    print(f"{PROGRAM}: {error}", file=sys.stderr)
    details = error.problems if isinstance(error, PolicyInvalid) else error.findings if isinstance(error, DataRefused) else ()
    for detail in details:
        print(f"  {detail}", file=sys.stderr)


def _own_frame(error: BaseException) -> str:
    place, trace = "?", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "release_pipeline" in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
