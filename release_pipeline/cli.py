"""`release-pipeline`: the command line. Exit code 0: fine; 1: refused or failed; 2: wrong usage."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from release_pipeline import __version__
from release_pipeline.cli_trust import add_commands
from release_pipeline.errors import OverCap, PolicyInvalid, ReleasePipelineError, WrongUsage

if TYPE_CHECKING:
    from release_pipeline.flow.site import Site

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

    demo = commands.add_parser(
        "demo",
        help="the whole chain on the embedded data, wave by wave",
        description="Build a site from the RAND Health Insurance Experiment in a folder, and run every wave to a candidate.",
    )
    demo.add_argument("--folder", type=Path, default=Path("demo"), help="where the demo's site is (default: demo)")
    demo.add_argument("--fresh", action="store_true", help="start over instead of serving what is there")
    demo.set_defaults(run=_demo)

    init = commands.add_parser("init", help="a policy skeleton from a header, for a person to fill")
    init.add_argument("name", metavar="NAME", help="the name of the policy")
    init.add_argument("--from", dest="file", type=Path, required=True, metavar="FILE", help="a .csv or .parquet file")
    init.add_argument("-o", "--output", type=Path, help="where to write it (default: standard output)")
    init.set_defaults(run=_init)

    check = commands.add_parser(
        "check",
        help="all errors of a policy at once, then its plan; touches no data",
        description="All errors of a policy at once, with their places; when there are none, what it will do: method, claim and "
        "wider scopes, epsilon and noise per column. Touches no data.",
    )
    check.add_argument("policy", type=Path, metavar="POLICY", help="the policy file")
    check.add_argument("--rows", type=_positive, help="plan for this many records (default: the policy's min_rows)")
    check.add_argument("--json", action="store_true", help="the plan or the errors as JSON")
    check.add_argument("--home", type=Path, help="the site whose ledger is shown (default: the one that the policy lies in)")
    check.set_defaults(run=_check)

    diff = commands.add_parser("diff", help="the change of a policy in plain words")
    diff.add_argument("old", type=Path, metavar="OLD", help="the policy as it was")
    diff.add_argument("new", type=Path, metavar="NEW", help="the policy as it is to be")
    diff.set_defaults(run=_diff)

    run = commands.add_parser("run", help="one release from its source to the candidate, through Dagster")
    run.add_argument("policy", metavar="POLICY", help="the name of a policy of the site")
    run.add_argument("--release", help="which release, where there are several: 2, or 2/r1 for a revision")
    run.add_argument("--revise", metavar="REASON", help="open the next revision first, which is charged anew")
    _add_home(run)
    run.set_defaults(run=_run)

    status = commands.add_parser("status", help="the releases of a site and their states")
    form = status.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--html", type=Path, metavar="FILE", help="as one .html page, with the budgets and their charts")
    status.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    _add_home(status)
    status.set_defaults(run=_status)

    ledger = commands.add_parser(
        "ledger",
        help="what people were exposed to: spent, reserved, planned, remaining",
        description="What was charged to each population for which release, what its policies plan, and what is left.",
    )
    ledger.add_argument("population", nargs="?", metavar="POPULATION", help="default: all that are declared")
    ledger.add_argument("--exposure", action="store_true", help="person by person too, in counts of people; confidential")
    ledger.add_argument("--json", action="store_true", help="as JSON")
    _add_home(ledger)
    ledger.set_defaults(run=_ledger)

    prune = commands.add_parser(
        "prune",
        help="empty the vault of finished releases that are older than their policy retains",
        description="Remove the intermediate tables of finished releases older than their policy's 'retain', and rewrite "
        "the files that held them. Candidates, charges and the exposure of people stay.",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    _add_home(prune)
    prune.set_defaults(run=_prune)

    add_commands(commands, _add_home)

    ui = commands.add_parser("ui", help="the Dagster UI of a site, from any directory, at 127.0.0.1 alone")
    ui.add_argument("--port", type=_port, default=3000, help="default: 3000")
    ui.add_argument("--read-only", action="store_true", help="for auditors: nothing can be started")
    _add_home(ui)
    ui.set_defaults(run=_ui)

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
    from release_pipeline.policy.load import check_name
    from release_pipeline.policy.plan import describe_plan, make_plan, plan_to_json

    try:
        policy = load_policy(options.policy)
        if options.policy.resolve().parent.name == "policies":
            check_name(policy, options.policy)
        plan = make_plan(policy, rows=options.rows)
    except PolicyInvalid as error:
        if not options.json:
            raise
        print(json.dumps({"valid": False, "errors": list(error.problems) or [str(error)]}, indent=2))
        return error.exit_code
    if options.json:
        print(json.dumps({"valid": True, **plan_to_json(plan)}, indent=2))
        return 0
    print("\n".join(describe_plan(plan)))
    home = options.home or options.policy.resolve().parent.parent
    if (home / "populations.yaml").is_file():
        from release_pipeline.flow.ledger import describe_room
        from release_pipeline.flow.site import find_site

        for line in describe_room(find_site(home), plan.policy, rows=plan.rows):
            print(f"{'ledger':<12}{line}")
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
    from release_pipeline.dagster_app.launch import check_policies, run_publication, run_release
    from release_pipeline.flow.demo import POLICY, build_demo_site, review_demo_wave, trust_demo_people
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.overview import describe_candidates, list_releases
    from release_pipeline.flow.states import list_standings
    from release_pipeline.flow.verification import verify

    progress = _Progress()
    site = build_demo_site(options.folder, fresh=options.fresh)
    progress("five people with keys; the officer approves policy and cap")
    keys = trust_demo_people(site)
    for line in list_releases(site)[0]:
        if line.state not in ("open", "reserved", "drawn", "blocked"):
            progress(f"{line.release}: served as it is (--fresh starts over)")
            continue
        _, partition, *_ = line.release.split("/")
        progress(f"{POLICY}/{partition}: ingest, validate, microaggregate, mask, suppress, audit, candidate")
        run_release(site, POLICY, partition)
    check_policies(site)
    progress(f"{POLICY}/1: two reviewers approve, the service publishes, a stranger verifies")
    first = find_release(site, f"{POLICY}/1/r1")
    if list_standings(site)[first].state in ("candidate", "approved"):
        review_demo_wave(site, first, keys)
    run_publication(site, POLICY, "1")
    package = site.package(str(first))
    levels = [finding.level for finding in verify(package, [str(site.officer)])]
    refusal = _ask_for_more(site, POLICY)
    program = PROGRAM if shutil.which(PROGRAM) else sys.argv[0]
    progress("done")
    print(
        "\nRAND Health Insurance Experiment: yearly waves of the same people, each taken to a candidate, the first published.\n"
    )
    print("\n".join(describe_candidates(site)))
    print(
        f"""
