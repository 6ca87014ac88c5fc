"""`python -m release_pipeline.verifier PATH`: check a published package or an auditor's dossier."""

import sys

from release_pipeline.verifier.command import main

if __name__ == "__main__":
    sys.exit(main())
