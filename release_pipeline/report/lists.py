"""Lists that are published as CSV, and read again by programs: one form for all of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def render_csv(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """The text of a list.

    >>> render_csv(("town", "value"), [("a, b", 3)])
    'town,value\\n"a, b",3\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
