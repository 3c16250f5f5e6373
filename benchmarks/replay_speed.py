"""How fast an event graph is laid out and replayed: seconds of CPU for a million runtime and device events.

python benchmarks/replay_speed.py TRACE...
"""

from __future__ import annotations

import sys
import time

import numpy as np

from syncscope import kineto
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.replay import replay
from syncscope.model.trace import DEVICE, Kind


def main() -> None:
    print(f"{'file':48} {'events':>9} {'lay out':>10} {'replay':>10}   CPU s per million runtime and device events")
    for path in sys.argv[1:]:
        trace = kineto.read(path)
        counted = int(np.isin(trace.kind, (Kind.CALL, *DEVICE)).sum())
        begin = time.process_time()
        graph = event_graph_of(trace).graph()
        laid_out = time.process_time() - begin
        rounds = max(1, 200_000 // counted)
        begin = time.process_time()
        for _ in range(rounds):
            replay(graph)
        once = (time.process_time() - begin) / rounds
        millions = counted / 1e6
        print(f"{path.rpartition('/')[2][:48]:48} {counted:>9,} {laid_out / millions:>10.3f} {once / millions:>10.4f}")


if __name__ == "__main__":
    main()
