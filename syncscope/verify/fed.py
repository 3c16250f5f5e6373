"""How long the program waits for its batches: what no rewrite of its steps shortens, and what makes their time vary most.

It is the time in `DataLoader`'s own methods, on the thread that asks: a wait for workers, or their work where there are none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import ModuleType
from typing import Any


class Fed:
    """`ns` so far. What one loader asks of another counts once."""

    def __init__(self) -> None:
        self.ns = 0
        self._inside = False
        self._thread = threading.get_ident()

    def listen(self, loading: ModuleType) -> None:
        """`torch.utils.data.dataloader` is heard from now on."""
        for owner, name in ((loading.DataLoader, "__iter__"), (loading._BaseDataLoaderIter, "__next__")):
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, give: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def timed(one: Any) -> Any:
            if self._inside or threading.get_ident() != self._thread:
                return give(one)
            self._inside, began = True, perf_counter_ns()
            try:
                return give(one)
            finally:
                self.ns += perf_counter_ns() - began
                self._inside = False

        return timed
