"""`lint --sort worth` and `rank` in JSON: what waits in every step stands before what waits once in a while."""

import json

SELDOM = """import torch


def training_step(self, x: torch.Tensor, step):
    if step % 4 == 0:
        print(x.sum().item())
"""
ALWAYS = """import torch


def training_step(self, x: torch.Tensor):
    self.log(x.sum().item())
    y = self.net(x)
    if y.any():
        torch.unique(y)
"""


def test_what_waits_in_every_step_comes_first_whichever_file_it_is_in(door):
    door.write("a.py", SELDOM)
    door.write("z.py", ALWAYS)
    by_place = door("lint", "--all", "--format", "concise")
    assert by_place.out.startswith("a.py:6:")
    by_worth = door("lint", "--all", "--sort", "worth", "--format", "concise")
    assert sorted(by_worth.out.splitlines()) == sorted(by_place.out.splitlines())
    assert by_worth.out.startswith("z.py:5:")
    found = json.loads(door("lint", "--all", "--format", "json").out)
    ranks = {(each["path"], each["line"]): each["rank"] for each in found}
    assert sorted(ranks.values()) == list(range(1, len(found) + 1))
    assert ranks["z.py", 5] == 1
    assert ranks["a.py", 6] > ranks["z.py", 7]


MANY = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, starts: torch.LongTensor):
        return self.cut(x, starts) + self.told(x)

    def told(self, x: torch.Tensor):
        if (x > 1).any():
            self.large(x)
        return x * 2

    def cut(self, x: torch.Tensor, starts: torch.LongTensor):
        parts = []
        for i in range(x.size(0)):
            until = starts[i] * 2
            parts.append(self.seen(x[i, :until]))
        return torch.stack(parts)

    def large(self, x):
        self.many.append(x)
"""


def test_what_a_step_comes_by_many_times_is_told_whole_without_a_rewrite_and_comes_first(door):
    door.write("net.py", MANY)
    door.write("a.py", ALWAYS)
    ran = door("lint", "net.py")
    (finding,) = [line for line in ran.out.splitlines() if "[tensor-as-size]" in line]
    assert "net.py:17:" in finding
    assert "also waits" not in finding
    assert "in a loop of the step: many times" in ran.out
    assert "net.py:9:12: also waits in a step" in ran.out, "once a step, and nothing can be written instead"
    door.write("z.py", MANY.replace("def cut", "def training_step"))
    found = json.loads(door("lint", "--all", "--format", "json").out)
    first, *_ = ranked = sorted(found, key=lambda each: each["rank"])
    assert (first["path"], first["line"], first["worth"]) == ("z.py", 17, {"kind": "first", "many": True})
    assert [each["line"] for each in ranked if each["path"] == "net.py"] == [17, 9]


def test_a_comprehension_is_gone_through_many_times_and_what_it_goes_through_is_made_once(door):
    before, behind = MANY[: MANY.index("        parts = []")], MANY[MANY.index("        return torch.stack") :]
    each = "        parts = [self.seen(x[i, : starts[i] * 2]) for i in range(x.size(0))]\n"
    once = "        parts = [self.seen(each) for each in x[: starts.max() * 2]]\n"
    door.write("each.py", before + each + behind)
    door.write("once.py", before + once + behind)
    assert door("lint").lines == [("each.py", 14, "tensor-as-size")]


SENT = """import torch
from torch import nn


class Net(nn.Module):
    def training_step(self, batch):
        model = nn.Linear(3, 4).cuda()
        d, e, f = torch.tensor([0.9]), torch.tensor([0.9]), torch.tensor([0.9])
        for p in model.parameters():
            d = d.to(p.device)
        for p in model.parameters():
            e = e.to(p.device)
            e = torch.tensor([0.9, p.ndim])
        for layer in model.children():
            f = torch.tensor([0.9, batch])
            for p in layer.parameters():
                f = f.to(p.device)
"""


def test_what_a_loop_keeps_where_it_has_sent_it_is_copied_in_the_first_pass_alone(door):
    door.write("net.py", SENT)
    found = json.loads(door("lint", "--all", "--format", "json").out)
    many = {each["line"]: each["worth"].get("many", False) for each in found if ".to(p.device)" in each["message"]}
    assert many == {10: False, 12: True, 17: True}


def test_cold_code_comes_last_and_each_has_a_rank_of_its_own(door):
    door.write("a.py", "import torch\n\n\ndef build(x: torch.Tensor):\n    return x.sum().item()\n")
    door.write("z.py", ALWAYS)
    out = door("lint", "--all", "--sort", "worth", "--format", "concise").out
    assert out.splitlines()[-1].startswith("a.py:5:")


def test_a_finding_that_nobody_is_sure_of_is_a_note_and_comes_after_those_that_are(door):
    door.write("a.py", "import torch\n\n\ndef training_step(self, x, batch):\n    if x > 1:\n        print(batch)\n")
    door.write("z.py", ALWAYS)
    found = json.loads(door("lint", "--all", "--min-confidence", "low", "--format", "json").out)
    unsure = [each for each in found if each["confidence"] == "low"]
    assert [each["path"] for each in unsure] == ["a.py"]
    assert [each["severity"] for each in unsure] == ["note"]
    assert unsure[0]["rank"] == len(found)
