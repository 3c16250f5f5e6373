"""Code that safe fixes leave: others may write what is read, or it may be another kind of number than it looks."""

import pytest
from rules.driver import FIXES, HEAD, findings, fixed

from syncscope.model.finding import Safety

IMPORTS = """\
import functools

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.optim import SGD


"""
LENT = {  # others hold what is read, and run between the reads
    "an entry": "log['loss'] = loss\n    log['first'] = loss.item()\n    reduced(log)",
    "an attribute": "log.loss = loss\n    log.first = loss.item()\n    log.reduce()",
    "two names": "kept = log.loss = loss\n    log.first = loss.item()\n    log.reduce()",
    "a list": "log.append(loss)\n    print(loss.item())\n    reduced(log)",
    "a function": "note(loss)\n    print(loss.item())\n    step()",
    "setattr": "setattr(log, 'loss', loss)\n    print(loss.item())\n    log.step()",
    "an optimizer": "loss = torch.nn.Parameter(loss)\n    opt = SGD([loss], 0.1)\n    a = loss.item()\n    opt.step()",
    "a hook": "loss = torch.nn.Parameter(loss)\n    loss.register_hook(log)\n    a = loss.item()\n    loss.backward()",
    "a partial": "up = functools.partial(torch.Tensor.add_, loss, 1)\n    a = loss.item()\n    up()",
}
WRITTEN = {  # what writes a tensor, and does not look like it
    "all_reduce": "a = loss.item()\n    torch.distributed.all_reduce(loss)",
    "imported": "a = loss.item()\n    dist.broadcast(loss, src=0)",
    "begun": "work = dist.all_reduce(loss, async_op=True)\n    a = loss.item()\n    work.wait()",
    "in place": "a = loss.item()\n    F.relu(loss, inplace=True)",
    "in place, by position": "a = loss.item()\n    F.relu(loss, True)",
    "in place, perhaps": "a = loss.item()\n    F.dropout(loss, 0.5, True, log)",
    "running statistics": "a = loss.item()\n    F.batch_norm(x, loss, x.var(0), training=True)",
    "a module": "a = loss.item()\n    torch.nn.ReLU(inplace=True)(loss)",
    "initialised": "a = loss.item()\n    torch.nn.init.zeros_(loss)",
    "memory": "a = loss.item()\n    loss.untyped_storage().fill_(0)",
    "a method with a name": "neg = loss.neg_\n    a = loss.item()\n    neg()",
    "getattr": "a = loss.item()\n    getattr(loss, 'neg_')()",
    "mapped": "a = loss.item()\n    list(map(torch.Tensor.neg_, [loss]))",
    "the larger": "m = max(loss, 0)\n    a = loss.item()\n    m += 1",
    "before, in its statement": "a = (loss.mul_(2) is loss, loss.item())",
    "under its test": "if loss.item() > 0:\n        loss.mul_(2)",
}


@pytest.mark.parametrize("between", [*LENT.values(), *WRITTEN.values()], ids=[*LENT, *WRITTEN])
def test_what_may_be_written_between_is_not_safely_read_once(between: str) -> None:
    code = f"{IMPORTS}def f(x: torch.Tensor, log):\n    loss = x.sigmoid().mean()\n    {between}\n    return loss.item(), x\n"
    assert fixed(code, allowed={Safety.SAFE}) == code


def test_a_mask_that_others_hold_is_looked_for_again() -> None:
    code = (
        f"{HEAD}def f(self, x: torch.Tensor):\n    y = x.sigmoid()\n    good = x > 0\n    self.good = good\n"
        "    a = x[good]\n    self.turn()\n    return a, y[good]\n"
    )
    assert "nonzero" not in fixed(code, allowed=FIXES)


def test_what_is_noted_and_then_written_is_read_at_once() -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor):\n    mean, seen = x.mean(), []\n    for part in x:\n"
        "        seen.append(mean.item())\n        mean.mul_(0.9).add_(part.mean())\n    return seen\n"
    )
    assert fixed(code, allowed=FIXES) == code
    fresh = code.replace("        seen", "        mean = part.mean()\n        seen").replace(
        "        mean.mul_", "        part.mul_"
    )
    assert "torch.stack(seen)" in fixed(fresh, allowed=FIXES)


