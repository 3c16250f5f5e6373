"""Classes of fixes that a strict reader of packages would not have merged: each is mended, or only suggested."""

from textwrap import shorten

import pytest
from rules.driver import FIXES, findings, fixed

from syncscope.model.finding import Safety

HEAD = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\n"


def test_what_shares_its_elements_is_not_made_on_the_device_where_it_is_written() -> None:
    code = (
        "def f(pose: torch.Tensor, n: int):\n    pad = torch.eye(4)[None].expand(n, 4, 4).to(pose.device)\n"
        "    pad[:, :3, :3] = pose\n    return pad\n"
    )
    assert (
        fixed(HEAD + code, allowed=FIXES) == HEAD + code
    )  # one element of memory stands for many: an error on the device
    read = code.replace("    pad[:, :3, :3] = pose\n", "")
    assert "torch.eye(4, device=pose.device)[None].expand(n, 4, 4)" in fixed(HEAD + read, allowed=FIXES)


@pytest.mark.parametrize(
    ("dataset", "safety"),
    [
        ("TensorDataset(x, x)", Safety.SUGGEST),
        ("Rows(x)", Safety.SUGGEST),  # `x.device` is asked for
        ("Rows(root, train=True)", Safety.UNSAFE),
        ("data", Safety.UNSAFE),
    ],
)
def test_a_loader_of_tensors_that_may_be_on_the_device_is_not_pinned_by_command(dataset: str, safety: Safety) -> None:
    code = (
        f"{HEAD}def train(model, x, root, data):\n    loader = DataLoader({dataset}, batch_size=8)\n"
        "    for batch in loader:\n        batch = batch.to(x.device)\n        model(batch).sum().backward()\n"
    )
    fixes = [f.fix for f in findings(code, "blocking-upload") if f.fix is not None]
    assert {fix.safety for fix in fixes} == {safety}
    assert all("on the host, or it cannot be pinned" in fix.changes for fix in fixes)


