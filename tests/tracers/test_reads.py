"""Which expression reads: line and column on our own device, and in dry mode on the CPU."""

import inspect
import linecache
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from in_c import in_c

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from syncscope.api import trace as recording  # noqa: E402
from syncscope.api import watch  # noqa: E402
from syncscope.model.trace import Event, Flag, Kind  # noqa: E402
from syncscope.tracers.guard import dry_if  # noqa: E402
from syncscope.tracers.hooks import listening  # noqa: E402
from syncscope.tracers.hooks import torch as torch_reads  # noqa: E402
from syncscope.tracers.hooks.listeners import Listener  # noqa: E402
from syncscope.tracers.session import Session  # noqa: E402


@pytest.fixture(scope="module")
def device() -> str:
    pytest.importorskip("pyopencl")
    import syncscope.kernels  # noqa: F401  (registers the device)

    return "ocl"


def reads_of(work: Callable[[], object]) -> list[Event]:
    with Session() as session:
        work()
    return [event for event in session.trace if event.kind == Kind.READ]


def expression(event: Event) -> str:
    """What stands in the source where the event points to, to the end of the line."""
    assert event.place is not None
    assert event.place.path == __file__
    return linecache.getline(__file__, event.place.line)[event.column - 1 :].rstrip()


WAYS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "item": ("item", lambda x: x.sum().item()),
    "tolist": ("tolist", lambda x: x.tolist()),
    "bool": ("bool", lambda x: 1 if x.sum() > 0 else 2),
    "float": ("float", lambda x: float(x.sum())),
    "int": ("int", lambda x: int(x.sum())),
    "index": ("index", lambda x: range(10)[x.sum().long() * 0]),
    "format": ("format", lambda x: f"{x.sum():.3f}"),
    "str": ("format", lambda x: str(x)),
    "repr": ("format", lambda x: repr(x)),
    "cpu": ("cpu", lambda x: x.cpu()),
    "to": ("cpu", lambda x: x.to("cpu")),
    "nonzero": ("nonzero", lambda x: torch.nonzero(x)),
    "nonzero method": ("nonzero", lambda x: x.nonzero()),
    "where": ("where", lambda x: torch.where(x > 0)),
    "unique": ("unique", lambda x: torch.unique(x)),
    "mask_read": ("mask_read", lambda x: x[x > 0]),
    "mask_write": ("mask_write", lambda x: x.__setitem__(x > 0, x[:1])),
    "masked_select": ("masked_select", lambda x: torch.masked_select(x, x > 0)),
    "equal": ("equal", lambda x: torch.equal(x, x)),
    "in": ("bool", lambda x: 3.0 in x),
}


@in_c
@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_reading_on_the_device(device: str, way: str) -> None:
    op, read = WAYS[way]
    x = torch.tensor([1.0, 0.0, 2.0]).to(device)
    found = reads_of(lambda: read(x))
    assert [e.name for e in found] == [op]
    assert found[0].place is not None
    assert found[0].place.line == inspect.getsourcelines(read)[1]
    assert not found[0].flags & Flag.FALLBACK


@in_c
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("to", "index")])
def test_each_way_of_reading_in_dry_mode(way: str) -> None:
    op, read = WAYS[way]
    with dry_if(True):
        x = (torch.tensor([1.0, 0.0, 2.0], requires_grad=True) * 1).detach()
        found = reads_of(lambda: read(x))
    assert [e.name for e in found] == [op]
    assert found[0].place is not None
    assert found[0].place.line == inspect.getsourcelines(read)[1]


def test_tensors_of_the_host_are_not_reads() -> None:
    x = torch.tensor([1.0, 0.0])
    assert reads_of(lambda: (x.sum().item(), x.tolist(), x[x > 0], torch.nonzero(x), print(x))) == []


def test_what_waits_for_nothing_is_not_a_read(device: str) -> None:
    x = torch.ones(4).to(device)
    i = torch.tensor([0, 1]).to(device)
    assert reads_of(lambda: (x[0], x[1:], x[i], x.to(torch.float32), x.to(device), x.shape, x + 1)) == []


