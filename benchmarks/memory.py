"""Peak memory of masking one column, each case in a fresh process: `python -m benchmarks.memory METHOD SCOPE N`.

Linux only: the kernel's high-water mark of resident memory is set back right before the call and read right after it, so
no peak between two samples is missed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.columns import Masking, lognormal_column, warm_up

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measurable() -> bool:
    """Whether this system tells peak memory the way it is measured here."""
    return _RESET.exists()


def peak_bytes(mask: Masking, n: int) -> int:
    """Peak resident memory of masking n values above what was resident right before, the column included, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", mask.method, mask.scope, ",".join(map(str, mask.atoms)), str(n)]
    root = Path(__file__).resolve().parents[1]
    return int(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _peak_here(mask: Masking, n: int) -> int:
    warm_up(mask)
    values = lognormal_column(n)
    reset_peak()
    before = resident("VmRSS")
    masked = mask(values)
    peak = resident("VmHWM")
    if len(masked.values) != n:
        raise RuntimeError("the masked column has another length.")
    return max(peak - before, 0)


def reset_peak() -> None:
    """VmHWM starts again from what is resident now."""
    _RESET.write_text("5")


def resident(field: str) -> int:
    """Bytes resident in this process: now (VmRSS), or at most since the last reset (VmHWM)."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_STATUS} has no {field}.")
    return int(found[1]) * 1024


if __name__ == "__main__":
    method, scope, atoms, size = sys.argv[1:]
    print(_peak_here(Masking(method, scope, tuple(int(atom) for atom in atoms.split(",") if atom)), int(size)))
