"""dp-table itself in a process of its own, as peers are: `python -m benchmarks.peer_ours CASE OUTPUT.npz`."""

from __future__ import annotations

import json
import resource
import sys
from time import process_time

import numpy as np

from benchmarks.peers import DATA, Case, context_of, measure
from release_pipeline.experiments.synthetic import read_whole
from release_pipeline.experiments.tables import KEY
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import synthesise

if __name__ == "__main__":
    case = Case(**json.loads(sys.argv[1]))
    whole = read_whole(DATA, case.table)
    started = process_time()
    rows = synthesise(measure(case, whole), make_random(KEY, *context_of(case), "rows"))
    cpu, peak = process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.savez(sys.argv[2], rows=np.stack(rows), cpu=cpu, peak=peak)