ledger   asked for a correction of the first wave, rand-hie/1/r2:
         {refusal}

package  {options.folder}/releases/{first}: {levels.count("ok")} things verified, {levels.count("FAIL")} failed

epsilon  for one wave: 0.5 for each of four columns. The five waves together spend 10, all of their people's cap.
error    mean squared difference over the column's variance; 1 is no better than publishing the mean. (Internal with your
         data; these are public.)
k        records per cluster, not k-anonymity. k* (anonymity_k): the smallest group of equal site and sex in the candidate.
linkage  how many sampled records lie nearest to their own original. It is high where columns are nearly exact: rank patterns
         are not covered by a column claim. The whole table is not bounded.

Where to look next:
  {program} ui --home {options.folder}
      the chain, its checks, epsilon and k over the waves, in Dagster
  {program} status --home {options.folder}
      the releases and their states
  {program} ledger --home {options.folder}
      what the same people were exposed to, and what is left
  {program} check {options.folder}/policies/{POLICY}.yaml
      what the policy claims
  {options.folder}/vault/candidates/{POLICY}/2/r1/
      what people sign: data, evidence, hashes
  {options.folder}/releases/{first}/privacy-card.html
      what the public gets, on one page; check it with: {program} verify {options.folder}/releases/{first}"""
    )
    return int("FAIL" in levels)


def _ask_for_more(site: Site, policy: str) -> str:
    """Ask for the next revision of the demo's first wave, which its people have no epsilon left for; what came of it in words."""
    from release_pipeline.flow.opening import revise_release

    try:
        return f"{revise_release(site, policy, '1', why='a correction, to see what the ledger says')}: opened."
    except OverCap as refused:
        return str(refused)