def test_two_reads_of_one_expression_have_their_columns(device: str) -> None:
    x = torch.ones(2).to(device)
    found = reads_of(lambda: x[0].item() + x[1].item())
    assert [expression(e) for e in found] == ["x[0].item() + x[1].item())", "x[1].item())"]


def test_the_line_of_a_condition(device: str) -> None:
    x = torch.ones(2).to(device)

    def condition() -> int:
        if x.sum() > 1:
            return 1
        return 2

    assert [expression(e) for e in reads_of(condition)] == ["x.sum() > 1:"]


def test_a_library_that_reads_has_the_users_line_and_its_own(device: str) -> None:
    layer = torch.nn.Linear(2, 2).to(device)
    layer(torch.ones(1, 2).to(device)).sum().backward()
    found = reads_of(lambda: torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True))
    assert found
    assert {expression(e).partition("(")[0] for e in found} == {"torch.nn.utils.clip_grad_norm_"}
    assert any("torch/nn/utils/clip_grad.py:" in e.detail for e in found)


def test_a_distribution_that_checks_its_arguments(device: str) -> None:
    scale = torch.ones(2).to(device)
    found = reads_of(lambda: torch.distributions.Normal(scale, scale, validate_args=True))
    assert found
    assert all("torch/distributions/" in e.detail for e in found)


@in_c
def test_the_module_that_reads_has_its_path(device: str) -> None:
    class Gate(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = torch.nn.Sequential(torch.nn.ReLU(), Gate())

        def forward(self, x: Any) -> Any:
            return self.backbone(x)

    model = Model()
    x = torch.ones(2).to(device)
    found = reads_of(lambda: model(x))
    assert [e.detail for e in found] == ['{"module":"model.backbone.1"}']


@in_c
def test_a_hook_in_the_backward_pass_has_its_own_line(device: str) -> None:
    x = torch.ones(2).to(device).requires_grad_()
    y = x * 2
    y.register_hook(lambda grad: print(grad.sum().item()))
    found = reads_of(lambda: y.sum().backward())
    assert [expression(e) for e in found] == ["grad.sum().item()))"]


@in_c
def test_a_read_of_the_engine_has_the_line_that_called_backward(device: str) -> None:
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad if grad.sum() > 0 else None

    x = torch.ones(2).to(device).requires_grad_()
    assert [expression(e) for e in reads_of(lambda: Reads.apply(x).sum().backward())] == ["grad.sum() > 0 else None"]


def test_generators_decorators_and_threads(device: str) -> None:
    x = torch.ones(2).to(device)

    def values() -> Iterator[float]:
        yield x[0].item()

    @torch.no_grad()
    def decorated() -> float:
        return float(x[1])

    def both() -> None:
        assert list(values()) == [1.0]
        assert decorated() == 1.0
        thread = threading.Thread(target=lambda: x.tolist(), name="reader")
        thread.start()
        thread.join()

    found = reads_of(both)
    assert [expression(e) for e in found] == ["x[0].item()", "float(x[1])", 'x.tolist(), name="reader")']
    assert len({e.lane for e in found}) == 2


def test_code_that_was_never_in_a_file(device: str) -> None:
    """Cells of a notebook are compiled in this way."""
    code = compile("y = x.sum().item()\n", "<ipython-input-3>", "exec")
    found = reads_of(lambda: exec(code, {"x": torch.ones(2).to(device)}))
    assert [(e.place.path, e.place.line) for e in found if e.place] == [("<ipython-input-3>", 1)]


@in_c
def test_a_fallback_is_the_operators_read_not_the_users(device: str) -> None:
    x = torch.ones(3, 3).to(device)
    found = reads_of(lambda: torch.linalg.det(x))
    assert found
    assert {e.name for e in found} == {"ocl_fallback"}
    assert all(e.flags & Flag.FALLBACK and "fallback of aten::" in e.detail for e in found)
    assert {expression(e) for e in found} == {"torch.linalg.det(x))"}


@in_c
def test_a_fallback_that_waits_on_cuda_is_called_by_what_it_waits_for(device: str) -> None:
    x = torch.ones(3, 3).to(device)
    found = reads_of(lambda: torch.linalg.svd(x))
    assert {e.name for e in found} == {"linalg_check"}
    assert all(e.flags & Flag.FALLBACK and e.detail for e in found)


def test_batches_of_a_loader_count_in_dry_mode() -> None:
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2)
    with dry_if(True):
        found = reads_of(lambda: [F.relu(batch).max().item() for (batch,) in loader])
    assert [e.name for e in found] == ["item", "item"]


