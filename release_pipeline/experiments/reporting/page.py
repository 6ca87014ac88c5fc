"""The page: every claim in one line with what became of it, then a chapter for each paper with pictures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from release_pipeline.experiments.reporting.claims import DEFINITIONS, LEAST_RUNS, Chapter, Finding, Loss, show, table

TOP = """\
# The papers, reproduced

Made by {made}; written by hand is nothing below. A claim **holds** if it held in every run of every
setting that it speaks of, **holds by the median** if the median of the runs of every setting did, and **holds in part** if that
of some did; then it says where not, and why. Each setting with noise has at least {runs} runs with noise of their own, a quick
run fewer; formulas, and clusters without noise, are computed once. Ranges are over all runs.

Epsilon is of the definition that stands beside it: epsilon of individual differential privacy (iDP) is not epsilon of
differential privacy (DP), whatever the number. Domains and grids are taken from these public tables, as the papers did: a release
declares them beforehand, and no experiment here is DP or iDP but for somebody to whom domain and grid were known. What papers
claim is said as this project knows it."""

LOSSES = """\
A claim of scope `centroid` speaks of each published centroid on its own. Who reads the column has all of them, and one changed
record changes many at once. In the columns of epsilon: what these data lose in the worst case where that epsilon is advertised.
Scope `centroid` and `column`: the exact joint loss of each column's list, by the accountant, added up over the columns; that is
what composition charges, and an upper bound on all columns together, whose worst neighbours are different people. Scope `table`:
the accountant's bound on all that a reader sees. All of it is confidential for real data; these are public. A DP claim's epsilon
is for the worst data, so that these lose less; what `laplace` and `dp-um` claim of one centroid holds for the list."""

BOTTOM = """\
## Run it yourself

```sh example
pip install 'release-pipeline[reproduce]'        # in a checkout: make test has set it up, as .venv/bin/release-pipeline
release-pipeline reproduce all --quick           # fewer settings and runs, about a minute on two cores
release-pipeline reproduce all -o reproduction   # everything, about six minutes; stopped, the same command goes on
```

A quick run has other noise than this page, and compares what it measures with these figures, by what chance allows; the
command fails if they differ. A full run has the noise of this page, and gives the same figures, but for run times, and for the
last digits of scales that come from powers of real numbers. Reference data are not shipped: the command says which files are
missing and where they are published, and checks shape and content. Every run of every setting is in `EXPERIMENT/KIND.csv` and
`.parquet` of the folder, with what the columns are in `EXPERIMENT/README.md`; each picture is there as SVG and PNG, and
`manifest.json` has versions, hashes, seed and times."""


def make_page(
    chapters: Mapping[str, Chapter],
    *,
    made: str,
    quick: bool = False,
    compared: int = 0,
    departures: Sequence[object] = (),
    pictures: str = "",
) -> str:
    """The page, with pictures in folders by experiment under `pictures`."""
    parts = [TOP.format(runs=LEAST_RUNS, made=made)]
    if quick:
        parts.append(
            "**A quick run**: few settings with few runs each. Its verdicts are of these alone: a full run may judge otherwise."
        )
    if compared:
        agree = compared - len(departures)
        parts.append(f"Compared with the committed figures: {agree:,} of {compared:,} agree within what chance allows.")
        parts += ["\n".join(f"- {departure}" for departure in departures)] if departures else []
    rows: list[list[str]] = []
    for name, chapter in chapters.items():
        link = f"[{name}](#{_anchor(chapter.title)})"
        rows += [[link, finding.claim, finding.verdict, finding.share] for finding in chapter.findings]
    parts += ["## All claims", table(["experiment", "claim", "verdict", "settings, by the median"], rows)]
    for name, chapter in chapters.items():
        parts += _report(name, chapter, pictures)
    losses = [loss for chapter in chapters.values() for loss in chapter.losses]
    return "\n\n".join([*parts, *_report_losses(losses), BOTTOM]) + "\n"


def _report(name: str, chapter: Chapter, pictures: str) -> list[str]:
    parts = [f"## {chapter.title}", chapter.words]
    parts += [
        f"![{picture.caption}]({pictures}{name}/{picture.name}.svg)\n\n*{picture.caption}.*" for picture in chapter.pictures
    ]
    parts += [f"### Claims of {name}", "\n".join(_report_finding(finding) for finding in chapter.findings)]
    for heading, words in chapter.tables:
        parts += [f"### {heading}", words]
    return parts


def _report_finding(finding: Finding) -> str:
    why = f" Why: {finding.why}" if finding.why else ""
    return f"- **{finding.claim}** ({finding.source}) *{finding.verdict}*. {finding.measured.rstrip('.')}.{why}"


def _report_losses(losses: Sequence[Loss]) -> list[str]:
    if not losses:
        return []
    epsilons = sorted({loss.epsilon for loss in losses}, key=float)
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for loss in losses:
        definition = DEFINITIONS[loss.definition]
        row = (loss.table, loss.method, definition, loss.scope, str(loss.k) if loss.k > 1 else "")
        rows.setdefault(row, {})[loss.epsilon] = loss.exact
    lines: list[list[str]] = []
    for (*words, k), found in rows.items():
        cells = [show(found[epsilon]) if epsilon in found else "" for epsilon in epsilons]
        if lines and [*lines[-1][:4], *lines[-1][5:]] == [*words, *cells]:  # the same for one more k
            lines[-1][4] = f"{lines[-1][4].partition(' to ')[0]} to {k}"
        else:
            lines.append([*words, k, *cells])
    head = ["table", "method", "definition", "scope of the claim", "k", *(f"epsilon {epsilon}" for epsilon in epsilons)]
    return ["## Advertised epsilon against exact loss", LOSSES, table(head, lines)]


def _anchor(title: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
