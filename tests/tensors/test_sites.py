"""Where the host waits, and how hot the place is."""

import textwrap

import pytest

from syncscope.model.fact import Device, Dtype, Site
from syncscope.model.ops import Op
from syncscope.tensors.interpret import sites

HEAD = """
import logging, math, time
import numpy as np
import torch
from torch import nn, Tensor
import torch.nn.functional as F
logger = logging.getLogger()
"""


def found(body: str, confidence: int = 2) -> list[Site]:
    code = HEAD + textwrap.dedent(body)
    return [site for site in sites(code.encode(), "example.py") if site.confidence >= confidence]


def ops(statement: str, confidence: int = 2) -> set[str]:
    """The ops in one statement of a function that takes tensors x, y, mask (bool) and index (int), and a number n."""
    return {
        site.op
        for site in found(
            "def step(x: Tensor, y: Tensor, m: Tensor, n: int, device='cuda'):\n"
            "    mask = m > 0\n    index = m.long()\n    count = index.sum()\n    " + statement,
            confidence,
        )
    }


@pytest.mark.parametrize(
    ("statement", "op"),
    [
        ("mask.nonzero()", "nonzero"),
        ("torch.argwhere(x)", "argwhere"),
        ("a, b = torch.where(mask)", "where"),
        ("x.unique(return_counts=True)", "unique"),
        ("torch.unique_consecutive(x)", "unique_consecutive"),
        ("y = x[mask]", "mask_read"),
        ("y = x[:, mask]", "mask_read"),
        ("x[mask] = y[0]", "mask_write"),
        ("x[mask] += 1", "mask_write"),
        ("torch.masked_select(x, mask)", "masked_select"),
        ("index.bincount()", "bincount"),
        ("x.repeat_interleave(index)", "repeat_interleave"),
        ("F.one_hot(index)", "one_hot"),
        ("torch.arange(count)", "size"),
        ("x.view(count, -1)", "size"),
        ("x.new_zeros(index[n], 2)", "size"),
        ("x.repeat_interleave(index, output_size=count)", "size"),
        ("F.interpolate(x, size=(1, count))", "size"),
        ("F.fold(x, output_size=(1, count), kernel_size=(1, 3))", "size"),
        ("nn.ConvTranspose1d(3, 4, 2)(x, output_size=(2, 4, count))", "size"),
        ("x.split(index.tolist())", "tolist"),
        ("x[:count]", "size"),
        ("range(count)", "index"),
        ("x.to_sparse()", "sparse"),
        ("torch.combinations(x)", "combinations"),
        ("x.sum().item()", "item"),
        ("x.tolist()", "tolist"),
        ("float(x.sum())", "float"),
        ("int(count)", "int"),
        ("bool(mask.any())", "bool"),
        ("complex(x.sum())", "complex"),
        ("[1, 2, 3][count]", "index"),
        ("y = 1 if mask.any() else 2", "condition"),
        ("while x.max() > 3: x = x - 1", "condition"),
        ("assert mask.all()", "condition"),
        ("y = mask.any() or n", "condition"),
        ("y = not mask.any()", "condition"),
        ("y = 0 < x.sum() < 3", "condition"),
        ("y = 3 in x", "condition"),
        ("y = [v for v in [1, 2] if count > v]", "condition"),
        ("y = max(x.sum(), 1.0)", "builtin"),
        ("any([mask.any(), mask.all()])", "builtin"),
        ("sorted(x)", "builtin"),
        ("print(x)", "format"),
        ("y = f'{x.sum():.3f}'", "format"),
        ("y = '%s %d' % (n, x.sum())", "format"),
        ("y = '{}'.format(x)", "format"),
        ("logger.info('loss %f', x.sum())", "format"),
        ("bar.set_postfix(loss=x.sum())", "format"),
        ("x.cpu()", "cpu"),
        ("x.to('cpu')", "cpu"),
        ("x.cuda().numpy()", "numpy"),
        ("np.mean(x.cuda())", "asarray"),
        ("math.isfinite(x.sum())", "math"),
        ("torch.equal(x, y)", "equal"),
        ("x.allclose(y)", "allclose"),
        ("torch.is_nonzero(count)", "is_nonzero"),
        ("y = x[count]", "scalar_index"),
        ("y = torch.add(x, y, alpha=count)", "scalar_slot"),
        ("y = torch.randn(3).to('cuda')", "created_on_host"),
        ("z = torch.randn(3); z.cuda()", "to_device"),
        ("y = torch.tensor(1.0, device='cuda')", "tensor_literal"),
        ("y = x[[0, 2]]", "index_list"),
        ("torch.distributions.Normal(x, 1.0)", "distribution_validate"),
        ("nn.utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)", "clip_grad_norm"),
        ("torch.linalg.inv(x)", "linalg_check"),
        ("nn.utils.rnn.pack_padded_sequence(x, index.cuda())", "pack_padded_sequence"),
        ("torch.cuda.synchronize()", "synchronize"),
        ("torch.cuda.empty_cache()", "empty_cache"),
        ("torch.distributed.barrier()", "barrier"),
    ],
)
def test_every_way_of_waiting_is_seen(statement: str, op: str) -> None:
    assert Op(op)
    assert op in ops(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "x[mask] = 0",
        "x = x.masked_fill(mask, 0.0)",
        "y = torch.where(mask, x, y)",
        "x.repeat_interleave(index, output_size=12)",
        "F.one_hot(index, num_classes=10)",
        "if x is not None: x = x + 1",
        "if x.shape[0] > n: x = x[:n]",
        "y = x[:, 0]",
        "y = x[index]",
        "y = x[n]",
        "print(x.shape, x.device, len(x))",
        "y = x.to(y.dtype)",
        "y = x.to(y.device)",
        "y = torch.randn(3).tolist()",
        "y = torch.linspace(0, 1, 5)[2].item()",
        "y = int(torch.tensor([1, 2]).sum())",
        "y = x.to('cpu', non_blocking=True)",
        "torch.distributions.Normal(x, y, validate_args=False)",
        "torch.distributions.Normal(0.0, 1.0)",
        "nn.utils.clip_grad_norm_(x, 1.0)",
        "raise ValueError(f'bad {x}')",
        "y = isinstance(x, Tensor) and n",
        "y = config.value.something > 3 and unknown(n)",
    ],
)
def test_what_does_not_wait_is_silent(statement: str) -> None:
    assert not ops(statement)


