"""Methods of others beside ours on the same records: `python -m experiments.peers --help`."""
