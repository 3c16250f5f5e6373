"""The classes of wrong fixes, each as random code: a fix adds no wait, scripts as before, loses no comment, keeps the width."""

import ast
import io
import tokenize

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

import torch
from effort import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rules.driver import FIXES, findings, fixed
from rules.equivalence import last_function
from rules.test_random_functions_fixed import bodies, program
from torch.utils._python_dispatch import TorchDispatchMode

from syncscope.model.finding import Safety

QUIET = {"database": None, "suppress_health_check": list(HealthCheck)}
WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "equal",
    "is_nonzero",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
}
SCRIPTED = (
    "y[0, 0] = 1.0",
    "y = y + torch.tensor([0.5], device=x.device)",
    "y[y < 0] = 0",
    "keep = y > 0",
    "y[keep] = x[keep] * 2",
    "i = torch.nonzero(y > 1)",
    "y[torch.where(y > 2)] = 0.5",
    "low, high = x.min().item(), x.max().item()",
    "if (y > 3).any(): y = y * 2",
    "y = y + torch.zeros(1).to(x.device)",
    "n = torch.unique(t).numel()",
    "y[x < y] = x[x < y]",
    "same = torch.equal(x, y)",
)
CALLS = (  # rewritten calls, as people lay them out
    ("    y = torch.zeros(", "3", ")", ".to(device)"),
    ("    y = x[", "torch.nonzero(x > 0, as_tuple=True)", "]", ""),
    ("    x[", "torch.where(x > 0)", "]", " = 0.25"),
    ("    y = torch.unique(", "x", ")", ".numel()"),
    ("    y = torch.tensor(", "0.5,", " device=device)", ""),
    ("    y = max(", "x.sum().item(),", " x.min().item())", ""),
)


class Counted(TorchDispatchMode):
    """Counts the operators for which a device would make the host wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in ("index", "index_put_", "index_put", "_index_put_impl_"):
            masks = sum(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
            fills = name != "index" and args[2].ndim == 0  # one number is written with masked_fill
            self.waits += 0 if fills else masks
        self.waits += name in WAITS or (name == "repeat_interleave" and (kwargs or {}).get("output_size") is None)
        return func(*args, **(kwargs or {}))


def waited(code: str, values: dict) -> int | None:
    """How often a run would wait; None where it raises."""
    given = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    try:
        with Counted() as count, torch.no_grad():
            last_function(code)(**given)
    except Exception:  # whatever a random program raises
        return None
    return count.waits


@settings(max_examples=draws(25), **QUIET)
@given(bodies())
def test_a_fix_adds_no_wait(body: str) -> None:
    written = program(body)
    after = fixed(written, allowed=FIXES)
    if after == written:
        return
    generator = torch.Generator().manual_seed(len(body))
    x, y = (torch.randn(3, 4, generator=generator) for _ in "xy")
    values = {"x": x, "y": y, "t": torch.randint(-1, 4, (3, 4), generator=generator), "device": torch.device("cpu")}
    before, now = waited(written, values), waited(after, values)
    if before is not None and now is not None:
        assert now <= before, f"{written}\n{after}"


@settings(max_examples=draws(25), **QUIET)
@given(st.lists(st.sampled_from(SCRIPTED), min_size=1, max_size=4, unique=True))
def test_what_scripts_scripts_after_its_fixes(lines: list[str]) -> None:
    body = "".join(f"    {line}\n" for line in lines)
    head = "import torch\n\n\n@torch.jit.script\ndef f(x: torch.Tensor, t: torch.Tensor):\n    y = x.clone()\n"
    code = f"{head}{body}    return y\n"
    after = fixed(code, allowed=FIXES)
    if after != code and scripts(code):
        assert scripts(after), after


def scripts(code: str) -> bool:
    """Whether TorchScript takes the function in it."""
    tree = ast.parse(code)
    lines = code.splitlines(keepends=True)
    function = tree.body[-1]
    text = "".join(lines[function.lineno - 1 :])
    try:
        torch.jit.CompilationUnit(text)
    except RuntimeError:
        return False
    return True


@settings(max_examples=draws(40), **QUIET)
@given(st.data())
def test_comments_imports_and_the_width_are_kept(data: st.DataObject) -> None:
    lines = []
    for number, (head, inner, close, tail) in enumerate(
        data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
    ):
        comment = f"  # why {number}"
        if data.draw(st.booleans()):
            lines += [head + comment, f"        {inner}  # inside {number}", f"    {close.strip()}{tail}"]
        else:
            lines.append(f"{head}{inner}{close}{tail}{comment if data.draw(st.booleans()) else ''}")
    local = data.draw(st.booleans())
    top, first = ("", "    import torch\n") if local else ("import torch\n", "")
    body = "\n".join(lines)
    head = f"import os\n{top}import numpy as np\n\n\ndef f(x: 'torch.Tensor', device):\n{first}    x = x.flatten()\n"
    code = f"{head}{body}\n    return x, y\n"
    after = fixed(code, allowed=FIXES)
    assert comments(after) == comments(code), after
    assert after.count("import torch\n") == 1, after
    assert max(map(len, after.splitlines())) <= max(88, *map(len, code.splitlines())), after


def comments(code: str) -> list[str]:
    return sorted(t.string for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.COMMENT)


STARTS = ("0", "0.0", "total = seen = 0")
READS = (
    "loss.item() * len(y)",
    "loss.item()",
    "float(loss) * seen",
    "len(y) * float(F.mse_loss(scores[:, 0], y.to(scores)))",
    "loss.item() / 3",
    "scores.argmax(dim=1).eq(y).sum().item()",
    "int((scores.argmax(dim=1) == y).sum())",
    "torch.count_nonzero(scores > 0).item()",
    "scores.eq(0).sum(dim=0, keepdim=True)[0, 0].item()",
    "y.ne(0).to(torch.uint8).sum().item()",
)
ENDS = ("total / seen", "total", "[total, seen]", "str(total)", "total / seen + total")


@settings(max_examples=draws(40), **QUIET)
@given(st.sampled_from(STARTS), st.sampled_from(READS), st.sampled_from(ENDS), st.data())
def test_a_total_that_is_safely_kept_on_the_device_is_the_same_number(start: str, read: str, end: str, data) -> None:
    begin = start if "total" in start else f"total = {start}\n    seen = 0"
    more = data.draw(st.sampled_from(["", "        if seen > 4: break\n", "        if seen > 4: total = 0\n"]))
    code = f"""import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

