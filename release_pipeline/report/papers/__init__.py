"""The papers that an officer must file, one a file: pure functions of a view, whose every sentence is bound to the field that it
was read from or to words that the policy states. As HTML and Markdown; the entry of a registry as the YAML that it takes, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from release_pipeline.report.escaping import load_templates
from release_pipeline.report.papers.deployment import FILE as ENTRY
from release_pipeline.report.papers.deployment import has_entry, write_deployment, write_entry
from release_pipeline.report.papers.dpia import write_dpia
from release_pipeline.report.papers.iso27559 import write_iso27559
from release_pipeline.report.papers.nist import write_nist
from release_pipeline.report.papers.output_check import write_output_check
from release_pipeline.report.papers.statements import Paper
from release_pipeline.report.papers.view import PaperView, view_public
from release_pipeline.report.view import PublicView

Write: TypeAlias = Callable[[PaperView], Paper]
PAPERS_OF_A_SITE: tuple[Write, ...] = (write_nist, write_dpia, write_iso27559, write_deployment, write_output_check)
PUBLIC_PAPERS = ("nist-sp-800-226.html", "nist-sp-800-226.md", ENTRY)


def render_papers(view: PaperView) -> dict[str, str]:
    """Every paper of a release for the people of its site, by the name of its file."""
    files = _render([write(view) for write in PAPERS_OF_A_SITE])
    return files | ({ENTRY: write_entry(view)} if has_entry(view) else {})


def render_public_papers(view: PublicView) -> Mapping[str, str]:
    """What the package has of them, from public facts alone: of a release whose policy says what the data are, and whose claim is
    differential privacy or individual differential privacy. Else nothing."""
    of_public = view_public(view)
    if not has_entry(of_public):
        return {}
    return _render([write_nist(of_public)]) | {ENTRY: write_entry(of_public)}


def render_paper_html(paper: Paper) -> str:
    """One paper as a page that needs nothing else."""
    return load_templates("html").get_template("paper.html").render({"paper_view": paper})


def render_paper_markdown(paper: Paper) -> str:
    """The same as Markdown."""
    return load_templates("markdown").get_template("paper.md").render({"paper_view": paper})


def _render(papers: list[Paper]) -> dict[str, str]:
    files: dict[str, str] = {}
    for paper in papers:
        files[f"{paper.name}.html"] = render_paper_html(paper)
        files[f"{paper.name}.md"] = render_paper_markdown(paper)
    return files
