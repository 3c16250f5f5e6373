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
    y = x.exp()
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
