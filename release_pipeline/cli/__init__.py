"""The command line, a module for each kind of user."""

from release_pipeline.cli.program import main

__all__ = ["main"]
