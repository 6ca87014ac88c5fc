"""The ways to use the program: the command line, Dagster, and the desk."""
