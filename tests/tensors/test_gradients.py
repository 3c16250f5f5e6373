"""Backward passes wait where a selection that waits passes its gradient back: `# waits: backward` marks them."""

from pathlib import Path

import pytest
from tensors.marked import marks, waits

from syncscope.tensors.interpret import Project, sites

NETS = """
import torch.nn.functional as F

class Picking(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, mask: torch.Tensor):
        return self.fc(x)[mask > 0]  # waits: mask_read

class Plain(nn.Module):
    def forward(self, x, y):
        return x * y

def of_best(values: torch.Tensor, best, other):
    rows = torch.arange(best.shape[0])
    return F.mse_loss(values[rows, best], other)  # waits: index_host

class Trainer:
    def __init__(self):
        self.picking, self.plain = Picking(), Plain()
"""
CASES = {
    "of a model of the project": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        loss = self.picking(x, y).mean()
        loss.backward()  # waits: backward
        other = self.plain(x, y).mean()
        other.backward()
    """,
    "of a loss, scaled": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        out, total = self.plain(x, y), 0
        total += of_best(out, y, x)
        self.scaler.scale(total).backward()  # waits: backward
    """,
    "in the step itself, and by autograd.grad": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        keep = y > 0
        out = self.plain(x, y)
        loss = F.cross_entropy(out[keep], y[keep])  # waits: mask_read
        return torch.autograd.grad(loss, [x])  # waits: backward
    """,
    "of what is written under a mask": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        out = self.plain(x, y)
        out[y > 0] = x  # waits: mask_write
        out.mean().backward()  # waits: backward
        other = self.plain(x, y)
        other[y > 0] = 0.0
        other.mean().backward()
        filled = x.clone()
        filled[y > 0] = y  # waits: mask_write
        (self.plain(x, y) + 1).mean().backward()
    """,
    "without gradients, and detached": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        with torch.no_grad():
            teacher = self.picking(x, y)
        fixed = self.picking(x, y).detach()
        labels = y[y > 0]  # waits: mask_read
        loss = (self.plain(x, y) - teacher + fixed).mean() + F.l1_loss(self.plain(x, y), labels)
        loss.backward()
    """,
    "of what is trained on, which has none": """
    def step(self, batch, rows: torch.Tensor):
        kept = rows[rows[:, 0] > 0]  # waits: mask_read
        x = self.unpack(batch)
        loss = self.plain(kept, x).mean() + of_best(rows, rows, rows)
        loss.backward()

    def unpack(self, batch):
        return batch[batch.sum(1) > 0]  # waits: mask_read
    """,
    "one loss of several in a dict": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        losses = {}
        losses["a"], error = of_best(self.plain(x, y), y, x)
        losses["b"] = self.plain(x, y).mean()
        losses["a"].backward()  # waits: backward
        losses["b"].backward()
        self.accelerator.backward(sum(losses.values()))  # waits: backward
    """,
    "a mask that is left out": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        loss = self.reduced(self.plain(x, y))
        loss.backward()

    def reduced(self, x: torch.Tensor, mask: torch.Tensor | None = None):
        if mask is not None:
            x = x[mask > 0]  # waits: mask_read
        return x.mean()
    """,
    "a mask that is given": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        loss = self.averaged(self.plain(x, y), mask=y)
        loss.backward()  # waits: backward
        other = self.averaged(self.plain(x, y), None)
        other.backward()

    def averaged(self, x: torch.Tensor, mask: torch.Tensor | None = None):
        return self.reduced(x, mask)

    def reduced(self, x: torch.Tensor, mask: torch.Tensor | None = None):
        if mask is not None:
            x = x[mask > 0]  # waits: mask_read
        return x.mean()
    """,
    "of a module that is spread over devices, which picks where it is not trained": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        both = nn.DataParallel(Both()).cuda()  # waits: to_device
        loss = both(x, y).mean()
        loss.backward()
        spread = nn.DataParallel(Picking()).cuda()  # waits: to_device
        other = spread(x, y) + spread.module(x, y)
        other.mean().backward()  # waits: backward

class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        if self.training:
            return self.fc(x)
        else:
            return self.fc(x)[y > 0]  # waits: mask_read
    """,
    "what a list picks, which is sent once": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        out = self.plain(x, y)
        loss = -out[range(len(y)), y].mean()  # waits: index_list
        loss.backward()
    """,
    "one of several that a function gives": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        first, second, seen = self.both(x, y)
        whole, other = first, second
        whole.backward()  # waits: backward
        other.backward()
        return seen

    def both(self, x: torch.Tensor, y: torch.Tensor):
        out = self.plain(x, y)
        picked = out[torch.arange(len(y)), y]  # waits: index_host
        return picked.mean(), out.mean(), picked.detach()
    """,
    "what is checkpointed": """
    def step(self, x: torch.Tensor, y: torch.Tensor):
        out = torch.utils.checkpoint.checkpoint(self.picking, x, y)
        losses = []
        losses.append(out.mean())
        torch.stack(losses).sum().backward()  # waits: backward
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(NETS + code, confidence=2) == marks(NETS + code)


def test_it_says_which_gradient_it_is_also_of_another_file(tmp_path: Path) -> None:
    loss = "import torch\n\ndef loss(x: torch.Tensor, y: torch.Tensor):\n    return x[y > 0].mean()\n"
    step = "from losses import loss\nimport torch\n\ndef train(model, x: torch.Tensor, y):\n    loss(model(x), y).backward()\n"
    (tmp_path / "losses.py").write_text(loss)
    (tmp_path / "train.py").write_text(step)
    (found,) = sites(step.encode(), str(tmp_path / "train.py"), Project((tmp_path,)))
    assert found.op == "backward"
    assert found.fact.why == ("the gradient of `x[y > 0]` in `loss`, losses.py, line 4, looks for the positions again",)
