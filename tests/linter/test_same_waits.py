"""Which waits are the same ones in another version of the code, to a baseline and to `--since` alike."""

import json
import textwrap

import pytest
from effort import in_turns

HEAD = "import torch\n\n\n"
TRAIN = """\
def train(model, loader, optimizer):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda(non_blocking=True)), labels)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
VALIDATE = """\


def tune(model, loader):
    for images in loader:
        loss = model(images.cuda(non_blocking=True)).sum()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
RATIO = """\


class Loss(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        total = torch.stack([x.sum(), x.sum() * 2]).tolist()
        return total
"""
PICKED = """\


def picked(x: torch.Tensor, y: torch.Tensor):
    mask = (x > 0) & (y > 0)
    return x[mask].sum() + y[mask].sum()
"""
COUNTED = """\


def counted(x: torch.Tensor):
    scale = 2.0
    return (x * scale).sum().item() + scale
"""
PACKAGE = {
    "old/__init__.py": "",
    "old/ops.py": HEAD.replace("\n\n", "\n\nLIMIT = 3\n\n", 1) + COUNTED.strip() + "\n",
    "old/train.py": f"import torch\nfrom old import ops\nimport old.ops as more\n\n\n{TRAIN}        ops.counted(loss)\n"
    "        print(more.counted(loss * old.ops.LIMIT).item())\n",
}
ONE = {"train.py": HEAD + TRAIN}
TWO = {"train.py": HEAD + TRAIN + VALIDATE}
LOSS = {"loss.py": HEAD + RATIO.strip() + "\n" + COUNTED}
APART = {"loss.py": HEAD + RATIO.strip() + "\n", "ops.py": HEAD + COUNTED.strip() + "\n"}
MASKS = {"loss.py": HEAD + PICKED.strip() + "\n"}


def edited(files, *changes):
    """The files with their texts so changed."""
    for before, after in changes:
        assert any(before in text for text in files.values()), before
        files = {name: text.replace(before, after) for name, text in files.items()}
    return files


def renamed(files, *changes):
    """The files, and what is in them, under other names."""
    for before, after in changes:
        files = {name.replace(before, after): text for name, text in edited(files, (before, after)).items()}
    return files


WAIT = "        print(loss.item())\n"
CHECKED = """\
def checked(x: torch.Tensor):
    if not (0 <= x).all() or not x.min() == 1:
        return x
    return x + 1
"""
TOLD = """\


def told(value: torch.Tensor):
    print(value.item())
"""
STACKED = "torch.stack([x.sum(), x.sum() * 2]).tolist()"
ASSIGNED = f"total = {STACKED}\n        return total"
IN_ANOTHER = ("clip_grad_norm_(model.parameters(), 1.0)\n", f"clip_grad_norm_(model.parameters(), 1.0)\n{WAIT}")

