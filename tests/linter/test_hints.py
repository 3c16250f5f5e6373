"""What asks for more than its edits is told in words; a fix says what it gains, and is none where that is nothing."""

import json

import pytest

CHECKED = """\
import torch


def training_step(model, x: torch.Tensor, stats: list):
    loss = model(x).float().mean()
    if torch.isnan(loss).any():
        raise RuntimeError("the loss is no number")
    return loss
"""
BOTH = """\
import torch


def training_step(x: torch.Tensor, rows: int):
    first = torch.zeros(rows).to(x.device)
    y = x + 1
    second = torch.zeros(3).to(y.device)
    return y, first, second
"""
FOLLOWED = """\
import torch


def training_step(x: torch.Tensor):
    none = torch.zeros(3).to(x.device)
    return none, torch.unique(x)
"""


def test_what_is_made_by_hand_is_told_in_words_and_shown_with_all(door):
    door.write("step.py", CHECKED)
    told = door("lint", "step.py").out
    assert (
        "= by hand (--all --diff shows it): let the device check: the error is a RuntimeError that comes later" in told
    )
    (found,) = json.loads(door("lint", "step.py", "--format", "json").out)
    assert found["fix"] is None
    assert found["by_hand"]["title"] == "let the device check"
    (found,) = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert found["fix"]["safety"] == "suggest"
    assert "by_hand" not in found


@pytest.mark.parametrize("between", ["x + 1", "x @ x.mT"])
def test_what_a_function_makes_on_the_host_is_mended_as_one(door, between):
    door.write("step.py", BOTH.replace("x + 1", between))
    first, second = json.loads(door("lint", "step.py", "--format", "json").out)
    assert first["fix"] == second["fix"]
    assert len(first["fix"]["edits"]) == 2
    assert first["fix"]["gains"] == "saves 2 waits in each step"


def test_a_fix_beside_a_wait_that_stays_is_no_fix_whatever_it_changes(door):
    door.write("step.py", FOLLOWED)
    ran = door("lint", "step.py")
    assert "step.py:5:12: also waits in a step" in ran.out
    assert "6 waits right after, and stays" in ran.out
    assert [line for _, line, _ in ran.lines] == [6]


TWO_ARMS = """kept = x > 0
    y = (x * 2)[kept]
    if self.twice:
        y = y + (x * 3)[kept] + (x * 4)[kept]
    else:
        y = y - (x * 5)[kept]
    return y + (x * 6)[kept] + (x * 7)[kept]"""


@pytest.mark.parametrize(
    ("body", "gains"),
    [
        ("return x + torch.zeros(3).to(x.device)", "saves a wait in each step"),
        (
            "kept = x > 0\n    y = (x * 2)[kept], (x * 3)[kept], (x * 4)[kept]\n    return *y, (x * 5)[kept], (x * 6)[kept]",
            "saves 4 of 5 waits in each step",
        ),
        (TWO_ARMS, "saves 4 of 5 waits in each step"),
        (
            "for part in self.parts:\n        x = part(x) + torch.zeros(3).to(x.device)\n    return x",
            "saves a wait on each pass of the loop",
        ),
        (
            "losses = []\n    for part in self.parts:\n        losses.append(part(x).mean().item())\n    return losses",
            "waits once, not on each pass of the loop",
        ),
    ],
)
def test_a_fix_says_how_many_waits_go_and_how_often(door, body, gains):
    door.write("step.py", f"import torch\n\n\ndef training_step(self, x: torch.Tensor):\n    {body}\n")
    fixes = [found["fix"] for found in json.loads(door("lint", "step.py", "--format", "json").out) if found["fix"]]
    assert {fix["gains"] for fix in fixes} == {gains}
    assert f": {gains}" in door("lint", "step.py").out


def test_a_transformer_that_looks_into_its_mask_is_told_which_argument_says_what_it_is(door):
    door.write(
        "writer.py",
        """
        import torch
        from torch import nn

        class Writer(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Transformer(8, 2)
                self.reader = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2)

            def forward(self, x: torch.Tensor, seen: torch.Tensor):
                x = self.body(x, x, seen)
                x = self.body(x, x, tgt_mask=seen)
                return self.reader(x, seen)
        """,
    )
    out = door("lint", "writer.py", "--all", "--format", "concise").out
    flags = ("src_is_causal", "tgt_is_causal", "is_causal")
    told = [
        out.find(f"looks whether its mask `seen` is causal, and waits for the answer: say `{flag}=True`")
        for flag in flags
    ]
    assert told == sorted(told)
    assert told[0] >= 0


