"""Choosing before anything is spent: many settings tried on a public table, on a made-up one, or, as a look that is noted, on the
confidential records."""
