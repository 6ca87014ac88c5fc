"""What the figures depend on, without saying whose machine it is."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np


def facts() -> dict[str, Any]:
    """Processor count and kind, interpreter, NumPy and the vector instructions that it found (its sort depends on them)."""
    config: Any = np.show_config(mode="dicts")
    simd: dict[str, list[str]] = config["SIMD Extensions"]
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "simd": [*simd.get("baseline", []), *simd.get("found", [])],
    }
