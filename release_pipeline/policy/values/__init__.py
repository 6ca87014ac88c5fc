"""The single values of a policy file, and how they are read and written."""
