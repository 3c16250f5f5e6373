"""How long a program waits for its batches."""

import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from syncscope.cli._verified import summary, verdict
from syncscope.verify.fed import Fed
from syncscope.verify.results import Verification
from syncscope.verify.timing import Ratio

SLOW = 0.004  # s that a batch takes at least


class Batches:
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def __next__(self) -> int:
        if self.inner is not None:
            return int(next(self.inner))
        time.sleep(SLOW)
        return 1


class Loader:
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def __iter__(self) -> Iterator[int]:
        time.sleep(SLOW)
        return Batches(self.inner)  # type: ignore[return-value]


def heard() -> tuple[Fed, Any]:
    """One that hears a module such as torch's, whose classes are of its own."""
    loading: Any = ModuleType("loading")
    loading.DataLoader = type("DataLoader", (), dict(vars(Loader)))
    loading._BaseDataLoaderIter = type("Iter", (), dict(vars(Batches)))
    fed = Fed()
    fed.listen(loading)
    return fed, loading


def test_it_is_the_time_in_the_loader_once_also_where_one_asks_another() -> None:
    fed, loading = heard()
    inner = loading._BaseDataLoaderIter()
    outer = loading._BaseDataLoaderIter(inner)
    began = time.perf_counter_ns()
    iter(loading.DataLoader())
    assert [next(inner), next(outer)] == [1, 1]
    took = time.perf_counter_ns() - began
    assert 3 * SLOW * 1e9 <= fed.ns <= took


def test_what_other_threads_ask_is_no_wait_of_the_program() -> None:
    fed, loading = heard()
    asking = threading.Thread(target=next, args=(loading._BaseDataLoaderIter(),))
    asking.start()
    asking.join()
    assert fed.ns == 0


def test_the_result_says_so_where_it_hides_what_fixes_give() -> None:
    found = Verification("train.py", ratio=Ratio(1.1, 0.7, 1.8, 9), fed=0.71, before=2e7, after=2e7)
    assert verdict(found).endswith(
        "71% of it passes until its batch is there: more workers may shorten that, no fix does."
    )
    assert dict(summary(found))["step"].endswith("; 71% of it until its batch is there")
    found.fed = 0.02
    assert "batch" not in verdict(found) + dict(summary(found))["step"]
