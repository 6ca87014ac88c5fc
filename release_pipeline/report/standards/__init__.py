"""Descriptions of a package for catalogues, archives and programs: pure functions of the package and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from release_pipeline.report.standards.citation import render_citation
from release_pipeline.report.standards.dcat import render_dcat
from release_pipeline.report.standards.ddi import render_ddi
from release_pipeline.report.standards.terms import Files
from release_pipeline.report.view import PackageView

Render: TypeAlias = Callable[[PackageView, Files], str]
STANDARDS: Mapping[str, Render] = {
    "ddi-codebook.xml": render_ddi,
    "dcat.jsonld": render_dcat,
    "CITATION.cff": render_citation,
}
