"""`forbid_syncs`, `allow_syncs` and `watch`, dry: any machine has a CPU."""

import asyncio
import threading
import warnings
from typing import Any

import pytest
from in_c import in_c

torch = pytest.importorskip("torch")

import syncscope  # noqa: E402
from syncscope import SyncError, SyncWarning  # noqa: E402
from syncscope.tracers.guard import forbid_syncs  # noqa: E402
from syncscope.tracers.hooks.listeners import listeners  # noqa: E402


@pytest.fixture
def x() -> Any:
    return torch.ones(2, requires_grad=True)


def test_the_line_raises_before_it_reads(x: Any) -> None:
    with pytest.raises(SyncError, match="item makes the host wait") as caught, syncscope.forbid_syncs(dry=True):
        x.sum().item()
    assert caught.value.op == "item"
    assert caught.value.place is not None
    assert caught.value.place.path == __file__
    shown = caught.traceback.filter(caught)  # by pytest
    assert str(shown[-1].path) == __file__, "a failed test ends at the line that waits, in no file of ours"


def test_the_rule_that_knows_the_line_gives_its_rewrite(x: Any) -> None:
    def loop() -> None:
        with syncscope.forbid_syncs(dry=True):
            for _ in range(3):
                print(x.sum().item())

    with pytest.raises(SyncError, match=r"hint: .*syncscope explain") as caught:
        loop()
    assert "host-read" in str(caught.value)


def test_the_library_that_reads_is_named(x: Any) -> None:
    x.sum().backward()
    with pytest.raises(SyncError, match=r"in torch/nn/utils/clip_grad\.py:\d+"), syncscope.forbid_syncs(dry=True):
        torch.nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)


def test_within_allow_syncs_reads_are_allowed_and_after_it_no_longer(x: Any) -> None:
    with syncscope.forbid_syncs(dry=True):
        with syncscope.allow_syncs("logging"):
            assert x.sum().item() == 2
        with pytest.raises(SyncError):
            x.tolist()
    assert x.sum().item() == 2


def test_forbid_syncs_as_a_decorator_holds_at_every_call(x: Any) -> None:
    @syncscope.forbid_syncs(dry=True)
    def step() -> float:
        return float(x.sum())

    with pytest.raises(SyncError, match="float"):
        step()
    with pytest.raises(SyncError, match="float"):
        step()


def test_it_may_warn_once_a_line(x: Any) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        with syncscope.forbid_syncs(warn=True, dry=True):
            values = [x.sum().item() for _ in range(3)]
    assert values == [2, 2, 2]
    assert [w.category for w in said] == [SyncWarning]
    assert said[0].filename == __file__


def test_other_threads_are_free(x: Any) -> None:
    read: list[float] = []
    with syncscope.forbid_syncs(dry=True):
        thread = threading.Thread(target=lambda: read.append(x.sum().item()))
        thread.start()
        thread.join()
    assert read == [2]


def test_other_tasks_are_free(x: Any) -> None:
    async def forbidden(gate: asyncio.Event) -> None:
        with syncscope.forbid_syncs(dry=True):
            gate.set()
            await asyncio.sleep(0.01)
            with pytest.raises(SyncError):
                x.tolist()

    async def free(gate: asyncio.Event) -> list[float]:
        await gate.wait()
        return list(x.tolist())

    async def both() -> list[float]:
        gate = asyncio.Event()
        _, value = await asyncio.gather(forbidden(gate), free(gate))
        return value

    assert asyncio.run(both()) == [1, 1]


def test_tensors_of_the_host_are_free() -> None:
    with syncscope.forbid_syncs(dry=True):
        assert torch.ones(3).sum().item() == 3


NAMED = {
    "to": lambda x, at: x.to(at),
    "to, by keyword": lambda x, at: x.to(device=at, dtype=torch.float32),
    "made there": lambda x, at: torch.zeros(3, device=at),
    "where a moved one is": lambda x, at: torch.zeros(3, device=x.to(at).device),
    "to a moved one": lambda x, at: x.to(torch.ones(2, device=at)),
    "buffer of a module": lambda x, at: torch.nn.BatchNorm1d(3).to(at).running_mean,
    "default": lambda x, at: by_default(at),
}


def by_default(device: Any) -> Any:
    with torch.device(device):
        return torch.zeros(3)


