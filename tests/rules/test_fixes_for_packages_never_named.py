"""What packages that nobody had looked at write, and what is written instead: each a class of waits that had no fix."""

from pathlib import Path

import pytest
from rules.driver import FIXES, HEAD, config, findings, fixed

from syncscope.linter.config import Config
from syncscope.linter.engine import check, check_file
from syncscope.model.finding import Safety


@pytest.mark.parametrize(
    ("call", "instead", "told"),
    [
        ("torch.normal(mean, std)", "mean + std * torch.randn_like(mean + std)", "negative"),
        ("torch.normal(0.0, std)", "std * torch.randn_like(std)", "negative"),
        ("torch.normal(mean=torch.zeros_like(std), std=std * 2)", "(std * 2) * torch.randn_like(std * 2)", "negative"),
        ("torch.normal(torch.zeros_like(std), torch.ones_like(std) * 3)", "3 * torch.randn_like(std)", "negative"),
        ("torch.normal(mean, std, generator=other)", None, ""),
        ("torch.normal(mean, 2.0)", None, ""),
    ],
)
def test_noise_of_which_nobody_asks_whether_it_is_negative(call: str, instead: str | None, told: str) -> None:
    torch = pytest.importorskip("torch")
    head = (
        f"{HEAD}def f(mean: torch.Tensor, std: torch.Tensor, other=None):\n    with torch.no_grad():\n        return "
    )
    code = f"{head}{call}\n"
    after = fixed(code, "hidden-read", allowed=FIXES)
    assert after == (code if instead is None else code.replace(call, instead))
    fixes = [f.fix for f in findings(code, "hidden-read") if f.fix is not None]
    assert all(told in fix.changes and "negative deviation" in fix.changes for fix in fixes)
    made = []
    for text in (code, after):  # the same numbers, bit for bit
        space: dict[str, object] = {}
        exec(text, space)
        torch.manual_seed(3)
        made.append(space["f"](torch.linspace(-1, 1, 7), torch.linspace(0, 2, 7)))  # type: ignore[operator]
    assert torch.equal(*made)


def test_noise_that_gradients_would_go_through_is_left_to_people() -> None:
    code = f"{HEAD}def f(mean: torch.Tensor, std: torch.Tensor):\n    return torch.normal(mean, std)\n"
    assert fixed(code, "hidden-read", allowed=FIXES) == code


def test_noise_of_rows_that_share_their_deviation_is_drawn_for_each() -> None:
    torch = pytest.importorskip("torch")
    head = f"{HEAD}def f(mean: torch.Tensor, std: torch.Tensor):\n    with torch.no_grad():\n        return "
    code = f"{head}torch.normal(mean.expand(3, 2), std)\n"
    drawn = []
    for text in (code, fixed(code, "hidden-read", allowed=FIXES)):
        space: dict[str, object] = {}
        exec(text, space)
        torch.manual_seed(3)
        drawn.append(space["f"](torch.zeros(2), torch.ones(2)))  # type: ignore[operator]
    assert drawn[1].unique().numel() == 6
    assert torch.equal(*drawn)


COMPARED = """
import torch

def accuracy(logits: torch.Tensor, label, ignored: int):
    best = logits.argmax(1)
    valid = label != ignored
    return {}
"""


@pytest.mark.parametrize(
    "whole", ["(best[valid] == label[valid]).float().mean()", "(label[valid] == best[valid]).sum()"]
)
def test_no_comprehension_takes_labels_for_fractions(whole: str) -> None:
    fixes = [f.fix for f in findings(COMPARED.format(whole), "boolean-mask-read") if f.fix is not None]
    assert all("comprehension" not in e.text for fix in fixes for one in (fix, fix.also) if one for e in one.edits)
    known = COMPARED.replace("label, ignored", "label: torch.LongTensor, ignored").format(whole)
    also = [fix.also or fix for f in findings(known, "boolean-mask-read") if (fix := f.fix) is not None]
    assert any("int(N) label" in e.text for fix in also for e in fix.edits)
    assert any("your code then imports syncscope" in fix.changes for fix in also)


LOADED = """
import torch
from torch.utils.data import DataLoader


class Trainer:
    def train(self, model, data, optimizer):
        loader = DataLoader(data, batch_size=8)
        for batch in loader:
            inputs = self._place(batch)
            model(**inputs).backward()
            optimizer.step()

    def test(self, model, data):
        held_out = DataLoader(data, batch_size=8)
        for batch in held_out:
            inputs = self._place(batch)
            model(**inputs)

    def _place(self, batch):
        inputs = {name: value.to(self.device) for name, value in batch.items()}
        return inputs
"""


