"""How long a test waits for something that must come: no judgement of speed, only the end of what hangs."""

HANGING = 900.0  # seconds after which a process, thread or answer counts as hanging, on however busy a machine
