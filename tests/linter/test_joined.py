"""Fixes of several rules in one statement are one where they are as safe, and mend nothing elsewhere."""

from syncscope.linter.config import Config
from syncscope.linter.engine import check
from syncscope.model.finding import Finding, Safety

CODE = """
import torch

def forward(x: torch.Tensor, n: int):
    x = x.cuda()
    y = x[torch.arange(n)] * torch.ones(n).cuda(){}
    return y
"""


def fixes(code: str) -> set[str]:
    return {f.fix.title for f in check("x.py", code.encode(), Config()).findings if f.fix is not None}


def test_what_one_statement_waits_for_is_mended_by_one_fix() -> None:
    (title,) = fixes(CODE.format(""))
    assert title == "make the index on the device; make it on the device"


def test_fixes_that_are_not_as_safe_stay_apart() -> None:
    apart = fixes(CODE.format("").replace("torch.ones", "torch.randn"))
    assert apart == {"make the index on the device", "make it on the device"}


LOOP = """
import torch
from torch.utils.data import DataLoader

def train(model, data, optimizer, criterion, device):
    loader = DataLoader(data, batch_size=4)
    total, right = 0.0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        {}
        loss.backward()
        optimizer.step()
        total += loss.item()
        {}
    return total / len(data)
"""
CHECK = """if torch.isnan(loss):
            raise RuntimeError("not a number")"""
SEEN = "right += (model(x).argmax(1) == y).sum().item()"


def found(code: str, every: bool = False) -> list[Finding]:
    return check("x.py", code.encode(), Config(all=every)).findings


def test_what_a_pass_of_a_training_loop_waits_for_is_mended_by_one_fix() -> None:
    (fix,) = {f.fix for f in found(LOOP.format("pass", SEEN))}
    assert fix is not None
    assert fix.title == "copy while the host goes on; add up on the device, read once after the loop"
    assert fix.gains == "saves 4 waits on each pass of the loop, and reads once after it"
    assert "the loader must give what lives on the host" in fix.changes
    assert "added up in float32" in fix.changes


def test_where_a_pass_waits_all_the_same_a_read_or_a_copy_is_mended_by_hand() -> None:
    code = LOOP.format(CHECK, "pass")
    assert [f.fix for f in found(code)] == [None] * 4
    advice = {f.advice.why_by_hand for f in found(code) if f.advice and f.advice.title != CHECKED}
    assert advice == {"a step gains little by it: line 11 waits on each pass as well, and stays"}
    assert {f.fix.tier for f in found(code, every=True) if f.fix is not None} == {Safety.SUGGEST}


CHECKED = "let the device check"


def test_what_a_pass_reads_in_an_arm_holds_nothing_up() -> None:
    code = LOOP.format("pass", "if len(x) < 4:\n            print(loss.item())")
    assert "add up on the device" in "".join(fixes(code))


def test_what_a_function_makes_in_many_places_is_made_on_the_device_by_one_fix() -> None:
    code = """
import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        none = torch.tensor(0.0, device=x.device)
        y = self.net(x)
        if self.wide:
            return torch.where(y > 0, none, torch.ones(len(y), 1).to(y.device))
        return torch.where(y > 0, none, torch.zeros(len(y), 1).to(y.device))
"""
    (fix,) = {f.fix for f in found(code)}
    assert fix is not None
    assert (len(fix.edits), fix.gains) == (3, "saves 2 waits in each step"), "of two arms one is gone into"


def test_of_waits_in_arms_that_need_not_be_gone_into_it_is_said_how_many_go_at_most() -> None:
    code = """
import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        none = torch.tensor(0.0, device=x.device)
        y = self.wide(x) if self.is_wide else torch.tensor(0.0, device=x.device)
        if self.deep:
            z = self.net(x)
        else:
            z = torch.tensor(0.0, device=x.device)
        return y + z + none
"""
    (fix,) = {f.fix for f in found(code)}
    assert fix is not None
    assert fix.gains == "saves up to 3 waits in each step"


