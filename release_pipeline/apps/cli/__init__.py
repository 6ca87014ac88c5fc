"""The command line, a module for each kind of user."""

from release_pipeline.apps.cli.program import main

__all__ = ["main"]
