"""`python -m release_pipeline.cli`, where the command is not on the path."""

import sys

from release_pipeline.cli.program import main

sys.exit(main())