def test_a_batch_that_a_method_places_is_pinned_by_the_loaders_of_its_callers() -> None:
    found = [f.fix for f in check("x.py", LOADED.encode(), Config()).findings if f.rule == "blocking-upload"]
    assert found
    assert {fix.safety for fix in found if fix} == {Safety.UNSAFE}
    after = fixed(LOADED, "blocking-upload", allowed=FIXES)
    assert after.count("DataLoader(data, batch_size=8, pin_memory=torch.cuda.is_available())") == 2
    assert after.count("to(self.device, non_blocking=True)") == 1
    other = LOADED.replace("        for batch in held_out:\n", "        for batch in data.rows():\n")
    assert "pin_memory" not in fixed(other, "blocking-upload", allowed=FIXES)


KEPT = """
import torch


class Adapter(torch.nn.Module):
    base = None

    def kept(self) -> torch.Tensor:
        weight = self.linear.weight
        if self.base is None:
            self.base = weight.data.detach().clone().cpu()
        return self.base.to(device=weight.device)

    def forward(self, x: torch.Tensor):
        return x * self.kept()
"""


def test_what_a_method_moves_of_its_own_object_is_of_no_loader() -> None:
    assert any(f.rule == "blocking-upload" for f in check("x.py", KEPT.encode(), Config()).findings)


@pytest.mark.parametrize(("said", "safety"), [("pin_memory=True", Safety.UNSAFE), ("pin_memory=False", None)])
def test_a_batch_is_pinned_where_another_file_of_the_project_says_so(
    said: str, safety: Safety | None, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "data.py").write_text(
        f"from torch.utils.data import DataLoader\n\n\ndef make(data):\n    return DataLoader(data, {said})\n"
    )
    step = "def train(model, loader, optimizer, device):\n    for image, mask in loader:\n        image = image.to(device)\n"
    step += "        model(image).mean().backward()\n        optimizer.step()\n"
    (tmp_path / "train.py").write_text(HEAD + step)
    fixes = [f.fix for f in check_file(str(tmp_path / "train.py"), config()).findings if f.rule == "blocking-upload"]
    made = {fix.safety for fix in fixes if fix is not None} - {Safety.SUGGEST}
    assert made == ({safety} if safety else set())


CRITERION = """
import torch

class Criterion(torch.nn.Module):
    def loss_boxes(self, outputs, indices, num_boxes):
        return {"bbox": outputs.abs().sum() / num_boxes{more}}

    def forward(self, outputs: torch.Tensor, indices, count: torch.Tensor):
        num_boxes = torch.clamp(count / world(), min=1).item()
        losses = self.loss_boxes(outputs, indices, num_boxes)
        losses.update(self.loss_boxes(outputs * 2, indices, num_boxes=num_boxes))
        return losses
"""


@pytest.mark.parametrize(
    ("more", "safety"),
    [
        ("", Safety.UNSAFE),
        (', "dice": dice_loss(outputs, num_boxes)', Safety.SUGGEST),
        (', "count": int(num_boxes)', None),
        (', "none": 0 if num_boxes > 1 else 1', None),
    ],
)
def test_what_methods_only_divide_by_stays_a_tensor(more: str, safety: Safety | None) -> None:
    code = CRITERION.replace("{more}", more)
    fixes = [f.fix for f in findings(code, "host-read") if f.fix is not None and f.fix.rewrite == "divide_by_tensor"]
    assert [fix.safety for fix in fixes] == ([safety] if safety else [])
    assert all(".squeeze()" in fix.edits[0].text for fix in fixes)


def test_the_number_of_all_boxes_is_filled_in_on_the_device() -> None:
    code = (
        f"{HEAD}def f(targets, x: torch.Tensor):\n    num_boxes = sum(len(t['labels']) for t in targets)\n"
        "    return torch.as_tensor([num_boxes], dtype=torch.float, device=x.device)\n"
    )
    assert "torch.full((1,), num_boxes, dtype=torch.float, device=x.device)" in fixed(code, allowed=FIXES)
    other = code.replace("sum(len(t['labels']) for t in targets)", "sum(targets)")
    assert fixed(other, allowed=FIXES) == other


def test_the_item_of_a_view_of_qt_is_no_number_of_a_tensor() -> None:
    code = "import torch\n\n\ndef show(self, loss):\n    self.menu.model().item(3).setEnabled(False)\n    return loss.item()\n"
    assert [f.place.line for f in findings(code, "host-read")] == [6]


