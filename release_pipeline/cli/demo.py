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
    from collections.abc import Iterator

    from release_pipeline.flow.demo import Demo
    from release_pipeline.flow.site import Site


def add_commands(commands: Any) -> None:
    """Add these commands."""
    demo = commands.add_parser(
        "demo",
        help="the whole chain on the embedded data, wave by wave",
        description="Build a site from the RAND Health Insurance Experiment in a folder, and run every wave to a candidate. "
        "Without --table columns are masked, by two methods; with --table rows are synthetic, under one epsilon for everything.",
    )
    demo.add_argument(
        "--table", action="store_true", help="the second demo: synthetic rows by dp-table, one claim for everything, its own site"
    )
    demo.add_argument("--folder", type=Path, help="where the demo's site is (default: demo; with --table: demo-table)")
    demo.add_argument("--fresh", action="store_true", help="start over instead of serving what is there")
    demo.set_defaults(run=_demo, stopped=_describe_demo)


def _describe_demo(options: argparse.Namespace) -> str:
    folder = _choose_folder(options)
    if not folder.exists():
        return "nothing was made"
    return f"what was made is kept in {folder}: the same command, without --fresh, goes on from there"


def _choose_demo(options: argparse.Namespace) -> Demo:
    from release_pipeline.flow.demo import COLUMNS_DEMO, TABLE_DEMO

    return TABLE_DEMO if options.table else COLUMNS_DEMO


def _choose_folder(options: argparse.Namespace) -> Path:
    return options.folder or Path(_choose_demo(options).folder)


def _demo(options: argparse.Namespace) -> int:
    from release_pipeline.flow.demo import build_demo_site

    demo, folder = _choose_demo(options), _choose_folder(options)
    progress = Progress()
    site = build_demo_site(demo, folder, fresh=options.fresh)
    package, levels = _take_through(demo, site, progress)
    refusal = _ask_for_more(site, demo.policy)
    program = PROGRAM if shutil.which(PROGRAM) else sys.argv[0]
    if program.endswith("__main__.py"):
        program = f"{sys.executable} -m release_pipeline.cli"
    desk = "" if options.table else _DESK.format(program=program, folder=folder)
    progress("done")
    head, words, evidence = (_TABLE_HEAD, _TABLE_WORDS, _TABLE_EVIDENCE) if options.table else (_HEAD, _WORDS, _EVIDENCE)
    print(f"\n{head}\n")
    print_lines(_list_figures(site, is_synthetic=options.table))
    print(
        f"""
ledger   asked for a correction of the first wave, {demo.policy}/1/r2:
         {refusal}

package  {package}: {levels.count("ok")} things verified, {levels.count("FAIL")} failed

{words.format(**_fill_words(site, demo))}

Where to look next:
  {program} ui --home {folder}
      the chain, its checks, epsilon and k over the waves, in Dagster
{desk}  {program} status --home {folder}
      the releases and their states
  {program} ledger --home {folder}
      what the same people were exposed to, and what is left
  {program} check {folder}/policies/{demo.policy}.yaml
      what the policy claims
  {folder}/vault/candidates/{demo.policy}/2/r1/report.html
      the page that reviewers decide from{evidence}; beside it what they sign: data, evidence, hashes
  {package}/privacy-card.html
      what the public gets, on one page; check it with: {program} verify {package}"""
    )
    return int("FAIL" in levels)


def _take_through(demo: Demo, site: Site, progress: Progress) -> tuple[Path, list[str]]:
    """Every release to a candidate that is none yet, and the first one to a package; its folder, and what verifying it found."""
    from release_pipeline.dagster_app.launch import check_policies, run_publication, run_release
    from release_pipeline.flow.demo import review_demo_wave, trust_demo_people
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.publication.verification import verify
    from release_pipeline.flow.states import list_statuses
    from release_pipeline.flow.status.overview import list_releases

    progress("five people with keys; the officer approves policy and cap")
    keys = trust_demo_people(demo, site)
    for line in list_releases(site)[0]:
        if line.id is not None and line.state not in ("reserved", "drawn", "blocked"):
            progress(f"{line.release}: served as it is (--fresh starts over)")
            continue
        policy, partition, *_ = line.release.split("/")
        progress(f"{policy}/{partition}: {demo.steps}")
        run_release(site, policy, partition)
    check_policies(site)
    progress(f"{demo.policy}/1: two reviewers approve, the service publishes, a stranger verifies")
    first = find_release(site, f"{demo.policy}/1/r1")
    if list_statuses(site)[first].state in ("candidate", "approved"):
        review_demo_wave(site, first, keys)
    run_publication(site, demo.policy, "1")
    package = site.package(str(first))
    return package, [finding.level for finding in verify(package, [str(site.officer)])]


