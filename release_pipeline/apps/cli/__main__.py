"""`python -m release_pipeline.apps.cli`, where the command is not on the path."""

import sys

from release_pipeline.apps.cli.program import main

sys.exit(main())
