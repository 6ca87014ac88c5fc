"""What is measured, a paper a file: its settings, and what one of them gives in each run."""