COLD = """\
import torch


def validate(model, loader, rows: int, device):
    losses = []
    for x in loader:
        none = torch.zeros(rows).to(device)
        losses.append((model(x.to(device)).mean() + none.sum()).item())
    return losses


def training_step(x: torch.Tensor):
    kept = x > 0
    return (x * 2)[kept].sum() + (x * 3)[kept].sum() + torch.unique(x).sum()
"""


def test_what_no_step_gains_by_is_shown_with_all_and_made_by_nobody(door):
    door.write("step.py", COLD)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    offered = [f["fix"] for f in found if f["fix"]]
    assert offered
    assert {fix["by_hand"].partition(":")[0] for fix in offered} == {"no step gains by it", "a step gains little by it"}
    door("lint", "--all", "--fix", "--unsafe-fixes", "step.py")
    assert (door.folder / "step.py").read_text() == COLD


def test_what_a_step_gains_little_by_is_no_fix_unless_all_is_asked_for(door):
    body = "kept = x > 0\n    return (x * 2)[kept] + (y * 3)[kept]"
    door.write("step.py", f"import torch\n\n\ndef loss(x: torch.Tensor, y: torch.Tensor):\n    {body}\n")
    found = json.loads(door("lint", "step.py", "--format", "json").out)
    assert [f["fix"] for f in found] == [None, None]
    needs = "a step gains little by it: the first wait for each mask stays, and others follow it"
    assert {(f["by_hand"]["title"], f["by_hand"]["needs"].partition(";")[0]) for f in found} == {
        ("look for the true elements of kept once, not 2 times", needs)
    }


def test_what_the_configuration_calls_hot_is_mended_there_too(door):
    door.write("step.py", COLD.replace("(model(x.to(device)).mean() + none.sum()).item()", "model(x) + none"))
    door.write("pyproject.toml", '[tool.syncscope.lint]\nhot = ["step.py:validate"]\n')
    found = json.loads(door("lint", "step.py", "--format", "json").out)
    assert ("created-on-host", "safe") in {(f["rule"], f["fix"]["safety"]) for f in found if f["fix"]}


PASSES = """\
import torch


def training_step(starts: torch.LongTensor, lengths: torch.Tensor, x: torch.Tensor, given: torch.Tensor | None):
    sums = []
    for i in range(3):
        start = int(starts[i].item())
        length = int(lengths.sum().item()) if given is not None else 3
        sums.append(x[start : start + length].sum())
    return torch.stack(sums)


def loss(x: torch.Tensor, y: torch.Tensor):
    kept = x > 0
    return (x * 2)[kept] + (y * 3)[kept]


def aux_loss(x: torch.Tensor, dead: torch.Tensor | None):
    if dead is None or (number := int(dead.sum())) == 0:
        return x.new_tensor(0.0)
    return x.topk(number).values.sum()
"""


def test_a_fix_after_which_its_place_waits_as_often_is_made_by_hand(door):
    door.write("step.py", PASSES)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    told = {f["line"]: f["fix"]["by_hand"] for f in found if f["fix"]}
    assert told == {
        7: "a step gains little by it: line 8 is read on each pass of the loop all the same",
        15: "a step gains little by it: the first wait for each mask stays, and others follow it",
        20: "a step gains little by it: line 19 waits beside it, and stays",
    }


def test_a_count_of_which_a_size_is_made_in_another_arm_is_not_kept_on_the_device(door):
    body = "if data.batch is not None:\n        rows = len(torch.unique(data.batch))\n    else:\n        rows = x.shape[0]\n"
    door.write(
        "step.py",
        f"import torch\n\n\ndef step(data, x: torch.Tensor):\n    {body}    return x.view((rows, -1)).sum()\n",
    )
    (found,) = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert (found["rule"], found["fix"]) == ("unique", None)


