"""A Python list that is sent where its tensor is made: by command, where nothing but a list it can be."""

from pathlib import Path

import pytest
from rules.driver import HEAD, config, findings, fixed

from syncscope.linter.engine import check
from syncscope.model.finding import Safety

CODE = """
import itertools
import numpy as np
import torch

def f(x: torch.Tensor, sentences, given, array: np.ndarray):
    lengths = [len(s) for s in sentences]
    places, rest = [], []
    for s in sentences:
        places.append(s.begin)
    both = lengths + [0]
    mixed = lengths
    if len(rest):
        mixed = given
    return x[{}]
"""
MADE = (
    "torch.tensor(lengths, device=x.device)",
    "torch.tensor(places, dtype=torch.long, device=x.device)",
    "torch.tensor(both, device=x.device)",
    "torch.as_tensor([len(row) for row in x], device=x.device)",
    "x.new_tensor(list(itertools.permutations(range(3))), dtype=torch.long)",
)
SENT = (
    "torch.tensor([s.begin for s in sentences]).to(x.device)",
    "torch.LongTensor(places).to(x.device)",
    "torch.tensor(lengths).unsqueeze(1).to(x.device)",
)
OTHER = (
    "torch.tensor(given, device=x.device)",
    "torch.tensor(mixed, device=x.device)",
    "torch.tensor(array, device=x.device)",
    "torch.from_numpy(array).to(x.device)",
    "torch.LongTensor(given).to(x.device)",
)
SAYS = "\ndef load(batch, device):\n    return batch.to(device, non_blocking=True)\n"
"""A project that sends without waiting."""


def safeties(made: str, more: str = "") -> set[Safety]:
    return {f.fix.safety for f in findings(CODE.format(made) + more) if f.fix is not None}


@pytest.mark.parametrize("made", SENT)
def test_a_list_is_sent_by_command_where_the_project_sends_without_waiting(made: str) -> None:
    assert safeties(made, SAYS) == {Safety.UNSAFE}
    assert safeties(made) == {Safety.SUGGEST}


@pytest.mark.parametrize("made", MADE)
def test_a_list_whose_tensor_is_made_where_it_goes_is_sent_by_hand_alone(made: str) -> None:
    assert safeties(made, SAYS) == safeties(made) == {Safety.SUGGEST}
    assert all(
        "waits; the memory is not pinned" in f.fix.changes for f in findings(CODE.format(made)) if f.fix is not None
    )


def test_one_file_of_a_project_says_for_all_that_it_sends_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "load.py").write_text(SAYS)
    path, code = tmp_path / "f.py", CODE.format(SENT[0]).encode()
    path.write_bytes(code)
    found = check(str(path), code, config()).findings
    assert {f.fix.safety for f in found if f.fix is not None} == {Safety.UNSAFE}


@pytest.mark.parametrize("made", OTHER)
def test_what_may_be_an_array_is_not_sent_by_command(made: str) -> None:
    assert Safety.UNSAFE not in safeties(made, SAYS)


@pytest.mark.parametrize("waits", ["{}.cpu()", "int({}.sum())", "{}.tolist()"])
def test_a_list_is_not_sent_alone_where_the_same_expression_waits(waits: str) -> None:
    made = waits.format("x[torch.tensor(lengths, device=x.device)]")
    code = CODE.replace("x[{}]", "{}").format(made)
    fixes = {f.fix.rewrite: f.fix.safety for f in findings(code) if f.fix is not None}
    assert fixes.get("send_without_waiting") is not Safety.UNSAFE


@pytest.mark.parametrize(
    ("dtype", "safety"), [("long", Safety.UNSAFE), ("bool", Safety.UNSAFE), ("float", Safety.SUGGEST)]
)
def test_positions_and_masks_are_sent_by_command(dtype: str, safety: Safety) -> None:
    code = f"""
import numpy as np
import torch

def f(x: torch.Tensor, array: np.ndarray):
    image = torch.from_numpy(array).{dtype}()
    return x.sum() + image.to(x.device)
{SAYS}"""
    assert {f.fix.safety for f in findings(code, "blocking-upload") if f.fix is not None} == {safety}


@pytest.mark.parametrize(
    ("name", "safety"),
    [
        ("labels", Safety.UNSAFE),
        ("keep_mask", Safety.UNSAFE),
        ("src_lens", Safety.UNSAFE),
        ("boxes", Safety.UNSAFE),
        ("picture", Safety.SUGGEST),
        ("masking", Safety.SUGGEST),
        ("self.table", Safety.SUGGEST),
    ],
)
def test_what_is_called_as_what_is_few_is_sent_by_command(name: str, safety: Safety) -> None:
    code = f"""
import numpy as np
import torch

def f(self, x: torch.Tensor, given):
    {name.replace("self.table", "other")} = np.asarray(given)
    return x + torch.from_numpy({name}).float().to(x.device)
{SAYS}"""
    fixes = [f.fix for f in findings(code, "created-on-host") if f.fix is not None]
    assert [fix.safety for fix in fixes] == [safety]
    assert all("non_blocking=True)" in fix.edits[0].text for fix in fixes)