def test_what_outlives_a_pass_is_noted_as_a_copy() -> None:
    code = (
        f"{HEAD}def f(self, xs: list[torch.Tensor]):\n    seen = []\n    for x in xs:\n"
        "        y = self.scale.exp() * x\n        self.step(y)\n        seen.append(self.scale.item())\n    return seen\n"
    )
    assert "seen.append(self.scale.detach().clone())" in fixed(code, allowed=FIXES)


def test_what_is_reduced_is_new_whatever_it_is_reduced_of() -> None:
    code = (
        f"{HEAD}def f(self, xs: list[torch.Tensor]):\n    seen = []\n    for x in xs:\n"
        "        spread = self.policy(x).dist.entropy().mean()\n        self.step(x)\n        seen.append(spread.item())\n"
        "    return seen\n"
    )
    assert "seen.append(spread.detach())" in fixed(code, allowed=FIXES)
    assert "seen.append(spread.detach().clone())" in fixed(code.replace(".mean()", ".flat()"), allowed=FIXES)


TOTALS = {
    "a tensor": "total += loss.item() * weight",
    "a tensor, perhaps": "num_hits = self.hits(x)\n        total += loss.item() * num_hits",
    "of numpy": "total += loss.item() * self.weights[k]",
    "complex": "total += x.fft().mean().item()",
    "complex, perhaps": "total += x.mean().item()",
}


@pytest.mark.parametrize("added", TOTALS.values(), ids=TOTALS)
def test_a_total_of_what_may_be_another_number_is_not_safely_kept(added: str) -> None:
    code = (
        'import torch\nimport torch.nn.functional as F\n\ndevice = torch.device("cuda")\n\n\n'
        "def f(self, xs: list[torch.Tensor], weight):\n    total, seen = 0.0, 1\n    for k, x in enumerate(xs):\n"
        f"        loss = F.mse_loss(x, x.cos())\n        {added}\n    return total / seen\n"
    )
    assert fixed(code, allowed={Safety.SAFE}) == code
    plain = code.replace(added, "total += loss.item() * len(x)")
    assert "double()" in fixed(plain, allowed={Safety.SAFE})
    devices = plain.replace("for k, x in enumerate(xs)", "for x, device in zip(xs, self.devices)")
    assert fixed(devices, allowed=FIXES) == devices


def test_a_count_is_not_added_in_place_where_inference_mode_comes_and_goes() -> None:
    code = (
        f"{HEAD}def f(xs: list[torch.Tensor]):\n    right = 0\n    for x in xs:\n"
        "        with torch.inference_mode(len(x) == 2):\n            right += (x > 0).sum().item()\n    return right\n"
    )
    assert "right = right + (x > 0).sum()" in fixed(code, allowed={Safety.SAFE})


NAMES = ("'%(right)d' % locals()", "dict(vars())", "eval('right')", "dir()")


@pytest.mark.parametrize("asked", NAMES)
def test_a_function_that_asks_for_its_names_keeps_them(asked: str) -> None:
    code = (
        f"{HEAD}def f(xs: list[torch.Tensor]):\n    right, seen = 0, []\n    for x in xs:\n        mean = x.mean()\n"
        f"        right += (x > 0).sum().item()\n        seen.append({asked})\n        print(mean.item(), mean.item())\n"
        "    return right, seen\n"
    )
    assert fixed(code, allowed=FIXES) == code
    assert fixed(code.replace(asked, "vars(xs)"), allowed=FIXES) != code.replace(asked, "vars(xs)")


def test_whole_numbers_that_are_read_as_floats_are_read_apart() -> None:
    code = f"{HEAD}def f(x: torch.LongTensor):\n    low = float(x.min())\n    high = float(x.max())\n    return low, high\n"
    assert fixed(code, allowed=FIXES) == code
    unknown = code.replace("LongTensor", "Tensor")
    assert fixed(unknown, allowed={Safety.SAFE}) == unknown
    said = [f.fix.changes for f in findings(unknown) if f.fix]
    assert said
    assert all("floating point" in text for text in said)