def test_of_two_numbers_that_are_noted_together_one_alone_is_no_gain(door):
    body = "loss = model(x).float().mean()\n    self.log_dict({'loss': loss.item(), 'aux': float(self.aux)}, prog_bar=True)\n"
    code = f"import torch\n\n\ndef training_step(self, model, x: torch.Tensor):\n    {body}    return loss\n"
    door.write("step.py", code)
    (found,) = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert found["fix"]["by_hand"] == "a step gains little by it: the same statement reads another number, too"
    door.write("step.py", code.replace(", 'aux': float(self.aux)", ""))
    (found,) = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert found["fix"]["safety"] == "unsafe"


IN_EACH_PASS = """\
import torch
from torch.nn import functional as F


def loss_of_classes(logits: torch.Tensor, y: torch.Tensor):
    total = torch.zeros((), device=logits.device)
    for c in range(10):
        mask = y == c
        if mask.any():
            total = total + F.cross_entropy(logits[mask], y[mask])
    return total / 10


def training_step(logits: torch.Tensor, y: torch.Tensor):
    return loss_of_classes(logits, y)
"""


def test_what_waits_many_times_in_a_step_is_mended_beside_a_wait_that_stays(door):
    door.write("step.py", IN_EACH_PASS)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert {(f["fix"]["title"], f["fix"]["safety"]) for f in found if f["fix"]} == {
        ("mark what is left out, and ignore it", "unsafe")
    }
    door.write("step.py", IN_EACH_PASS.replace("for c in range(10):", "if c := 1:"))
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    (told,) = {f["fix"]["by_hand"] for f in found if f["fix"]}
    assert told == "a step gains little by it: line 9 waits beside it, and stays"


CHECKED_FIRST = """\
import torch


def training_step(self, y: torch.Tensor):
    odd = torch.isnan(y)
    if odd.any() and self.strict:
        raise ValueError("no number")
    return y.new_tensor(0.0) + y.sum()
"""


def test_what_follows_a_check_that_is_only_mended_by_hand_gains_nothing(door):
    door.write("step.py", CHECKED_FIRST)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert {(f["rule"], "by_hand" in f["fix"]) for f in found if f["fix"] and f["fix"]["safety"] != "suggest"} == {
        ("tensor-literal-on-device", True)
    }
    door.write("step.py", CHECKED_FIRST.replace("odd.any() and self.strict", "self.strict"))
    (found,) = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    assert found["fix"]["safety"] == "safe"


BESIDE = """\
import torch
from megatron.core import mpu


def loss(logits: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, hit: torch.BoolTensor):
    logits[rows[hit], columns[hit]] = -1.0
    return logits.mean()


def forward(stopped: bool):
    flag = torch.tensor([1], device=torch.cuda.current_device())
    torch.distributed.all_reduce(flag, group=mpu.get_model_parallel_group())
    return bool(flag.item())


class Decoder:
    def __call__(self, x: torch.Tensor, out: dict):
        kept = [row.nonzero() for row in x]
        out["hyp"] = [row.tolist() for row in kept]
        out["prob"] = [row.mean().item() for row in x]
        return out

    def forward(self, x: torch.Tensor, out: dict):
        out["prob"] = [row.mean().item() for row in x]
        return self.model(x)
"""


def test_a_fix_beside_which_the_host_waits_all_the_same_is_made_by_hand(door):
    door.write("step.py", BESIDE)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    told = {(f["line"], f["fix"].get("by_hand", f["fix"]["safety"])) for f in found if f["fix"]}
    little = "a step gains little by it: "
    assert told == {
        (6, f"{little}its statement waits beside it"),
        (6, f"{little}the first wait for each mask stays, and others follow it"),
        (11, f"{little}line 13 waits beside it, and stays"),
        (20, f"{little}line 19 waits on each pass as well, and stays"),
        (24, "unsafe"),
    }


CALLED = """\
import textdistance
import torch


class Decoder:
    def __call__(self, x: torch.Tensor):
        return {"hyp": [row.tolist() for row in x.softmax(-1)]}


class Errors:
    @staticmethod
    def distance(hyp):
        return textdistance.levenshtein.distance(hyp["hyp"], [])

    @staticmethod
    def compute(hyp):
        return Errors.distance(hyp)


class Module:
    def __init__(self):
        self.decoder = Decoder()

    def training_step(self, x: torch.Tensor):
        hyp = self.decoder(self.model(x))
        self.log("errors", Errors.compute(hyp))
        return x.mean() * torch.tensor(0.5, device=x.device), hyp
"""


