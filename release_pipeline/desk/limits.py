"""How long a question of the web process to the counter may be: one does not ask longer ones, the other reads none."""

from __future__ import annotations

LONGEST_LINE, LONGEST_BODY = 1 << 16, 1 << 23