def test_a_site_points_at_bytes_and_answers_for_its_neighbours() -> None:
    code = "import torch\ndef f(größe: torch.Tensor):\n    t = größe > 0\n    return größe[t].sum()\n"
    for encoding in ("utf-8", "latin-1"):
        source = (f"# coding: {encoding}\n" + code).encode(encoding)
        (site,) = sites(source, "f.py")
        assert source[site.span.start : site.span.end].decode(encoding) == "größe[t]"
        assert (site.place.line, site.op, site.fact.dtype, site.confidence) == (5, "mask_read", Dtype.BOOL, 3)
        assert site.function is not None
        assert site.function.name == "f"
        assert site.fact_of(site.node.value).confidence == 3  # type: ignore[attr-defined]  # a Subscript
        assert any("größe > 0" in words for words in site.fact.why)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_bom_do_not_move_spans(ending: str, bom: bytes) -> None:
    source = (
        bom
        + ending.join(
            ["import torch; torch.rand(3).cuda().item()", "x = 1\f", "y = torch.ones(2).cuda().item()"]
        ).encode()
    )
    spans = [source[s.span.start : s.span.end] for s in sites(source, "f.py") if s.op == "item"]
    assert spans == [b"torch.rand(3).cuda().item()", b"torch.ones(2).cuda().item()"]


@pytest.mark.parametrize(
    ("body", "hot", "why"),
    [
        ("class Net(nn.Module):\n  def forward(self, x):\n    return x.detach().sum().item()", True, "forward"),
        ("class Net(nn.Module):\n  def __init__(self, x):\n    self.n = x.detach().cuda().item()", False, "__init__"),
        ("def training_step(x: Tensor):\n  return x.item()", True, "training step"),
        ("def evaluate(x: Tensor):\n  return x.item()", False, "evaluation"),
        ("def loss_of(x: Tensor):\n  return x.item()", True, "loss"),
        ("def step(x: Tensor, i):\n  if i % 1 == 0:\n    print(x)", True, "in `step`"),
        ("n = 1\ndef step(x: Tensor, i):\n  if i % n == 0:\n    print(x)", True, "in `step`"),
        ("n = 1\ndef step(x: Tensor, i, n):\n  if i % n == 0:\n    print(x)", False, "only when"),
        ("n = 1\nn = 2\ndef step(x: Tensor, i):\n  if i % n == 0:\n    print(x)", False, "only when"),
        ("def step(x: Tensor, i):\n  n = 50\n  if i % n == 0:\n    print(x)", False, "once in 50 steps"),
        ("def step(x: Tensor, i):\n  if i % 50 != 0:\n    print(x)", True, "in `step`"),
        ("@torch.no_grad()\ndef step(x: Tensor):\n  return x.item()", True, "in `step`"),
        ("@torch.no_grad()\ndef helper(x: Tensor):\n  return x.item()", False, "no_grad"),
        ("def step(x: Tensor):\n  with torch.no_grad():\n    return x.item()", True, "in `step`"),
        (
            "def step(x: Tensor):\n  with torch.no_grad():\n    for y in val_loader:\n      y.item()\n      return x.item()",
            False,
            "no_grad",
        ),
        ("def step(x: Tensor, i):\n  if i % 10 == 0:\n    print(x)", False, "i % 10 == 0"),
        ("x = torch.ones(3).cuda()\nfor _ in range(3):\n  print(x)", False, "top level"),
        ("x = torch.ones(3).cuda()\nfor y in train_loader:\n  print(x)", True, "loader"),
        ("if __name__ == '__main__':\n  print(torch.ones(3).cuda())", False, "__main__"),
        ("def helper(x: Tensor):\n  return x.item()", True, "may run"),
    ],
)
def test_a_read_is_hot_or_cold_by_what_runs_it_and_says_why(body: str, hot: bool, why: str) -> None:
    last = [site for site in found(body) if site.op in ("item", "format")][-1]
    assert (last.whole, why in last.heat.words) == (hot, True), last.heat.words