def test_an_object_of_the_project_that_is_called_waits_where_its_call_does(door):
    door.write("step.py", CALLED)
    found = json.loads(door("lint", "--all", "step.py", "--format", "json").out)
    (told,) = (f["fix"] for f in found if f["line"] == 27)
    assert told["by_hand"] == "a step gains little by it: line 7 waits beside it, and stays"


IN_A_STEP = """\
import torch


class Net(torch.nn.Module):
    def training_step(self, batch):
        a, b, c, d = self.model(batch)
"""


@pytest.mark.parametrize(
    ("body", "by_hand"),
    [
        ("self.keep(a.sum().item(), b.sum().item(), c.sum().item())", True),
        ("self.keep(a.sum().item(), b.sum().item(), c.sum().item(), d.sum().item())", False),
        ("self.keep(a[0].item(), a[1].item(), a[2].item())", False),  # one tensor, whose numbers nothing joins
        (
            "x = a.sum().item()\n        self.work(b)\n        self.keep(x, b.sum().item(), c.sum().item())",
            False,
        ),
        ("self.keep({k: v.item() for k, v in self.losses.items()})", True),
        ("self.keep([v.item() for v in (a, b, c)])", True),
        ("self.keep([v.item() for v in self.losses])", False),
    ],
)
def test_so_few_numbers_are_read_as_fast_one_by_one(door, body, by_hand):
    """The first read waits for all that is queued; three of them take as long as to join them, as measured on an H200."""
    door.write("net.py", f"{IN_A_STEP}        {body}\n")
    fixes = [f["fix"] for f in json.loads(door("lint", "--all", "--format", "json").out) if f["fix"]]
    assert {"by_hand" in fix for fix in fixes} == {by_hand}


OF_CLASS = """\
import torch
from torch.utils.data import DataLoader


class Rows:
    def cuda(self, inplace=False):
        return Rows()


def train(model, rows, optimizer):
    for x, y in DataLoader(rows, pin_memory=True):
        loss = model(x.cuda(), y.cuda()).mean()
        loss.backward()
        optimizer.step()
"""


def test_a_batch_may_be_of_a_class_whose_cuda_takes_no_non_blocking(door):
    door.write("pyproject.toml", "")
    door.write("step.py", OF_CLASS)
    assert {f["fix"] for f in json.loads(door("lint", "step.py", "--format", "json").out)} == {None}
    door.write("step.py", OF_CLASS.replace("inplace=False", "non_blocking=False"))
    assert {f["fix"]["safety"] for f in json.loads(door("lint", "step.py", "--format", "json").out)} == {"unsafe"}


def test_the_steps_of_an_optimizer_are_counted_on_the_host(door):
    body = "for group in groups:\n        weights, dev_state_steps = group\n        torch._foreach_add_(dev_state_steps, 1)\n"
    body += "        self.keep([step.item() for step in dev_state_steps])\n"
    code = f"import torch\n\n\ndef _multi_step(self, groups: list[list[list[torch.Tensor]]]):\n    {body}"
    door.write("adam.py", code)
    assert json.loads(door("lint", "adam.py", "--format", "json").out) == []
    door.write("adam.py", code.replace("dev_state_steps", "rows"))
    assert json.loads(door("lint", "adam.py", "--format", "json").out)


def test_a_number_that_is_read_is_not_another_one_beside_itself(door):
    door.write(
        "train.py",
        "import torch\n\n\ndef train(model, loader, optimizer, count):\n    losses = [0.0] * count\n"
        "    for k, x in enumerate(loader):\n        loss = model(x.cuda(non_blocking=True)).mean()\n"
        "        loss.backward()\n        optimizer.step()\n        losses[k] = loss.item()\n    return losses\n",
    )
    (found,) = json.loads(door("lint", "--all", "train.py", "--format", "json").out)
    assert (found["fix"]["title"], found["fix"]["by_hand"]) == ("note the tensor", "it asks for more than its edits")