def test_beside_memory_given_back_in_each_pass_a_read_is_mended_by_hand() -> None:
    code = LOOP.format("pass", "torch.cuda.empty_cache()")
    assert [f.fix for f in found(code)] == [None] * 4


def test_where_each_element_waits_the_fix_says_that_one_wait_is_left() -> None:
    code = """
import torch

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        rows = x.argmax(1)
        return [self.names[int(row)] for row in rows]
"""
    (fix,) = {f.fix for f in found(code)}
    assert fix is not None
    assert fix.gains == "waits once in each step, not for each element"


def test_a_number_that_is_read_again_at_once_is_read_once_by_hand() -> None:
    code = """
import torch

class Agent:
    def update(self, x: torch.Tensor):
        loss = self.net(x).mean()
        told = {"loss": loss.item(), "twice": 2 * loss.item()}
        self.step(x)
        return told
"""
    assert {f.fix for f in found(code)} == {None}
    apart = code.replace('"twice": 2 * loss.item()}', '"other": self.net(x @ x)}\n        told["twice"] = loss.item()')
    assert {f.fix.title for f in found(apart) if f.fix} == {"read loss once, not 2 times"}


def test_a_sum_that_is_shown_on_some_passes_alone_is_said_to_wait_there() -> None:
    code = LOOP.format("pass", "if len(x) % 50 == 0:\n            print(total)").replace(
        "return total / len(data)", "return model"
    )
    (fix,) = {f.fix for f in found(code) if f.rule == "host-read" and f.fix is not None}
    assert "waits where the sum is shown, not on each pass of the loop" in fix.gains or "saves 3 waits" in fix.gains


def test_a_few_losses_that_a_dict_has_by_name_are_joined_by_hand() -> None:
    code = """
import torch

class Agent:
    def update(self, losses: dict[str, torch.Tensor], x: torch.Tensor):
        x = x.cuda()
        parts = {"a": x.mean(), "b": x.std()}
        told = {name: torch.sqrt(part).item() for name, part in parts.items()}
        return told, sum(part.item() for part in parts.values())
"""
    assert {f.fix for f in found(code)} == {None}


def test_parts_of_a_batch_sent_one_by_one_before_a_read_that_stays_are_sent_by_hand() -> None:
    code = LOOP.format(CHECK, "pass").replace(
        "x, y = x.to(device), y.to(device)", "x, y = [part.to(device) for part in (x, y)]"
    )
    assert {f.fix for f in found(code)} == {None}


def test_what_is_copied_right_before_a_read_that_stays_is_made_on_the_device_by_hand() -> None:
    code = """
import torch

class Loss(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int, size: float):
        x = x.cuda()
        count = torch.as_tensor([n / size], dtype=torch.float, device=x.device)
        count = torch.clamp(count / self.ranks, min=1).item()
        return self.part(x, count)
"""
    assert {f.fix for f in found(code) if f.rule == "tensor-literal-on-device"} == {None}


BEFORE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        none = torch.tensor(0.0, device=x.device)
        y = self.net(x @ x)
        return torch.where(y > 0, none, y)
"""


def test_what_a_baseline_holds_is_not_mended_with_what_is_new_in_its_function(door):
    door.write("net.py", BEFORE)
    door("lint", "--write-baseline", "known.json", "net.py")
    more = "one = torch.tensor(1.0, device=x.device)\n        return torch.where(y > 0, none, one)"
    door.write("net.py", BEFORE.replace("return torch.where(y > 0, none, y)", more))
    assert "-        none" not in door("lint", "--baseline", "known.json", "--diff", "net.py").out
    door("lint", "--baseline", "known.json", "--fix", "net.py")
    fixed = (door.folder / "net.py").read_text()
    assert "none = torch.tensor(0.0, device=x.device)" in fixed
    assert "one = torch.ones((), device=x.device)" in fixed