ROLLOUT = """
import torch

if __name__ == "__main__":
    for update in range(args.updates):
        for step in range(args.steps):
            with torch.no_grad():
                q = network(obs.cuda())
            {}
        loss = criterion(q, target)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "acts",
    [
        "obs, reward, done, info = envs.step(q.argmax(1).cpu().numpy())",
        "actions = torch.argmax(q, dim=1).cpu().numpy()\n            obs, reward, done, info = envs.step(actions)",
    ],
)
def test_what_an_environment_is_told_is_needed_on_the_host_in_a_script_too(acts: str) -> None:
    checked = check("train.py", ROLLOUT.format(acts).encode(), Config())
    assert any("environment" in f.heat.words for f in checked.also if f.rule == "host-copy")
    assert not any(f.rule == "host-copy" for f in checked.findings)


@pytest.mark.parametrize(
    ("uploaded", "told"), [("torch.Tensor(obs).cuda()", True), ("torch.Tensor(table).cuda()", False)]
)
def test_what_an_environment_has_just_given_finds_nothing_in_flight(uploaded: str, told: bool) -> None:
    acts = f"obs, reward, done, info = envs.step(q.argmax(1).cpu().numpy())\n            x = {uploaded}"
    checked = check("train.py", ROLLOUT.format(acts).encode(), Config())
    short = [
        f for f in checked.also if f.rule == "created-on-host" and "an environment on the host gave" in f.heat.words
    ]
    assert bool(short) == told
    assert any(f.rule == "created-on-host" for f in checked.findings) != told


def test_what_waits_beside_what_stays_is_told_in_a_line() -> None:
    code = (
        f"{HEAD}class Net(torch.nn.Module):\n    def training_step(self, x: torch.Tensor, n: int):\n"
        "        drawn = torch.distributions.MultivariateNormal(torch.zeros(n).to(x.device), torch.eye(n).to(x.device))\n"
        "        return drawn.log_prob(x)\n"
    )
    checked = check("x.py", code.encode(), Config())
    assert not any(f.rule == "created-on-host" for f in checked.findings)
    assert any("same statement waits for something else" in f.heat.words for f in checked.also)


NORM = """
import torch

def get_grad_norm(parameters, norm_type: float = 2.0):
    total_norm = 0
    for p in parameters:
        param_norm = p.grad.data.norm(norm_type)
        total_norm += param_norm.item() ** norm_type
    total_norm = total_norm ** (1.0 / norm_type)
    return total_norm
"""


def test_the_norm_of_all_gradients_is_read_once() -> None:
    torch = pytest.importorskip("torch")
    after = fixed(NORM, "host-read", allowed=FIXES)
    assert (
        "        total_norm += param_norm.detach().float() ** norm_type\n    total_norm = float(total_norm)\n" in after
    )
    layers = [torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)]
    torch.nn.Sequential(*layers)(torch.randn(5, 3)).sum().backward()
    made = []
    for text in (NORM, after):
        space: dict[str, object] = {}
        exec(text, space)
        made.append(space["get_grad_norm"](p for layer in layers for p in layer.parameters()))  # type: ignore[operator]
    assert made[0] == pytest.approx(made[1], rel=4 * torch.finfo(torch.float32).eps), (
        "one rounding for each of four norms"
    )
    assert isinstance(made[1], float)


def test_meters_read_all_that_they_are_given_at_once() -> None:
    torch = pytest.importorskip("torch")
    code = (
        "import torch\n\n\nclass Meters:\n    def update(self, **kwargs):\n        for k, v in kwargs.items():\n"
        "            if isinstance(v, torch.Tensor):\n                v = v.item()\n            self.seen[k] = v\n"
    )
    after = fixed(code, "host-read", allowed=FIXES)
    assert "torch.hstack(tuple(tensors.values())).flatten().tolist()" in after
    space: dict[str, object] = {}
    exec(after, space)
    meters = space["Meters"]()  # type: ignore[operator]
    meters.seen = {}
    meters.update(loss=torch.tensor(0.5), lr=0.1, error=torch.tensor([2.0]))
    meters.update(steps=3)
    assert meters.seen == {"loss": 0.5, "lr": 0.1, "error": 2.0, "steps": 3}


@pytest.mark.parametrize(
    ("loop", "once"),
    [
        ("order = torch.randperm(8)\n        show(order)\n        a = x[order]\n        b = y[order]", True),
        (
            "order = torch.randperm(8)\n        show(order)\n        a = x[order]\n        b = y[order]\n        show(order)",
            False,
        ),
        ("show(order)\n        a = x[order]\n        b = y[order]", False),
    ],
)
def test_an_index_is_sent_once_where_nobody_needs_it_on_the_host_afterwards(loop: str, once: bool) -> None:
    code = (
        f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor, show):\n    x, y = x.cuda(), y.cuda()\n    order = torch.arange(8)\n"
        f"    show(order)\n    for _ in range(3):\n        {loop}\n    return a, b\n"
    )
    after = fixed(code, "host-tensor-as-index")
    assert ("        order = order.to(x.device, non_blocking=True)\n" in after) == once
    assert after.count("non_blocking=True") == (1 if once else 2) or "device=x.device" in after


def test_a_batch_whose_copy_is_written_by_its_own_name_is_copied_without_waiting() -> None:
    code = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef train(model, loader: DataLoader, opt, device):\n"
        "    for x, y in loader:\n        {} = y.to(device)\n        y[torch.rand(9, device=device) < 0.1] = 10\n"
        "        loss = model(x.to(device), there).mean()\n        loss.backward()\n        opt.step()\n"
    )
    here, beside = (fixed(code.format(name), "blocking-upload") for name in ("there = y", "there"))
    assert "there = y = y.to(device, non_blocking=True)" in here
    assert "there = y.to(device)\n" in beside