def _init(options: argparse.Namespace) -> int:
    from release_pipeline.flow.init import draft_policy

    if re.fullmatch(r"[a-z][a-z0-9-]{0,62}", options.name) is None:
        raise WrongUsage(
            "this is not a name for a policy.", where=options.name, remedy="Use lower-case letters, digits, hyphens."
        )
    text = draft_policy(options.name, options.file)
    if options.output is None:
        print(text, end="")
        return 0
    from release_pipeline.flow.files import check_output, write_text

    check_output(options.output, endings=(".yaml",), overwrite=False, hint=False)
    write_text(options.output, text)
    print(f"{options.output}: fill in what is empty, then run 'release-pipeline check {options.output}'")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from release_pipeline.policy import load_policy
    from release_pipeline.policy.diff import describe_diff

    lines = list(describe_diff(load_policy(options.old), load_policy(options.new)))
    print("\n".join(lines) if lines else "no change: both have the same hash")
    return 0


def _run(options: argparse.Namespace) -> int:
    from release_pipeline.flow.opening import open_release, revise_release
    from release_pipeline.flow.overview import list_releases
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    if options.revise is not None:
        release = revise_release(site, options.policy, options.release, why=options.revise)
    else:
        release = open_release(site, options.policy, options.release).id
    before = any(line.release == str(release) and line.state in ("drawn", "candidate") for line in list_releases(site)[0])
    progress = _Progress()
    progress(f"{release}: ingest, validate, microaggregate, mask, suppress, audit, candidate")
    from release_pipeline.dagster_app.launch import run_release

    run_release(site, release.policy, release.release, progress=progress)
    progress("served as it is: the noise of this release was drawn before, and nothing is charged" if before else "done")
    [line] = [line for line in list_releases(site)[0] if line.release == str(release)]
    print(f"{line.release}: {line.state}, {line.rows or 0:,} rows, {line.claim}")
    print(site.candidate(str(release)))
    return 0


def _status(options: argparse.Namespace) -> int:
    from release_pipeline.flow.overview import describe_status, list_releases
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    if options.overwrite and options.html is None:
        raise WrongUsage("--overwrite is about the file of --html, and none is named.", remedy="Add --html FILE.html.")
    if options.html is not None:
        from release_pipeline.flow.status_page import write_status

        matters = write_status(site, options.html, overwrite=options.overwrite)
        print(f"{options.html}: needs attention: {matters}")
    elif options.json:
        lines, broken = list_releases(site)
        print(json.dumps({"releases": [line.to_json() for line in lines], "broken": broken}, indent=2))
    else:
        print("\n".join(describe_status(site)))
    return 0


def _ledger(options: argparse.Namespace) -> int:
    from release_pipeline.flow.ledger import describe_exposure, describe_ledger, ledger_to_json, read_ledgers
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    ledgers = read_ledgers(site, options.population)
    if options.json:
        print(json.dumps([ledger_to_json(ledger) for ledger in ledgers], indent=2))
        return 0
    for ledger in ledgers:
        print("\n".join(describe_ledger(ledger)))
        if options.exposure:
            print("\n".join(describe_exposure(site, ledger)))
    return 0


def _prune(options: argparse.Namespace) -> int:
    from release_pipeline.flow.retention import prune
    from release_pipeline.flow.site import find_site

    done = prune(find_site(options.home), dry_run=options.dry_run)
    for pruned in done:
        verb = "would be emptied" if options.dry_run else "emptied, and the file written anew"
        print(f"{pruned.population}: {verb}: {', '.join(str(release) for release in pruned.releases)}")
    if not done:
        print("nothing is older than its policy retains it")
    return 0


def _ui(options: argparse.Namespace) -> int:
    from release_pipeline.dagster_app.launch import open_ui
    from release_pipeline.flow.site import find_site

    return open_ui(find_site(options.home), port=options.port, read_only=options.read_only)


class _Progress:
    """Steps of a long work on standard error, each with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, step: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f} s] {step}", file=sys.stderr, flush=True)


def _add_home(command: argparse.ArgumentParser) -> None:
    command.add_argument("--home", type=Path, help="the site (default: RELEASE_PIPELINE_HOME, or here if there is a policies/)")


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return int(text)


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
    for detail in error.details:
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