def test_data_pipelines_live_on_the_host() -> None:
    assert not found(
        "class D(torch.utils.data.Dataset):\n  def __getitem__(self, i):\n"
        "    t = torch.ones(3)\n    return t[t > 0], t.sum().item()"
    )
    assert not found("def collate_fn(batch):\n  x = torch.stack(batch)\n  return x, int(x.detach().max())", 3)


def test_a_clock_is_told_where_nothing_synchronizes() -> None:
    loop = """
        def step(model: nn.Module, x: Tensor):
            start = time.perf_counter()
            y = model(x)
            {}
            print(time.perf_counter() - start)
        """
    assert [s.op for s in found(loop.format("pass"))] == ["timing"]
    assert "timing" not in [s.op for s in found(loop.format("torch.cuda.synchronize()"))]


def test_a_clock_that_is_restarted_in_each_round() -> None:
    loop = """
        def train(model: nn.Module, loader):
            start = time.time()
            for x in loader:
                loss = model(x)
                left = time.time() - start
                start = time.time()
                {}
        """
    sure = [s.op for s in found(loop.format("print(left, loss.item())")) if s.confidence > 1]
    assert sure == ["item"]  # a round ends when the one before it is done
    assert [s.op for s in found(loop.format("print(left)"))] == ["timing"]


def test_a_tensor_on_the_host_is_no_site() -> None:
    assert all(
        site.fact.device is not Device.HOST
        for site in found("def f():\n  x = torch.ones(3)\n  return x[x > 0].item(), x.cuda().item()", 0)
    )


def test_the_sample_loops_hazards_are_seen_and_its_fixed_form_is_clean() -> None:
    hazards = found(
        """
        class MaskedLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def forward(self, logits, target):
                background = torch.nonzero(target == 9, as_tuple=True)
                target[background] = -1
                values = torch.unique(target)
                if values.numel() < 2:
                    return logits.sum() * 0
                keep = target != -1
                mask = keep.unsqueeze(1).expand_as(logits)
                kept = logits[mask].view(10, -1).t()
                return self.criterion(kept, target[keep])
        """
    )
    assert [site.op for site in hazards] == ["nonzero", "number_write", "unique", "mask_read", "mask_read"]
    fixed = found(
        """
        class FixedLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss(ignore_index=-1)

            def forward(self, logits, target):
                target = torch.where(target == 9, -1, target)
                ordered = target.flatten().sort().values
                distinct = (ordered[1:] != ordered[:-1]).count_nonzero() + 1
                loss = self.criterion(logits, target)
                return torch.where(distinct < 2, torch.zeros_like(loss), loss)
        """,
        1,
    )
    assert not fixed


def test_a_scheduler_on_a_plateau_reads_its_metric() -> None:
    body = """
    def train(net, loader, optimizer):
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            plateau.step(loss.detach())
            cosine.step()
    """
    (site,) = found(body)
    assert (site.op, site.place.line) == (Op.FLOAT, HEAD.count("\n") + 7)


def test_a_size_that_is_called_a_tensor_and_a_method_that_is_called_like_a_tensors_are_no_reads() -> None:
    assert not ops("x.view(y)")
    assert not ops("z = device.log_softmax(x)")
    assert ops("x.view(y.sum(), 2)") == {"size"}
    assert ops("torch.log_softmax(x, count)") == {"scalar_slot"}


def test_what_a_dictionary_of_tensors_holds_is_less_sure_than_a_tensor() -> None:
    """Sizes, and what was drawn on the host, are kept in one beside what is on the device."""
    body = """
        def step(x: Tensor, drawn: dict[str, Tensor]):
            x.sum().item()
            drawn["order"].sum().item()
        """
    assert [site.confidence for site in found(body)] == [3, 2]
