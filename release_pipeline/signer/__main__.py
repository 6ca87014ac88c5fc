"""`python -m release_pipeline.signer BUNDLE.zip --key FILE`: show what you are asked to sign, and sign it.

`--write-alone FILE.py`, and nothing else, writes the signer as one self-contained file.
"""

import sys
from pathlib import Path

from release_pipeline.signer.command import main
from release_pipeline.verifier.joining import join_signer


def write_alone(file: Path) -> int:
    """Write the signer as one file; returns the exit code."""
    try:
        file.write_text(join_signer(), encoding="utf-8")
    except OSError as error:
        print(f"{file}: it cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    is_alone = sys.argv[1:2] == ["--write-alone"] and len(sys.argv) == 3
    sys.exit(write_alone(Path(sys.argv[2])) if is_alone else main())