def test_what_came_back_to_the_host_no_longer_counts_in_dry_mode() -> None:
    x = torch.ones(2, requires_grad=True)
    with dry_if(True):
        found = reads_of(lambda: [v for _ in range(3) for v in x.detach().cpu().tolist()])
    assert [e.name for e in found] == ["cpu"] * 3


def test_uploads_are_reads_where_they_wait(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CUDA's do; our own device copies while the host goes on, so that it has none."""
    x = torch.ones(4)
    assert reads_of(lambda: x.to(device)) == []
    with listening(Listener()):
        monkeypatch.setattr(torch_reads, "uploads_wait", frozenset({torch.device(device).type}))
        found = reads_of(lambda: (x.to(torch.float64), x.to("cpu"), x.to(device), x.to(device, non_blocking=True)))
    assert [e.name for e in found] == ["to_device"] * 2
    assert {e.bytes for e in found} == {16}
    assert expression(found[0]).startswith("x.to(device), x.to(device, non_blocking=True)")


def test_a_read_that_fails_is_a_read_all_the_same(device: str) -> None:
    x = torch.ones(2).to(device)

    def fails() -> None:
        with pytest.raises(RuntimeError, match="2 elements"):
            x.item()

    assert [e.name for e in reads_of(fails)] == ["item"]


@in_c
@pytest.mark.parametrize(
    ("code", "kept", "rows"),
    [
        ("x[m]", 3, 4), ("x[:, c]", 1, 2), ("x.masked_select(m[:, None])", 6, 8), ("m.nonzero()", 3, 4),
        ("torch.where(m)", 3, 4), ("x.unique()", 8, 8), ("x[m, 0]", None, None),
    ],
)  # fmt: skip
def test_what_selects_says_how_many_rows_it_kept(device: str, code: str, kept: int | None, rows: int | None) -> None:
    x, m = torch.arange(8.0).view(4, 2).to(device), torch.tensor([True, False, True, True]).to(device)
    names = {"torch": torch, "x": x, "m": m, "c": torch.tensor([True, False]).to(device)}
    with recording() as session:
        eval(code, names)
    (row,) = session.trace.rows(Kind.READ)
    detail = session.trace.known(int(row))
    assert (detail.kept, detail.rows, detail.gradient) == (kept, rows, None)


@in_c
def test_a_gradient_that_comes_back_is_known(device: str) -> None:
    x = torch.ones(4, device=device, requires_grad=True)
    with recording() as session:
        x[x > 0]
    assert session.trace.known(int(session.trace.rows(Kind.READ)[0])).gradient == 1


@in_c
def test_a_method_that_the_program_has_replaced_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch hands a mode what it finds under a method's name, which is the replacement that has called it."""
    called: list[str] = []

    def counting(name: str) -> Any:
        original = getattr(torch.Tensor, name)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return original(self, *args, **kwargs)

        return call

    for name in ("item", "sum", "to"):
        monkeypatch.setattr(torch.Tensor, name, counting(name))
    weight = torch.ones(3, requires_grad=True)
    with watch(dry=True) as counted:
        value = (weight * 2).to("cpu").sum().item()
    assert (called, value, counted.count) == (["to", "sum", "item"], 6.0, 1)