def _list_figures(site: Site, *, is_synthetic: bool) -> Iterator[str]:
    from release_pipeline.flow.status.candidates import describe_candidates, describe_synthetic

    return describe_synthetic(site) if is_synthetic else describe_candidates(site)


def _fill_words(site: Site, demo: Demo) -> dict[str, str]:
    """What the words under the figures say of the policy itself."""
    from release_pipeline.policy.words import describe_headline

    return {"headline": describe_headline(site.policy(demo.policy))}


_HEAD = (
    "RAND Health Insurance Experiment: yearly waves of the same people, under two policies; each is taken to a candidate, "
    "and the first is published."
)
_EVIDENCE = ""
_DESK = """\
  {program} desk --home {folder} --demo
      where stewards, reviewers, officers and auditors work: five people, to be played in a browser
"""
_WORDS = """\
epsilon  for one wave: 0.5 for each of four columns. The five waves together spend 10, all of their people's cap. rand-hie-dp has
         the same people as a population of their own, so that iDP (idp-cbls) and DP (dp-cdf) can be seen side by side: DP is the
         stronger promise. With your data people have one budget.
error    mean squared difference over the column's variance, against the values that the method saw, in their domain; 1 is no
         better than publishing the mean. (Internal with your data; these are public.)
k        records per cluster, not k-anonymity. k* (anonymity_k): the smallest group of equal site and sex in the candidate.
linked   how many rows someone finds who knows some released columns of everybody: the kept ones (site, sex, and in rand-hie-dp
         family size), one masked column too, two, or all. It is high where columns are nearly exact, and the higher the smaller
         the error: a column claim does not cover rank patterns, and the whole table is not bounded. The gate
         linkage: 10% would refuse these policies before anything is spent.
         demo --table builds a second site, whose one claim covers the whole table: no row there is anybody's."""
_TABLE_HEAD = (
    "RAND Health Insurance Experiment: three yearly waves of the same people as synthetic rows; each is taken to a candidate, "
    "and the first is published."
)
_TABLE_EVIDENCE = " (what was kept of two and three columns, groups and models, and the attacks)"
_TABLE_WORDS = """\
claim    {headline}.
         Categories are covered too; no other number has to be added to it. (Three waves spend nearly all of their people's cap:
         rhos add up.)
reader   gets synthetic rows, nobody's record, as many as there are records: data.csv and data.parquet. Beside them are the
         noisy counts that rows were made of, with the exact law of their noise: data.counts.csv and data.pairs.csv. The
         analyst's kit takes intervals from these.
linkage  rows are synthetic, so none has an original: 0%. In the other demo, whose claims are for the lists of single columns,
         someone who knows all released columns finds some 55 to 75% of the rows under idp-cbls, and over 90% under dp-cdf.
         What remains to be asked is whether rows tell more of the people that they were made of than of strangers. So a table is
         made without some people, who are the strangers. "a row just like": how many have a row that is just like them in their
         quasi-identifiers. "nearest row is right": how often the row nearest by these has the person's other values. Where people
         and strangers are alike but for chance, rows tell of the population and not of the person.
pairs    how far the tables of two columns, and of three, are from the original ones (0 to 1); in brackets the same of original
         records drawn anew, which is chance alone. How three columns go together was not counted, and follows from a model.
         (Internal with your data; these are public.)"""


def _ask_for_more(site: Site, policy: str) -> str:
    """Ask for the next revision of the demo's first wave, which its people have no epsilon left for; what came of it in words."""
    from release_pipeline.flow.opening import revise_release

    try:
        return f"{revise_release(site, policy, '1', why='a correction, to see what the ledger says')}: opened."
    except OverCap as refused:
        return str(refused)
