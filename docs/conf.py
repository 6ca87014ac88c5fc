"""How the site of these pages is made: `make docs`. Pages are Markdown, and read the same in a checkout: what a page of the site
has beyond its file is in `made_pages`."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS)]

import made_pages  # noqa: E402  the line above says where it is

from release_pipeline import __version__  # noqa: E402

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")  # pages that lie beside docs/

project = "Release Pipeline"
copyright = "the authors of Release Pipeline; Apache-2.0"
release = version = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"  # the checkout as it is, so that a link is the same in it and here
include_patterns = [*TOP, "docs/*.md", "docs/decisions/*.md", "examples/README.md", "examples/*/README.md"]
SEEN = (*TOP, "docs", "examples")
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in SEEN]  # Sphinx looks into nothing else
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types in signatures: of other libraries, and of what is inside

myst_heading_anchors = 4  # as forges make them: a link to a heading is the same there
highlight_language = "text"
smartquotes = False  # D' is a table beside D, and no quotation
autodoc_typehints = "signature"
add_module_names = False  # the heading says it
autodoc_type_aliases = {"npt.ArrayLike": "numpy.typing.ArrayLike"}  # by its name, and not by all that it may be
autodoc_member_order = "bysource"

html_theme = "furo"  # light, dark, phone and paper, in system fonts: nothing is asked of a network
html_title = f"Release Pipeline {__version__}"
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_use_index = html_domain_indices = False  # search finds names
html_show_sphinx = False
html_show_search_summary = False  # a browser reads no other page from file://, and search is to be the same there


def setup(app: Sphinx) -> None:
    """What is made while pages are read."""
    app.connect("source-read", made_pages.add_made_part)
    app.connect("autodoc-process-docstring", made_pages.mark_up_docstring)
    app.connect("build-finished", made_pages.add_front_door)
    app.connect("build-finished", made_pages.name_parts)
