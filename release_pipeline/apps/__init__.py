"""What people start: the command line, Dagster, and the desk."""
