"""`python -m release_pipeline.agent`, where only the analyst's distribution is installed."""

from __future__ import annotations

import sys

from release_pipeline.agent.options import main

if __name__ == "__main__":
    sys.exit(main())