def f(model: nn.Linear, loader):
    {begin}
    for x, y in loader:
        scores = model(x.to(device="cpu"))
        loss = F.cross_entropy(scores, y)
        seen += len(y) + 1
{more}        total += {read}
    return {end}
"""
    after = fixed(code, allowed={Safety.SAFE})
    if after == code:
        return
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    model = torch.nn.Linear(3, 4)
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=5))
    batches = [(torch.randn(n, 3, generator=generator), torch.randint(0, 4, (n,), generator=generator)) for n in sizes]
    if sizes and data.draw(st.booleans()):
        batches[0][0][0, 0] = float("nan")
    if batches or "/" not in end:  # else both divide by 0
        expected, found = last_function(code)(model, batches), last_function(after)(model, batches)
        assert repr(expected) == repr(found), f"{code}\n{after}\n{sizes}"


CONSTANTS = (
    "0",
    "1",
    "0.0",
    "1.0",
    "-0.0",
    "-1",
    "True",
    "False",
    "0.5",
    "[0, 0]",
    "[1.0]",
    "[0.0, -0.0]",
    "[True, True]",
    "[1e-8]",
    "[-3, -3]",
    "2 * math.pi",
    "[-math.pi + 1]",
    "[math.nan]",
    "[-1e-40]",
)
KINDS = ("", ", dtype=torch.long", ", dtype=x.dtype", ", dtype=kind", ", dtype=torch.bool")
MAKERS = (
    "torch.tensor({number}, device=x.device{kind})",
    "torch.as_tensor({number}, device=x.device{kind})",
    "x.new_tensor({number}{kind})",
    "torch.tensor({number}{kind}).to(x.device)",
    "torch.FloatTensor({number}).to(x.device)",
    "torch.DoubleTensor({number}).to(x.device)",
    "torch.LongTensor({number}).to(x.device)",
    "torch.IntTensor({number}).to(device=x.device)",
    "torch.Tensor({number}).to(x.device)",
)


@settings(max_examples=draws(60), **QUIET)
@given(
    st.sampled_from(MAKERS),
    st.sampled_from(CONSTANTS),
    st.sampled_from(KINDS),
    st.sampled_from([torch.float32, torch.int64, torch.complex64]),
    st.sampled_from([None, torch.float16]),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_a_constant_that_is_filled_is_the_same_tensor(made, number, kind, of, given_kind, default) -> None:
    made = made.format(number=number, kind=kind)
    code = f"import math\nimport torch\n\ndef f(x: torch.Tensor, kind):\n    return {made}\n"
    after = fixed(code, allowed={Safety.SAFE})
    if after == code:
        return
    torch.set_default_dtype(default)
    try:
        told = (torch.ones(3).to(of), given_kind)
        expected, found = last_function(code)(*told), last_function(after)(*told)
    finally:
        torch.set_default_dtype(torch.float32)
    as_bits = [t.resolve_conj().contiguous().flatten().view(torch.uint8).tolist() for t in (expected, found)]
    assert (expected.dtype, expected.shape, as_bits[0]) == (found.dtype, found.shape, as_bits[1]), after


PRINTED = (
    "{x.min().item()%s}",
    "{x.mean().item()%s:.3f}",
    "{x.max().item() * 2 %s}",
    "{torch.zeros(3).to(x.device)%s}",
    "{torch.tensor(0.5, device=x.device) %s }",
    "{x[x > 0].any()%s}",
    "{torch.tensor(1e-3, device=x.device)%s}",
    "{(x.min().item() + 1e0) %s !s}",
)


@settings(max_examples=draws(25), **QUIET)
@given(st.lists(st.tuples(st.sampled_from(PRINTED), st.booleans()), min_size=1, max_size=4))
def test_an_f_string_that_prints_its_code_prints_the_same(parts: list[tuple[str, bool]]) -> None:
    line = " ".join(part % ("=" if shows else "") for part, shows in parts)
    code = f"import torch\n\ndef f(x: torch.Tensor):\n    x = x.exp()\n    return f'{line}', x.min().item()\n"
    x = torch.linspace(-1, 1, 5)
    assert last_function(code)(x) == last_function(fixed(code, allowed={Safety.SAFE}))(x)


def test_an_index_for_a_mask_of_unknown_dimensions_says_that_it_has_one() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    x = {}\n    near = x < 1\n    return x[near].cumsum(0), x[near]\n"
    said = {made: findings(code.format(made), "boolean-mask-read")[0].fix for made in ("x * 2", "x.flatten()")}
    assert [fix is not None and "at least one dimension" in fix.changes for fix in said.values()] == [True, False]