SAME = {
    "a local that is only returned is left out": (LOSS, edited(LOSS, (ASSIGNED, f"return {STACKED}"))),
    "a result is given a name": (edited(LOSS, (ASSIGNED, f"return {STACKED}")), LOSS),
    "what is read is given a name": (
        LOSS,
        edited(
            LOSS, ("total = torch", "pair = torch"), (".tolist()\n", "\n"), ("return total", "return pair.tolist()")
        ),
    ),
    "a local has another name": (ONE, edited(ONE, ("loss", "error"))),
    "a parameter has another name": (
        LOSS,
        edited(LOSS, ("(self, x: torch.Tensor", "(self, scores: torch.Tensor"), ("x.sum()", "scores.sum()")),
    ),
    "lines move": (ONE, edited(ONE, ("import torch\n", "import math\nimport torch\n\nPI = math.pi\n"))),
    "torch is imported otherwise": (
        LOSS,
        edited(LOSS, ("import torch\n", "import torch\nfrom torch import stack\n"), ("torch.stack", "stack")),
    ),
    "what is done with the number is another": (
        ONE,
        edited(ONE, ("print(loss.item())", "history.append(loss.item())")),
    ),
    "it is read in other words": (ONE, edited(ONE, ("print(loss.item())", "print(float(loss))"))),
    "a comparison is turned around": (
        {"loss.py": HEAD + CHECKED},
        edited({"loss.py": HEAD + CHECKED}, ("not (0 <= x)", "(x < 0)"), ("x.min() == 1", "1 != x.min()")),
    ),
    "functions change places": (LOSS, {"loss.py": HEAD + COUNTED.strip() + "\n" + RATIO}),
    "a function moves to another file": (LOSS, APART),
    "a function moves and is edited": (LOSS, edited(APART, ("+ scale", "- scale"))),
    "a function moves under another name": (LOSS, edited(APART, ("counted", "number"))),
    "a function is renamed": (LOSS, edited(LOSS, ("def counted", "def number_of"))),
    "a class is renamed": (LOSS, edited(LOSS, ("class Loss", "class Ratio"))),
    "a class is renamed, and a method of it edited": (
        LOSS,
        edited(LOSS, ("class Loss", "class Ratio"), ("return total", "return total[0]")),
    ),
    "a file is renamed": (LOSS, {"ratio.py": LOSS["loss.py"]}),
    "a file is renamed and edited": (LOSS, {"ratio.py": edited(LOSS, ("return total", "return total[0]"))["loss.py"]}),
    "a package is renamed, and so is what it imports of itself": (PACKAGE, renamed(PACKAGE, ("old", "new"))),
    "a loop is put around": (
        LOSS,
        edited(LOSS, (f"total = {STACKED}", f"for _ in range(3):\n            total = {STACKED}")),
    ),
    "a part is taken out into a function of its own": (ONE, edited(ONE, (WAIT, "        told(loss)\n" + TOLD))),
    "a part is taken out into another file": (
        ONE,
        {
            **edited(ONE, (WAIT, "        log.told(loss)\n"), (HEAD, "import torch\nimport log\n\n\n")),
            "log.py": HEAD + TOLD,
        },
    ),
    "one of two equal waits goes": (edited(ONE, (WAIT, WAIT * 2)), ONE),
    "a class is renamed, and a function beside it moves": (LOSS, edited(APART, ("Loss", "Ratio"))),
}
NEW = {
    "a wait leaves one function and comes in another": (TWO, edited(TWO, (WAIT, ""), IN_ANOTHER), [("train.py", 15)]),
    "a wait leaves one function and comes in a new one that it does not call": (
        ONE,
        edited(ONE, (WAIT, TOLD)),
        [("train.py", 12)],
    ),
    "a wait is copied": (ONE, edited(ONE, (WAIT, WAIT * 2)), [("train.py", 10)]),
    "it is read once more, above": (
        ONE,
        edited(ONE, (WAIT, f"        if loss.item() > 100:\n            break\n{WAIT}")),
        [("train.py", 9)],
    ),
    "it is read once more, below": (
        ONE,
        edited(ONE, (WAIT, f"{WAIT}        if loss.item() > 100:\n            break\n")),
        [("train.py", 10)],
    ),
    "another is read beside it, above": (
        ONE,
        edited(ONE, (WAIT, WAIT.replace("loss", "images.sum()") + WAIT)),
        [("train.py", 9)],
    ),
    "another local is read, above": (
        ONE,
        edited(ONE, (WAIT, WAIT.replace("loss", "images") + WAIT)),
        [("train.py", 9)],
    ),
    "something else is read": (LOSS, edited(LOSS, ("x.sum() * 2]", "x.sum() * 3]")), [("loss.py", 6)]),
    "a function is copied under another name": (
        LOSS,
        edited(LOSS, ("scale\n", "scale\n" + COUNTED.replace("counted", "number"))),
        [("loss.py", 17)],
    ),
    "a function of the same name waits so in another file": (
        {**ONE, "other.py": HEAD + TRAIN.replace(WAIT, "")},
        {**edited(ONE, (WAIT, "")), "other.py": HEAD + TRAIN},
        [("other.py", 9)],
    ),
}


KNOWN_BY = ["baseline", "since"]


@pytest.fixture(params=KNOWN_BY)
def gate(request, door, git):
    """What is new to a gate, from one version of some files to the next: their names and lines."""

    def new(before, after):
        git.commit()
        for name, code in before.items():
            door.write(name, code)
        asked = ["lint", "--min-confidence", "low", "--all"]
        assert door(*asked).lines, "there is something to know"
        if request.param == "baseline":
            door(*asked, "--write-baseline", "known.json")
            asked += ["--baseline", "known.json"]
        else:
            git.commit()
            asked += ["--since", "HEAD"]
        for name in before:
            (door.folder / name).unlink()
        for name, code in after.items():
            door.write(name, code)
        assert door(*asked[:4]).lines, "it is still found"
        return [(path, line) for path, line, _ in door(*asked).lines]

    return new


