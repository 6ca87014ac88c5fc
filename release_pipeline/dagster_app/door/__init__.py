"""The guarded front door of Dagster's UI: who comes in, from which page, and what may be asked.

Dagster's webserver runs mutations sent by GET and looks at neither Origin nor Host. It is therefore never at a port of its
own: its application runs inside the process of the door, behind `guard`.
"""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """What somebody may do."""

    VIEW = "view"
    OPERATE = "operate"