def test_lists_that_are_sent_one_after_the_other_are_one_fix() -> None:
    code = (
        "def f(x: torch.Tensor, sentences):\n    rows = torch.tensor([len(s) for s in sentences]).to(x.device)\n"
        "    ends = torch.tensor([s[-1] for s in sentences]).to(x.device)\n    x = x * 2\n"
        "    heads = torch.tensor([s[0] for s in sentences]).to(x.device)\n    return x + rows + ends + heads\n"
    )
    fixes = [f.fix for f in findings(HEAD + code, "created-on-host") if f.fix is not None]
    assert [len(fix.edits) for fix in fixes] == [2, 2, 1]
    assert fixes[0] == fixes[1]


def test_two_lists_of_one_line_that_gets_too_long_are_sent_one_after_the_other() -> None:
    code = (
        "import torch\n\n\ndef f(x: torch.Tensor, w: int, h: int):\n    k = x.new_tensor([2.0 * w, 2.0 * h])\n"
        "    t = (2.0 * x[..., :, 2] * x.new_tensor([w * 2.0, h * 2.0]) + 1.0) / x.new_tensor([float(w), float(h)]) - 1.0\n"
        "    return k + t\n"
    )
    mended = fixed(code, "tensor-literal-on-device")
    assert mended.count("non_blocking=True") == 3
    compile(mended, "mended.py", "exec")


SENT_OFTEN = """
import torch

def f(x: torch.Tensor, y: torch.Tensor, idx: list[int], model):
    x, y = x.cuda(), y.cuda()
    a = x[torch.tensor(idx, device=x.device)]
    b = y[torch.tensor(idx, device=x.device)]
    c = x[:, torch.tensor(idx, device=x.device)]
    return a.sum() + b.sum() + c.sum()
"""


def test_an_index_that_is_made_again_and_again_of_one_list_is_sent_once() -> None:
    mended = fixed(SENT_OFTEN)
    assert mended.count("torch.tensor(idx)") == 1
    assert mended.count("[idx_tensor]") == 2
    assert "[:, idx_tensor]" in mended


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    b = ", "    idx.append(0)\n    b = "),
        ("    b = ", "    idx = model.rows\n    b = "),
        ("    b = ", "    model(idx)\n    b = "),
        ("y[torch.tensor(idx, device=x.device)]", "y[torch.tensor(idx, dtype=torch.bool, device=x.device)]"),
        ("y[torch.tensor(idx, device=x.device)]", "torch.tensor(idx, device=x.device).add_(1)"),
    ],
    ids=["appended to", "bound anew", "handed out", "a mask", "written to"],
)
def test_what_is_made_of_a_list_that_changes_or_is_no_index_keeps_its_own(before: str, after: str) -> None:
    two = SENT_OFTEN.replace("    c = x[:, torch.tensor(idx, device=x.device)]\n", "    c = a\n")
    assert fixed(two).count("torch.tensor(idx)") == 1, "as it is, they share one"
    made = fixed(two.replace(before, after))
    assert made.count("torch.tensor(idx") == 2, made


def test_devices_that_may_differ_are_told() -> None:
    other = SENT_OFTEN.replace("y[torch.tensor(idx, device=x.device)]", "y[torch.tensor(idx, device=y.device)]")
    told = {f.fix.changes for f in findings(other) if f.fix is not None and f.fix.rewrite == "share_sent_index"}
    assert len(told) == 1
    assert told.pop().startswith("all that it selects from must live on one device; ")
    same = {f.fix.changes for f in findings(SENT_OFTEN) if f.fix is not None and f.fix.rewrite == "share_sent_index"}
    assert not any("one device" in each for each in same)


def test_a_list_that_a_function_is_given_is_copied_once_for_all_that_it_indexes() -> None:
    code = """
import torch

def f(x: torch.Tensor, y: torch.Tensor, rows: list[int]):
    x, y = x.cuda(), y.cuda()
    return x[rows] - y[rows]
"""
    mended = fixed(code)
    assert "return x[rows_index] - y[rows_index]" in mended
    changed = code.replace("    return x[rows] - y[rows]", "    a = x[rows]\n    rows.sort()\n    return a - y[rows]")
    assert "rows_index" not in fixed(changed)
