"""The command demo: a site of its own, from nothing to a published package."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import PROGRAM, Progress
from release_pipeline.cli.visible import print_lines
from release_pipeline.errors import OverCap

if TYPE_CHECKING:
    from release_pipeline.flow.site import Site


def add_commands(commands: Any) -> None:
    """Add these commands."""
    demo = commands.add_parser(
        "demo",
        help="the whole chain on the embedded data, wave by wave",
        description="Build a site from the RAND Health Insurance Experiment in a folder, and run every wave to a candidate.",
    )
    demo.add_argument("--folder", type=Path, default=Path("demo"), help="where the demo's site is (default: demo)")
    demo.add_argument("--fresh", action="store_true", help="start over instead of serving what is there")
    demo.set_defaults(run=_demo, stopped=_describe_demo)


def _describe_demo(options: argparse.Namespace) -> str:
    if not options.folder.exists():
        return "nothing was made"
    return f"what was made is kept in {options.folder}: the same command, without --fresh, goes on from there"


def _demo(options: argparse.Namespace) -> int:
    from release_pipeline.dagster_app.launch import check_policies, run_publication, run_release
    from release_pipeline.flow.demo import POLICY, build_demo_site, review_demo_wave, trust_demo_people
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.publication.verification import verify
    from release_pipeline.flow.states import list_statuses
    from release_pipeline.flow.status.candidates import describe_candidates
    from release_pipeline.flow.status.overview import list_releases

    progress = Progress()
    site = build_demo_site(options.folder, fresh=options.fresh)
    progress("five people with keys; the officer approves policy and cap")
    keys = trust_demo_people(site)
    for line in list_releases(site)[0]:
        if line.state not in ("open", "reserved", "drawn", "blocked"):
            progress(f"{line.release}: served as it is (--fresh starts over)")
            continue
        policy, partition, *_ = line.release.split("/")
        progress(f"{policy}/{partition}: ingest, validate, microaggregate, mask, suppress, audit, candidate")
        run_release(site, policy, partition)
    check_policies(site)
    progress(f"{POLICY}/1: two reviewers approve, the service publishes, a stranger verifies")
    first = find_release(site, f"{POLICY}/1/r1")
    if list_statuses(site)[first].state in ("candidate", "approved"):
        review_demo_wave(site, first, keys)
    run_publication(site, POLICY, "1")
    package = site.package(str(first))
    levels = [finding.level for finding in verify(package, [str(site.officer)])]
    refusal = _ask_for_more(site, POLICY)
    program = PROGRAM if shutil.which(PROGRAM) else sys.argv[0]
    if program.endswith("__main__.py"):
        program = f"{sys.executable} -m release_pipeline.cli"
    progress("done")
    print(
        "\nRAND Health Insurance Experiment: yearly waves of the same people, under two policies; each is taken to a candidate, "
        "and the first is published.\n"
    )
    print_lines(describe_candidates(site))
    print(
        f"""
ledger   asked for a correction of the first wave, rand-hie/1/r2:
         {refusal}

package  {options.folder}/releases/{first}: {levels.count("ok")} things verified, {levels.count("FAIL")} failed

epsilon  for one wave: 0.5 for each of four columns. The five waves together spend 10, all of their people's cap. rand-hie-dp has
         the same people as a population of their own, so that iDP (idp-cbls) and DP (dp-cdf) can be seen side by side: DP is the
         stronger promise. With your data people have one budget.
error    mean squared difference over the column's variance, against the values that the method saw, in their domain; 1 is no
         better than publishing the mean. (Internal with your data; these are public.)
k        records per cluster, not k-anonymity. k* (anonymity_k): the smallest group of equal site and sex in the candidate.
linkage  how many sampled records lie nearest to their own original. It is high where columns are nearly exact, and the higher
         the smaller the error: rank patterns are not covered by a column claim. The whole table is not bounded.

Where to look next:
  {program} ui --home {options.folder}
      the chain, its checks, epsilon and k over the waves, in Dagster
  {program} status --home {options.folder}
      the releases and their states
  {program} ledger --home {options.folder}
      what the same people were exposed to, and what is left
  {program} check {options.folder}/policies/{POLICY}.yaml
      what the policy claims
  {options.folder}/vault/candidates/{POLICY}/2/r1/report.html
      the page that reviewers decide from; beside it what they sign: data, evidence, hashes
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