def test_bytes_of_no_dimension_are_a_mask() -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor):\n    k = torch.tensor(1, dtype=torch.uint8, device=x.device)\n    x[k] = 0.5\n"
    )
    assert "fill_" not in fixed(code, allowed=FIXES)


def test_a_comment_is_moved_or_kept_and_a_type_belongs_to_its_statement() -> None:
    head = f"{HEAD}def f(x: torch.Tensor):\n"
    code = f"{head}    a = x.min().item()\n    b = (x  # why\n         .max().item())\n    return a, b\n"
    assert fixed(code, allowed={Safety.SAFE}).count("# why") == 1
    both = code.replace("why", "why not").replace("item())", "item())  # why")
    assert fixed(both, allowed={Safety.SAFE}).count("# why") == 2
    typed = f"{head}    a = x.min().item()  # type: float\n    b = x.max().item()  # type: float\n    return a, b\n"
    assert fixed(typed, allowed=FIXES) == typed


def test_a_statement_that_writes_what_it_reads_is_not_read_before() -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    y = x.float()\n    return y.add_(1), y.min().item(), y.max().item()\n"
    assert fixed(code, allowed=FIXES) == code
    assert "torch.stack((y.min(), y.max()))" in fixed(code.replace("y.add_(1)", "y.add(1)"), allowed={Safety.SAFE})


def test_what_may_have_moved_to_another_device_is_read_apart() -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor):\n    a = x.float().mean()\n    if len(x) > 3:\n        x = x.cpu()\n"
        "    b = x.float().sum()\n    return a.item(), b.item()\n"
    )
    assert fixed(code, allowed={Safety.SAFE}) == code
    assert "torch.stack" in fixed(code.replace("x = x.cpu()", "y = x.cpu()"), allowed={Safety.SAFE})


def test_the_end_of_a_chain_is_read_only_if_its_beginning_holds() -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    y = x.float()\n    return 0 < y.mean().item() < y.max().item()\n"
    assert fixed(code, allowed=FIXES) == code
    both = code.replace("0 < ", "")
    assert "torch.stack((y.mean(), y.max()))" in fixed(both, allowed={Safety.SAFE})


def test_what_went_back_alone_is_a_real_number() -> None:
    head = 'import torch\n\ndevice = torch.device("cuda")\n\n\n'
    code = (
        f"{head}def f(self, xs: list[torch.Tensor]):\n    total = 0.0\n    for x in xs:\n        loss = (x - 1).pow(2).mean()\n"
        "        loss.backward()\n        total += loss.item() * x.size(0)\n    return total\n"
    )
    assert "double()" in fixed(code, allowed={Safety.SAFE})
    assert fixed(code.replace("backward()", "backward(x)"), allowed={Safety.SAFE}) == code.replace(
        "backward()", "backward(x)"
    )


def test_a_parameter_is_read_again_after_a_step() -> None:
    code = (
        f"{IMPORTS}def f(x: torch.Tensor):\n    w = torch.nn.Parameter(x.sigmoid().mean())\n    opt = SGD([w], 0.1)\n"
        "    a = w.item()\n    (w * w).backward()\n    opt.step()\n    return a, w.item()\n"
    )
    assert fixed(code, allowed=FIXES) == code


OWN = {
    "a subclass": "class T(torch.Tensor):\n    pass\n\n\ndef f(x: torch.Tensor):\n    y = x.as_subclass(T)\n",
    "quantized": "def f(x: torch.Tensor):\n    y = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)\n",
}


@pytest.mark.parametrize("made", OWN.values(), ids=OWN)
def test_tensors_of_a_class_of_their_own_are_not_safely_joined_or_made_plain(made: str) -> None:
    rest = "    a, b = y.min().item(), y.max().item()\n    return a, b, torch.zeros(2).to(y), torch.tensor(1.0).type_as(y)\n"
    assert "stack" not in fixed(f"{HEAD}{made}{rest}", allowed=FIXES)
    assert fixed(f"{HEAD}{made}{rest}", allowed={Safety.SAFE}) == f"{HEAD}{made}{rest}"
    plain = f"{HEAD}def f(x: torch.Tensor):\n    y = x * 1\n{rest}"
    after = fixed(plain, allowed={Safety.SAFE})
    assert "torch.stack" in after
    assert "dtype=y.dtype" in after