@pytest.mark.parametrize(("change", "gate"), in_turns([*SAME], KNOWN_BY), indirect=["gate"])
def test_what_waits_as_before_is_not_new(gate, change):
    before, after = SAME[change]
    assert gate(before, after) == []


@pytest.mark.parametrize(("change", "gate"), in_turns([*NEW], KNOWN_BY), indirect=["gate"])
def test_what_was_not_there_is_new(gate, change):
    before, after, new = NEW[change]
    assert gate(before, after) == new


def test_selections_that_our_own_fix_made_one_are_not_new(door, gate):
    masks = edited(MASKS, ("return", "z = (x * y)[mask], (x + y)[mask], (x - y)[mask]\n    return z,"))
    door.write("loss.py", masks["loss.py"])
    door("lint", "--unsafe-fixes", "--fix", "loss.py")
    mended = (door.folder / "loss.py").read_text()
    assert mended.count("nonzero") == 1, "it still waits, once"
    assert gate(masks, {"loss.py": mended}) == []


FIXES_THAT_LEAVE_ONE = {
    "a sum that is read after the loop": """\
        import torch

        def mean_error(x: torch.Tensor, y: torch.Tensor):
            total = 0.0
            for number in range(3):
                total += (x - y).square().mean().item()
            return total
        """,
    "a list that is read after the loop": """\
        import torch

        def history(x: torch.Tensor):
            seen = []
            for number in range(4):
                seen.append((x * number).sigmoid().mean().item())
            return seen
        """,
    "four numbers that are read together": """\
        import torch

        def watch(x: torch.Tensor):
            size = x.float().abs()
            least, middle = size.min(), size.median()
            return {
                "mean": size.mean().item(), "worst": size.max().item(), "least": least.item(), "median": middle.item(),
            }
        """,
}


@pytest.mark.parametrize("code", FIXES_THAT_LEAVE_ONE.values(), ids=FIXES_THAT_LEAVE_ONE)
def test_what_is_left_of_a_wait_by_our_own_fix_is_not_new(door, gate, code):
    code = textwrap.dedent(code)
    door.write("loss.py", code)
    assert "made 1 fix" in door("lint", "--all", "--unsafe-fixes", "--fix", "loss.py").err
    mended = (door.folder / "loss.py").read_text()
    assert gate({"loss.py": code}, {"loss.py": mended}) == []


def test_a_rule_that_had_another_name_is_known(door):
    door.write("train.py", ONE["train.py"])
    door("lint", "--write-baseline", "known.json")
    known = (door.folder / "known.json").read_text()
    assert json.loads(known)["findings"]["train.py"][0]["rule"] == "host-read"
    door.write("known.json", known.replace("host-read", "reads-of-the-host"))
    ran = door("lint", "--baseline", "known.json")
    assert (ran.lines, "gone" in ran.err) == ([], False)


FOLLOWED = {
    "lines move": SAME["lines move"],
    "a local has another name": SAME["a local has another name"],
    "a file is renamed": SAME["a file is renamed and edited"],
    "a function moves to another file": SAME["a function moves to another file"],
}


@pytest.mark.parametrize("form", ["sarif", "gitlab"])
@pytest.mark.parametrize(("before", "after"), FOLLOWED.values(), ids=FOLLOWED)
def test_servers_know_a_wait_by_the_same_fingerprint(door, form, before, after):
    def fingerprints(files):
        for path in door.folder.glob("*.py"):
            path.unlink()
        for name, code in files.items():
            door.write(name, code)
        told = json.loads(door("lint", "--all", "--min-confidence", "low", "--format", form).out)
        issues = told if form == "gitlab" else told["runs"][0]["results"]
        return sorted(i.get("fingerprint") or i["partialFingerprints"]["wait/v1"] for i in issues)

    known = fingerprints(before)
    assert len({*known}) == len(known) > 0
    assert fingerprints(after) == known
