"""The page: every claim in one line with what became of it, then a chapter for each paper with pictures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from release_pipeline.experiments.reporting.claims import DEFINITIONS, LEAST_RUNS, Chapter, Finding, Loss, show, table

TOP = """\
# The papers, reproduced

Made by {made}; nobody wrote on it by hand. A claim **holds** if it held in every run of every
setting. It **holds by the median** if the median of the runs of every setting did, and **holds in part** if that of some did;
then the page says where not, and why. Each setting with noise has at least {runs} runs, a quick run fewer. Formulas, and clusters
without noise, are computed once. Ranges are over all runs.

Epsilon of individual differential privacy (iDP) is not epsilon of differential privacy (DP), whatever the number. Domains and
grids come from these public tables, as in the papers. A release declares them beforehand: no experiment here is DP or iDP except
for a reader who knew domain and grid. Papers are quoted as this project knows them."""

LOSSES = """\
A claim of scope `centroid` covers each published centroid. A reader has all of them, and one changed record changes many at once.
The columns of epsilon show what these data lose in the worst case where that epsilon is advertised. Scopes `centroid` and
`column`: the exact joint loss of each column's list, added up over the columns, an upper bound on all columns together. Scope
`table`: the accountant's bound on all that a reader sees. A DP claim's epsilon is for the worst data, so that these lose less.
What `laplace` and `dp-um` claim of one centroid holds for the list. For real data these figures are confidential."""

BOTTOM = """\
## Run it yourself

```sh example
pip install 'release-pipeline[reproduce]'        # in a checkout: make test has set it up, as .venv/bin/release-pipeline
release-pipeline reproduce all --quick           # fewer settings and runs, about a minute on two cores
release-pipeline reproduce all -o reproduction   # everything, about six minutes; stopped, the same command goes on
```

A quick run has other noise than this page. It compares what it measures with these figures, and fails if they differ by more than
chance allows. A full run gives the figures of this page, except run times and the last digits of some scales. Reference data are
not shipped: the command says which files are missing and where they are published, and checks their content. The folder has every
run of every setting (`EXPERIMENT/KIND.csv` and `.parquet`), what their columns are (`EXPERIMENT/README.md`), each picture as SVG
and PNG, and versions, hashes, seed and times (`manifest.json`)."""


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
    if chapter.omitted:
        parts += [f"### Left out of {name}", "\n".join(f"- {reason}" for reason in chapter.omitted)]
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
    tables = list(dict.fromkeys(loss.table for loss in losses))
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for loss in losses:
        definition = DEFINITIONS[loss.definition]
        row = (loss.table, loss.method, definition, loss.scope, str(loss.k) if loss.k > 1 else "")
        rows.setdefault(row, {})[loss.epsilon] = loss.exact
    lines: list[list[str]] = []
    for (*words, k), found in sorted(rows.items(), key=lambda row: (tables.index(row[0][0]), row[0][1:4], int(row[0][4] or 0))):
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
