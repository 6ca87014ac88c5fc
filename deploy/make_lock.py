"""Make deploy/requirements.lock (what the image has), deploy/demo.lock (what `make demo` needs) and deploy/build.lock (what
builds the wheels): pin by pin and hash by hash as requirements.lock has it.

    python deploy/make_lock.py [--check]

--check only says whether anything would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from locked import IMAGE_EXTRAS, ROOT, Pin, close, find_needed, read_lock
from packaging.requirements import Requirement

BUILDS = ("hatchling", "packaging")  # the build backend, and what deploy/make_dist.py reads metadata with

EDITABLE = ("hatchling", "editables")  # what installs the checkout itself


def make_locks() -> dict[Path, str]:
    """The lock files and their texts."""
    pins = read_lock()
    image = find_needed("release-pipeline", IMAGE_EXTRAS, pins=pins)
    build = close([Requirement(name) for name in BUILDS], pins=pins)
    demo = find_needed("release-pipeline", ("demo",), pins=pins) | close([Requirement(name) for name in EDITABLE], pins=pins)
    folder = ROOT / "deploy"
    locks = {"requirements.lock": image, "demo.lock": demo, "build.lock": build}
    return {folder / name: _choose(pins, names) for name, names in locks.items()}


def _choose(pins: Sequence[Pin], names: set[str]) -> str:
    return "".join(f"{line}\n" for pin in pins if pin.name in names for line in pin.lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files that are not what they should be, or look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether anything would change")
    options = parser.parse_args(arguments)
    old = {file: text for file, text in make_locks().items() if not file.is_file() or file.read_text(encoding="utf-8") != text}
    for file, text in old.items():
        if options.check:
            print(f"{file.relative_to(ROOT)} is not what deploy/make_lock.py makes.", file=sys.stderr)
        else:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
