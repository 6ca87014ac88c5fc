"""`python -m tests.golden [--into DIR] [--renew] [NAME ...]`: makes the golden set and compares it with the stored digests."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

from tests.golden.still import hold


def main() -> int:
    """Compare; with --renew store the digests; with --into write every file. 1 where something differs."""
    hold()  # before the program is loaded
    from tests.golden.making import DIGESTS, MUTATIONS, NAMES, QUICK, compare, digest_of, make

    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which policies; all of {', '.join(NAMES)} by default")
    parser.add_argument("--into", type=Path, metavar="DIR", help="write every file that is compared below this new folder")
    parser.add_argument("--renew", action="store_true", help="store the digests anew, in a commit that says why")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} mutations of every package in place of {MUTATIONS}")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.renew and options.quick:
        parser.error("--renew needs every mutation: leave --quick out")
    if options.into and options.into.exists():
        parser.error(f"{options.into} is there already; name a new folder")
    warnings.simplefilter("ignore")
    differences: list[str] = []
    for name in options.names or NAMES:
        with tempfile.TemporaryDirectory(prefix="golden-") as work:
            made = make(name, Path(work), mutations=QUICK if options.quick else MUTATIONS)
        digests = digest_of(made)
        differences += compare(name, digests, quick=options.quick)
        for path, content in made.items() if options.into else ():
            file = options.into / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if options.renew:
            DIGESTS.mkdir(exist_ok=True)
            (DIGESTS / f"{name}.json").write_text(json.dumps(digests, indent=1) + "\n")
    for line in differences:
        print(line)
    return 0 if options.renew or not differences else 1


if __name__ == "__main__":
    sys.exit(main())
