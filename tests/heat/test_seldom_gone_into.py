"""What stands where nobody comes, or seldom: dead arms, what is kept until it changes, probes, loops that somebody watches."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

SOURCE = """import time
import cv2
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor, targets=None, size=3):
        if False:
            self.a = x.min().item()  # never
        if not False:
            self.b = x.max().item()  # hot
        if self.onnx_trace:
            self.c = x.sum().item()  # cold
        if torch.jit.is_tracing():
            self.d = x.std().item()  # cold
        if getattr(self, "size", None) != size:
            self.size = size
            self.e = x.var().item()  # cold
        if self.kept.get("device") != x.device:
            self.kept["device"] = x.device
            self.f = x.norm().item()  # cold
        if self.last_step != self.step:
            self.last_step = self.step
            self.g = x.amin().item()  # hot
        if self.size != size:
            self.h = x.amax().item()  # hot
        if self.loss_scale == 0:
            return x.sin().sum().item()  # cold
        if targets is not None:
            self.i = x.mean().item()  # hot
        else:
            self.j = x.abs().sum().item()  # cold
        return x


def works(x: torch.Tensor):
    try:
        _ = x.exp().sum().item()  # cold
    except RuntimeError:
        return False
    try:
        total = x.log().sum().item()  # hot
    except RuntimeError:
        return False
    return total


def played(policy, env, x: torch.Tensor):
    while True:
        x = policy(env.step(x.argmax().item()))  # cold
        env.render()


def drawn(net, frames, x: torch.Tensor):
    for frame in frames:
        x = net(x).relu()
        cv2.imshow("depth", x.max().item())  # cold
    for frame in frames:
        time.sleep(x.min().item())  # cold


def asked(net, x: torch.Tensor):
    while True:
        x = net(x, input("next: ")).relu()
        print(x.max().item())  # cold


def similarities(net, data_loader):
    best = 0
    for x in data_loader:
        best = max(best, net(x.cuda()).max().item())  # cold
    return torch.tensor(best).cuda().exp().item()  # cold


def run_epoch(net, data_loader, optimizer):
    best = torch.zeros(1).cuda()
    for x in data_loader:
        best = net(x.cuda()).relu()
    return best.max().item()  # hot


def rolled_out(policy, env, x: torch.Tensor, show: bool):
    for _ in range(100):
        x = policy.render(x).relu()
        env.step(x.argmax().item())  # hot
        if show:
            env.render()


def train(net, env, optimizer, x: torch.Tensor):
    for _ in range(100):
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        env.note(loss.item())  # hot
        env.render()


def train_for_hours(net, optimizer, loader, every):
    last = time.time()
    stepped = 0
    for step, x in enumerate(loader):
        loss = net(x).sum()
        loss.backward()
        now = time.time()
        if step - stepped >= every:
            print(loss.exp().item())  # hot
            stepped = step
        if net.first and now - last > every:
            print(loss.item())  # cold
            last = now
        if time.time() > net.last_time + every:
            print(loss.sin().item())  # cold
            net.last_time = time.time()
        if now - last > every:
            print(loss.cos().item())  # hot
"""


def test_what_is_seldom_gone_into_is_cold() -> None:
    rows = enumerate(SOURCE.splitlines(), 1)
    assert heat(SOURCE.encode(), "net.py") == {
        n: row.rpartition("# ")[2] for n, row in rows if row.endswith(("# hot", "# cold"))
    }


@pytest.mark.parametrize(("folder", "told"), [("tests/integration", "cold"), ("attests/integration", "hot")])
def test_a_folder_in_those_of_the_tests_is_of_them(tmp_path: Path, folder: str, told: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / folder / "step.py"
    path.parent.mkdir(parents=True)
    path.write_text("import torch\n\ndef forward(x: torch.Tensor):\n    return x.sum().item()\n")
    assert heat(path.read_bytes(), str(path)) == {4: told}


FORMS = b"""
import torch

def training_step(model, batch, other):
    try:
        (users, items), scores = batch
        print(model(users).sum().item())  # hot
    except (AttributeError, ValueError):
        users, items, scores = batch
        print(model(items).sum().item())  # hot
    try:
        first, second = other
    except ValueError:
        first = model(other)
        print(first.sum().item())  # cold
    try:
        first, second = other
    except RuntimeError:
        first, second = other
        print(model(first).sum().item())  # cold
"""


def test_what_takes_a_batch_apart_in_another_form_runs_where_the_batch_has_that() -> None:
    lines = enumerate(FORMS.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(FORMS, "train.py") == marks
