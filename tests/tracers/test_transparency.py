"""A program does not see that it is recorded. `benchmarks/transparency.py` compares everything; here is what was seen once."""

import importlib
import operator
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from in_c import in_c

import syncscope

torch = pytest.importorskip("torch")

BLOCKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "trace": syncscope.trace,
    "watch": syncscope.watch,
    "forbid": lambda: syncscope.forbid_syncs(dry=False),
    "dry": lambda: syncscope.watch(dry=True),
}
block = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
Block = Callable[[], AbstractContextManager[Any]]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def of_tensors() -> Any:
    c = torch.tensor([1.0, 2.0])
    made = (
        torch.tensor([c[0], c[1]]),
        torch.Tensor([c[0], c[1]]),
        torch.as_tensor([c[0], c[1]]),
        c.new_tensor([c[0], c[1]]),
    )
    with pytest.raises(TypeError):
        operator.concat(c, c)
    with pytest.raises(TypeError):
        torch.ones(2).numpy().reshape(torch.tensor([2.5]))
    return [value.tolist() for value in made]


@block
def test_tensors_are_made_of_tensors_inside_and_afterwards(block: Block) -> None:
    expected = [[1.0, 2.0]] * 4
    with block():
        assert of_tensors() == expected
        late = type("Late", (torch.Tensor,), {})
        assert torch.tensor([torch.ones(2).as_subclass(late)[0]]).tolist() == [1.0]
    assert of_tensors() == expected
    assert torch.tensor([torch.ones(2).as_subclass(late)[0]]).tolist() == [1.0]


@in_c
@block
def test_functions_and_methods_are_torchs_own(block: Block) -> None:
    table = {f: f for f in (torch.nonzero, torch.where, torch.equal, torch.Tensor.item, torch.Tensor.__getitem__)}
    before = dict(vars(torch.Tensor))
    with block():
        assert all(table[f] is f for f in (torch.nonzero, torch.where, torch.equal, torch.Tensor.item))
        assert table[torch.Tensor.__getitem__] is torch.Tensor.__getitem__
        assert dict(vars(torch.Tensor)) == before
        assert pickle.loads(pickle.dumps(torch.nonzero)) is torch.nonzero


def positions(x):
    return torch.where(x > 0, x, torch.zeros_like(x)) + torch.nonzero(x).sum()


@in_c
@block
def test_compilers_of_torch_see_torchs_functions(block: Block) -> None:
    x = torch.tensor([1.0, -1.0])
    expected = positions(x)
    with block():
        assert torch.equal(torch.jit.script(positions)(x), expected)
        assert torch.equal(torch.fx.symbolic_trace(positions)(x), expected)
        compiled = torch.compile(lambda x: torch.where(x > 0, x, 0.0), backend="eager", fullgraph=True)
        assert compiled(x).tolist() == [1.0, 0.0]


@block
def test_subclasses_and_modes_see_the_programs_calls_only(block: Block) -> None:
    seen: list[str] = []

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.tensor([2.0]).as_subclass(Named)
    seen.clear()
    with block():
        float(x), x.item(), x[0], torch.nonzero(x), x.cpu()
    assert seen == ["__float__", "item", "__getitem__", "nonzero", "cpu"]


@in_c
@block
def test_what_fails_fails_as_it_does_without(block: Block) -> None:
    x = torch.ones(2)
    calls = (x.item, lambda: x.to("nowhere"), lambda: x.to("cpu", "cpu"), lambda: torch.nonzero("text"), lambda: x[5])

    def error_of(call: Callable[[], object]) -> tuple[Any, ...]:
        try:
            call()
        except Exception as error:
            depth, frame = 0, error.__traceback__
            while frame is not None:
                depth, frame = depth + 1, frame.tb_next
            return type(error), str(error), error.__context__, depth
        raise AssertionError("nothing failed")

    expected = [error_of(call) for call in calls]
    with block():
        assert [error_of(call) for call in calls] == expected


def test_a_dry_run_leaves_parameters_alone() -> None:
    with syncscope.watch(dry=True):
        p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        leaf = torch.ones(2, requires_grad=True)
        assert p.cpu() is p
        optimizer = torch.optim.SGD([p.cpu()], 0.1)
        (p.cpu() * leaf.cpu()).sum().backward()
        optimizer.step()
        assert vars(p) == {}
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0, 2.0]


def test_events_and_streams_that_synchronise_are_reads() -> None:
    pytest.importorskip("pyopencl")
    import syncscope.kernels

    with syncscope.watch() as watch:
        event = torch.ocl.Event()
        event.record()
        event.synchronize()
        torch.ocl.current_stream().synchronize()
        torch.ocl.synchronize()
    assert [(line.op, line.count) for line in watch.lines] == [("synchronize", 1)] * 3
    with pytest.raises(syncscope.SyncError), syncscope.forbid_syncs(dry=False):
        event.synchronize()


@in_c
@block
def test_a_part_of_the_calls_answers_as_without_it(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every so many-th call: without a recording, inside of one, and again without, all in this process."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    transparency = importlib.import_module("transparency")

    def answers(around: AbstractContextManager[Any]) -> dict[str, str]:
        outcomes = transparency.Outcomes()
        with around:
            transparency.people(outcomes, 19)
        outcomes.describe()
        return dict(outcomes.said)

    before, inside, after = (answers(one()) for one in (nullcontext, block, nullcontext))
    alike = [call for call in before if before[call] == after.get(call)]
    assert len(alike) > 0.8 * len(before)
    different = [call for call in alike if inside.get(call) != before[call]]
    assert [call for call in different if not call.startswith(tuple(transparency.DECLARED))] == []


@pytest.mark.slow
def test_a_part_of_the_comparison_and_of_the_samples() -> None:
    """In processes of their own, with samples of operators."""
    every, samples, modes = 19, 1, ["trace", "dry", "cpu"]
    command = [sys.executable, str(BENCHMARKS / "transparency.py")]
    done = subprocess.run(
        [*command, f"--every={every}", f"--samples={samples}", f"--modes={','.join(modes)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("compared inside, 0 differ") == len(modes)