@pytest.mark.parametrize("device", [torch.device("cpu"), "cpu"])
@pytest.mark.parametrize("way", NAMED)
def test_the_device_of_a_program_without_a_gpu_is_the_device_in_dry_mode(way: str, device: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        NAMED[way](torch.rand(3), device).sum().item()
    assert watch.count == 1
    with pytest.raises(SyncError, match="item"), syncscope.forbid_syncs(dry=True):
        NAMED[way](torch.rand(3), device).sum().item()


def test_what_is_said_to_be_the_hosts_is_free_in_dry_mode() -> None:
    with syncscope.forbid_syncs(dry=True):
        x = torch.rand(3)
        assert torch.zeros(3, device="cpu").sum().item() == 0
        assert torch.zeros(3, device=torch.device("cpu")).sum().item() == 0
        assert x.to(torch.device("cpu")).sum().item() >= 0
        assert torch.zeros_like(x, device=x.device).sum().item() == 0
        assert x.to(torch.float64).sum().item() >= 0


def test_it_is_on_the_device_without_dry_mode() -> None:
    pytest.importorskip("pyopencl")
    pytest.importorskip("syncscope.kernels")
    x = torch.ones(2).to("ocl")
    with pytest.raises(SyncError, match="bool"), syncscope.forbid_syncs(dry=False):
        assert x.sum() > 1


def test_watch_counts_by_line(x: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        for _ in range(5):
            x.sum().item()
        x.tolist()
        assert watch.count == 6
    assert sorted((line.op, line.count) for line in watch.lines) == [("item", 5), ("tolist", 1)]
    assert all(line.place is not None and line.place.path == __file__ for line in watch.lines)
    assert "item, 5 times" in str(watch)
    watch.clear()
    assert str(watch) == "no line has synced"


@in_c
def test_a_mask_of_the_device_waits_whatever_it_indexes(x: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        mask, host = x != 0, torch.zeros(len(x))
        assert not watch.count
        torch.arange(len(x))[mask]
        host[mask] = torch.ones(len(x))[mask]
        host.masked_select(mask)
        torch.masked_select(host, mask)
        x[mask]
        host[mask] = 0
        host[torch.ones(len(x), dtype=torch.bool)]
        host[1:, None][0]
        assert sorted(line.op for line in watch.lines) == ["mask_read"] * 3 + ["mask_write"] + ["masked_select"] * 2
        assert watch.count == 6
    assert all(line.place is not None and line.place.path == __file__ for line in watch.lines)
    with pytest.raises(SyncError, match=r"x\[mask\]|mask_read"), syncscope.forbid_syncs(dry=True):
        host[x != 0]


def test_each_number_of_the_device_in_an_index_is_waited_for(x: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        y, counts = x.long(), torch.zeros(10, 10)
        x[y[0]]
        x[None, y[0]]
        x.detach()[y[0]] = 0
        x[y], x[0], x[torch.tensor(0)]
        assert (watch.count, {line.op for line in watch.lines}) == (3, {"scalar_index"})
        for t, p in zip(y[:2], y[:2], strict=True):
            counts[t, p.long()] += 1
        assert watch.count == 3 + 2 * 4, "two indices, read once for the row and once to write it"
    with pytest.raises(SyncError, match="scalar_index"), syncscope.forbid_syncs(dry=True):
        counts[x.long()[0]]


def test_nothing_waits_in_a_dry_run_and_no_time_is_told(x: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        float(x.sum())
    assert str(watch).endswith(": float, once")
    assert watch.lines[0].blocked == 0


def test_a_watch_that_can_count_nothing_says_so(monkeypatch: pytest.MonkeyPatch, x: Any) -> None:
    monkeypatch.setattr("syncscope.tracers.watch.has_device", lambda: False)
    with syncscope.watch() as watch:
        x.sum().item()
    assert "watch(dry=True)" in str(watch)


def test_nothing_is_left_in_place(x: Any) -> None:
    with pytest.raises(SyncError), syncscope.forbid_syncs(dry=True), syncscope.watch(dry=True):
        x.sum().item()
    assert (listeners.guards, listeners.reads, listeners.pretend) == ((), (), None)


def test_a_generator_that_has_yielded_forbids_nothing(x: Any) -> None:
    def forbidding() -> Any:
        with syncscope.forbid_syncs(dry=True):
            yield 1
            x.sum().item()

    held = forbidding()
    next(held)
    assert x.sum().item() == 2
    with pytest.raises(SyncError):
        next(held)
    dropped = forbidding()
    next(dropped)
    del dropped
    assert x.sum().item() == 2


def test_a_warning_is_worked_out_once_a_line(x: Any) -> None:
    asked = []
    with (
        warnings.catch_warnings(record=True),
        forbid_syncs(warn=True, dry=True, advise=lambda *what: asked.append(what) or ""),
    ):
        for _ in range(3):
            x.sum().item()
    assert len(asked) == 1


def test_a_hint_names_the_rule_whose_wait_it_is() -> None:
    names: dict[str, Any] = {"torch": torch, "syncscope": syncscope}
    with pytest.raises(SyncError) as caught:
        exec("with syncscope.forbid_syncs(dry=True):\n    torch.ones(1, requires_grad=True).sum().item()", names)
    assert "anomaly" not in str(caught.value)


def test_watch_counts_its_own_thread(x: Any) -> None:
    with syncscope.watch(dry=True) as watch:
        thread = threading.Thread(target=lambda: x.sum().item())
        thread.start()
        thread.join()
        assert watch.count == 0
        x.sum().item()
    assert watch.count == 1
