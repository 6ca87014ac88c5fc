"""Make docs/licences.md anew: every package of requirements.lock with the licence that its metadata name, and who needs it.

    python docs/make_licences.py [--check]

Run it with the Python that the lock is made for (3.11) and what is installed from it; it asks no network. A package whose licence
asks something of those who pass it on must have its words in COPYLEFT here, or the page is not made. --check only says whether
anything would change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deploy"))

from locked import ROOT, Pin, find_needed, list_packages, read_licence, read_lock

PAGE = ROOT / "docs" / "licences.md"
PARTS = (  # who needs a package: the first that does
    ("analyst", "release-pipeline-analyst", ()),
    ("product", "release-pipeline", ()),
    ("`postgres`", "release-pipeline", ("postgres",)),
    ("`surveys`", "release-pipeline", ("surveys",)),
    ("`objects`", "release-pipeline", ("objects",)),
    ("`demo`", "release-pipeline", ("demo",)),
)
DEVELOPERS = "developers"
NEVER_SHIPPED = "It is in no distribution and no image."
COPYLEFT = {  # what their licences ask of those who pass them on, and what that is here
    "certifi": "MPL-2.0: a list of certificates. Nothing of it is changed; what is changed in its files stays under it.",
    "docutils": f"Public domain and BSD, some files GPL: for the site of these pages, as Sphinx uses it. {NEVER_SHIPPED}",
    "hypothesis": f"MPL-2.0: for tests. {NEVER_SHIPPED}",
    "pathspec": f"MPL-2.0: for building the wheels. {NEVER_SHIPPED}",
    "psycopg2-binary": "LGPL with exceptions: imported as it is, by `dagster-postgres` and for a registry in Postgres, "
    "only with the extra `postgres`, which "
    "the image has. Who passes the image on offers the source of psycopg2 too, or builds the image without that extra.",
    "text-unidecode": f"Artistic licence or GPL, at choice: for tests, through `frictionless`. {NEVER_SHIPPED}",
    "tqdm": "MPL-2.0 and MIT: progress bars of Great Expectations. Nothing of it is changed.",
}
ASKS = re.compile(r"GPL|MPL|Mozilla|EUPL|EPL|CeCILL|CDDL|Artistic|SSPL|BUSL|Commons Clause|Proprietary", re.IGNORECASE)
HEAD = """\
# Licences of what it stands on

Release Pipeline is under Apache-2.0. These are the packages of `requirements.lock`, each with the licence that its own metadata
name, and who needs it: an *analyst's* install, the *product's*, an extra, or *developers* alone. `docs/make_licences.py` makes
this page from the packages that are installed; it is not legal advice.

None of them is copied into ours: they are installed beside it, as they were published. The image of [deploying.md](deploying.md)
has those of analyst, product, `objects`, `postgres` and `surveys`, and a bill of materials with their hashes.
"""
BUNDLED = """\
## What wheels carry

Some wheels carry libraries of others, whose texts lie in their `.dist-info`: NumPy and SciPy OpenBLAS (BSD), libgfortran (GPL-3.0
with the GCC runtime exception) and libquadmath (LGPL-2.1 or later), scikit-learn libgomp (GPL-3.0 with the same exception),
Pillow its image formats, psycopg2-binary libpq, OpenSSL, Kerberos, LDAP and SASL. The exception lets
programs of any licence use them.
"""


def make_page() -> str:
    """The text of the page."""
    pins = read_lock()
    needed = [(part, find_needed(project, extras, pins=pins)) for part, project, extras in PARTS]
    rows, asking = [], []
    for name, group in list_packages(pins):
        licence = _find_licence(name, group)
        part = next((part for part, names in needed if name in names), DEVELOPERS)
        rows.append(f"| {name} | {' or '.join(pin.version for pin in group)} | {licence} | {part} |")
        if ASKS.search(licence):
            asking.append(f"- **{name}** ({part}): {_find_words(name)}")
    table = ["| package | version | licence | needed by |", "|---|---|---|---|", *rows]
    return "\n".join([HEAD, "## Copyleft", "", *asking, "", BUNDLED, "## All of them", "", *table, ""])


def _find_licence(name: str, group: Sequence[Pin]) -> str:
    """As it is named by what is installed; what only another platform takes is not here to be asked."""
    licence, _ = read_licence(name)
    if licence:
        return licence.replace("|", "/")
    if all("win32" in pin.marker for pin in group):
        return "for Windows alone: not asked"
    raise SystemExit(f"{name} names no licence. Look at its files, and say it in docs/make_licences.py.")


def _find_words(name: str) -> str:
    if name not in COPYLEFT:
        raise SystemExit(f"The licence of {name} asks something of those who pass it on: say what in docs/make_licences.py.")
    return COPYLEFT[name]


def _find_others(pins: Sequence[Pin]) -> Iterator[str]:
    """What is installed in another version than any that the lock has."""
    for name, group in list_packages(pins):
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if found not in {pin.version for pin in group}:
            yield f"{name} {found}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether anything would change")
    options = parser.parse_args(arguments)
    if others := list(_find_others(read_lock())):
        raise SystemExit(f"Not of the lock: {', '.join(others)}. Set up the environment anew: make clean, make quick.")
    made = make_page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made:
        return 0
    if options.check:
        print("docs/licences.md is not what docs/make_licences.py makes.", file=sys.stderr)
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