def test_what_no_gradient_goes_through_is_not_detached() -> None:
    code = (
        "def f(x: torch.Tensor, heat: torch.Tensor):\n    found = heat.eq(1).float().sum().item()\n"
        "    return x.sum() / max(found, 1)\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "found = heat.eq(1).float().sum()\n" in after
    called = code.replace("heat.eq(1).float().sum()", "torch.sum(heat > 0).float()")
    assert "found = torch.sum(heat > 0).float()\n" in fixed(HEAD + called, allowed=FIXES)
    assert ".detach()" in fixed(HEAD + code.replace("heat.eq(1)", "heat.exp()"), allowed=FIXES)


def test_a_read_is_not_kept_for_another_that_few_steps_make() -> None:
    code = (
        "def train(loader, model, optimizer, show, log):\n    for step, batch in enumerate(loader):\n"
        "        loss = model(batch).mean()\n        loss.backward()\n        optimizer.step()\n"
        "        show(loss.item())\n        if step % 100 == 0:\n            log(loss.item())\n"
    )
    assert not any(f.fix and f.fix.rewrite == "read_once" for f in findings(HEAD + code, "host-read"))
    often = code.replace("if step % 100 == 0", "if log is not None")
    assert any(f.fix and f.fix.rewrite == "read_once" for f in findings(HEAD + often, "host-read"))


@pytest.mark.parametrize(("slow", "count"), [("d, 2", 0), ("d, 2, batch_first=True", 1)])
def test_layers_that_each_branch_makes_without_a_fast_path_are_not_asked_for_their_mask(slow: str, count: int) -> None:
    code = (
        f"{HEAD}class Net(torch.nn.Module):\n    def __init__(self, d, wide):\n        super().__init__()\n        if wide:\n"
        f"            layer = torch.nn.TransformerEncoderLayer({slow})\n        else:\n"
        "            layer = torch.nn.TransformerEncoderLayer(d, 2)\n"
        "        self.encoder = torch.nn.TransformerEncoder(layer, 2)\n"
        "\n    def forward(self, x: torch.Tensor, pad: torch.BoolTensor):\n"
        "        return self.encoder(x, src_key_padding_mask=pad)\n"
    )
    assert len(findings(code, "transformer-mask-check")) == count


def test_a_mask_before_slices_of_everything_is_looked_for_once_whatever_its_dimensions() -> None:
    code = (
        "def f(x: torch.Tensor, y: torch.Tensor):\n    inside = (x >= 0) & (x <= 1)\n"
        "    return torch.dist(x[inside], y[inside, :].cumsum(0))\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "inside_index = inside.nonzero(as_tuple=True)\n" in after
    assert "torch.dist(x[inside_index], y[inside_index].cumsum(0))" in after


def test_a_dict_that_a_call_gives_is_asked_for_once() -> None:
    code = (
        "def train(loader, model, optimizer, share, log):\n    for batch in loader:\n        losses = model(batch)\n"
        "        sum(losses.values()).backward()\n        optimizer.step()\n"
        "        log({k: v.item() for k, v in share(losses).items()})\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "        values = share(losses)\n        log(dict(zip(values, " in after


def test_anomaly_detection_that_a_file_switches_on_is_on_in_every_step() -> None:
    code = "torch.autograd.set_detect_anomaly(True)\n"
    assert [f.hot for f in findings(HEAD + code, "anomaly-detection")] == [True]
    asked = f"import sys\n\nif '--debug' in sys.argv:\n    {code}"
    assert [f.hot for f in findings(HEAD + asked, "anomaly-detection")] == [False]


@pytest.mark.parametrize(("made", "rewrite"), [("torch.optim.Adam", "fuse_optimizer"), ("torch.optim.RMSprop", None)])
def test_a_scaler_is_told_of_where_its_optimizer_could_be_fused(made: str, rewrite: str | None) -> None:
    code = (
        f"def train(loader, model, criterion):\n    optimizer, scaler = None, torch.amp.GradScaler()\n"
        f"    optimizer = {made}(model.parameters())\n    for x, y in loader:\n        loss = criterion(model(x), y)\n"
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n"
    )
    found = [f for f in findings(HEAD + code, "grad-scaler") if f.fix is not None]
    assert [f.fix.rewrite for f in found] == ([rewrite] if rewrite else [])
    assert all(f.hot and not f.short for f in found)


@pytest.mark.parametrize(
    ("comment", "meant"),
    [
        ("force a sync, so that the clock is right", True),
        ("wait for the kernels", True),
        ("CUDA sync, for honest timing", True),
        ("sync", True),
        ("WAIT 2 (per parameter!)", False),
        ("GPU sync every step", False),
        ("waits for the device", False),
        ("TODO: this syncs, remove it", False),
        ("does not wait", False),
        ("the mean of all", False),
        ("syncscope: the same twice", False),
    ],
)
def test_no_command_takes_away_a_wait_that_a_comment_wants(comment: str, meant: bool) -> None:
    code = "def f(x: torch.Tensor, log):\n    loss = x.mean()\n    log(loss.item()){}\n    {}log(loss.item())\n"
    for written in (code.format(f"  # {comment}", ""), code.format("", f"# {comment}\n    ")):
        fixes = [f.fix for f in findings(HEAD + written, "host-read") if f.fix is not None]
        said = f'the comment "{shorten(comment, 40, placeholder=" ...")}" here says that the wait is meant'
        assert {fix.safety is Safety.SUGGEST and said in fix.changes for fix in fixes} == {meant}


GRAPHS = """from torch_geometric.nn import global_add_pool


class Net(torch.nn.Module):
    def forward(
        self,
        x,
        batch,
    ):
        return global_add_pool(x, batch)


def train(loader, device):
    model = Net().to(device)
    for data in loader:
        model(data.x, data.batch).mean().backward()
"""


def test_a_model_is_told_how_many_graphs_there_are_by_the_loop_that_knows() -> None:
    after = fixed(HEAD + GRAPHS, allowed=FIXES)
    assert "        batch,\n        batch_size=None,\n    ):" in after
    assert "global_add_pool(x, batch, size=batch_size)" in after
    assert "model(data.x, data.batch, batch_size=data.num_graphs)" in after
    assert "size=" not in fixed(
        HEAD + GRAPHS.replace("model(data.x, data.batch)", "model(data.x, data.rows)"), allowed=FIXES
    )
    assert "size=num_graphs)" in fixed(
        HEAD + GRAPHS.replace("batch,\n    )", "batch,\n        num_graphs,\n    )"), allowed=FIXES
    )
    told = GRAPHS.replace("global_add_pool(x, batch)", "global_add_pool(x, batch, 8)")
    assert not findings(HEAD + told, "hidden-read")


def test_what_a_comment_says_is_scripted_is_written_so_that_it_can_be() -> None:
    code = (
        "def f(species: torch.LongTensor, names: dict[int, str]):\n    # {}\n    out = []\n    for x in species:\n"
        "        out.append(names[x.item()])\n    return out\n"
    )
    assert "species.tolist()" in fixed(HEAD + code.format("in their order"), allowed=FIXES)
    assert "tolist" not in fixed(HEAD + code.format("no comprehension, so that jit can compile it"), allowed=FIXES)


@pytest.mark.parametrize(
    ("loop", "gathered"),
    [
        ("torch.stack([x[row] for row in rows])", "x[rows]"),
        ("torch.stack([x[row] for row in rows], dim=0)", "x[rows]"),
        ("torch.stack([x[row] for row in rows], dim=1)", ""),
        ("torch.stack([x[row] * 2 for row in rows])", ""),
        ("torch.stack([x[row] for row in rows if len(x)])", ""),
    ],
)
def test_rows_that_are_taken_one_by_one_and_stacked_are_gathered(loop: str, gathered: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, scores: torch.Tensor):\n    rows = scores.argmax(1).flatten()\n    return {loop}\n"
    after = fixed(code, "tensor-as-index")
    assert (f"    return {gathered}\n" in after) == bool(gathered)


def test_a_row_is_not_gathered_on_the_device_where_the_host_reads_it_anyway() -> None:
    code = (
        "def f(counts: torch.Tensor, scores: torch.Tensor):\n    best = scores.argmax()\n"
        "    if counts[best] == 3:\n        return counts\n    return counts[best]\n"
    )
    after = fixed(HEAD + code, "tensor-as-index")
    assert "if counts[best] == 3:" in after
    assert "return counts[best[None]][0]" in after


def test_the_positions_of_a_mask_that_is_called_an_index_have_a_name_of_their_own() -> None:
    code = (
        "def after_forward(x: torch.Tensor, y: torch.Tensor):\n    sub_index = x.sum(1) > 0\n"
        "    return x[sub_index].cumsum(0), y[sub_index].cumsum(0)\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "sub_positions = sub_index.nonzero(as_tuple=True)" in after


def test_anomaly_detection_is_taken_out_where_it_is_a_statement() -> None:
    code = f"{HEAD}torch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
    assert fixed(code, "anomaly-detection", allowed=FIXES) == code.replace(
        "torch.autograd.set_detect_anomaly(True)\n", ""
    )


@pytest.mark.parametrize(("taken", "rewrite"), [("[:, self.a]", "register_buffer"), ("[self.a, abs(self.b)]", None)])
def test_an_index_beside_one_that_is_sent_all_the_same_is_made_no_buffer(taken: str, rewrite: str | None) -> None:
    code = (
        f"{HEAD}class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = torch.arange(3).flip(0)\n        self.b = torch.arange(3).flip(0)\n\n"
        f"    def forward(self, x: torch.Tensor):\n        x = x.cuda()\n        return x{taken}\n"
    )
    fixes = {f.fix.rewrite for f in findings(code, "host-tensor-as-index") if f.fix is not None}
    assert ("register_buffer" in fixes) == (rewrite is not None)


@pytest.mark.parametrize(("sent", "safety"), [("x", Safety.UNSAFE), ("self.memory[:8]", Safety.SUGGEST)])
def test_what_an_object_keeps_is_not_taken_for_what_a_loader_pins(sent: str, safety: Safety) -> None:
    code = (
        f"{HEAD}class Replay:\n    def __init__(self, n):\n        self.memory = torch.zeros(n, 3)\n\n"
        "    def train(self, model, data):\n        loader = DataLoader(data, pin_memory=True)\n"
        "        for x, y in loader:\n            old = self.memory[:8]\n"
        f"            old = {sent}\n            old = old.to(self.device)\n            model(old).sum().backward()\n"
    )
    fixes = [f.fix for f in findings(code, "blocking-upload") if f.fix is not None]
    assert {fix.safety for fix in fixes} <= {safety}


@pytest.mark.parametrize(
    ("made", "filled"),
    [
        ("torch.tensor([1], device=x.device)", "torch.ones(1, device=x.device, dtype=torch.long)"),
        ("torch.tensor(0, device=x.device)", "torch.zeros((), device=x.device, dtype=torch.long)"),
        ("torch.tensor(True, device=x.device)", "torch.ones((), device=x.device, dtype=torch.bool)"),
        ("torch.tensor([0.0], device=x.device)", "torch.zeros(1, device=x.device)"),
        ("torch.tensor([1.0] * len(x), device=x.device)", "torch.ones(len(x), device=x.device)"),
        ("torch.tensor([0] * len(x)).to(x.device)", "torch.zeros(len(x), device=x.device, dtype=torch.long)"),
        ("torch.tensor(2, device=x.device)", "torch.full((), 2, device=x.device)"),
        ("x.new_tensor([0.0, 0.0])", "x.new_zeros(2)"),
    ],
)
def test_zeros_and_ones_are_made_as_people_make_them(made: str, filled: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor):\n    return x, {made}\n"
    after = fixed(code, allowed=FIXES)
    assert f"    return x, {filled}\n" in after
    torch = pytest.importorskip("torch")
    x = torch.rand(3)
    one, other = (eval(text, {"torch": torch, "x": x}) for text in (made, filled))
    assert (one.dtype, one.shape, one.tolist()) == (other.dtype, other.shape, other.tolist())


@pytest.mark.parametrize("cut", ["z.detach()", "z.data"])
def test_what_keeps_a_gradient_back_is_not_chosen_on_the_device(cut: str) -> None:
    """A gradient of zeros is another one than none: an optimizer with momentum goes on moving what was frozen."""
    code = (
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("warm", torch.tensor(False))\n\n    def forward(self, x: torch.Tensor):\n'
        f"        z = x.exp()\n        if self.warm:\n            z = {cut}\n        return z\n"
    )
    assert "torch.where(" not in fixed(HEAD + code, allowed=FIXES)
    assert "torch.where(" in fixed(HEAD + code.replace(cut, "z.sin()"), allowed=FIXES)


def test_what_is_turned_round_is_taken_by_a_slice_first() -> None:
    """The first two of many are swapped, and a new dimension is none of the tensor's."""
    code = (
        "def swapped(logits: torch.Tensor):\n    logits = logits.exp()\n"
        "    logits[:, [0, 1]] = logits[:, [1, 0]]\n    return logits[None, [1, 0]]\n"
    )
    after = fixed(HEAD + code, allowed=FIXES)
    assert "logits[:, :2] = logits[:, :2].flip(1)\n    return logits[None, :2].flip(1)\n" in after


def test_a_filled_tensor_that_needs_its_gradient_is_none_of_torchscript() -> None:
    code = (
        "def forward(x: torch.Tensor, training: bool):\n"
        "    return x + torch.tensor([0.0], device=x.device, requires_grad=training)\n"
    )
    assert fixed(HEAD + code, allowed={Safety.SAFE}) == HEAD + code
    (fix,) = {f.fix for f in findings(HEAD + code) if f.fix is not None}
    assert "TorchScript" in fix.changes
    said = code.replace("requires_grad=training", "requires_grad=False")
    assert "x + torch.zeros(1, device=x.device)\n" in fixed(HEAD + said, allowed={Safety.SAFE})


@pytest.mark.parametrize(("number", "safe"), [("torch.pi / 2", True), ("2 * torch.pi", True), ("torch.pi / n", False)])
def test_a_part_of_pi_is_a_number_that_everything_holds(number: str, safe: bool) -> None:
    code = f"def f(x: torch.Tensor, n: int):\n    return torch.maximum(x, torch.tensor({number}, device=x.device))\n"
    assert (f"torch.full((), {number}, device=x.device)" in fixed(HEAD + code, allowed={Safety.SAFE})) is safe
