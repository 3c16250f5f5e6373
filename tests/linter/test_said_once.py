"""What a reader has seen is not said again: the same statement in two branches, and the terms that several fixes share."""

import json
import re

TWINS = """\
import torch


def loss(x: torch.Tensor, y: torch.Tensor, wide: bool):
    if wide:
        keep = y != -1
        return (x * 2)[keep].sum()
    else:
        keep = y != -1
        return (x * 2)[keep].sum()
"""


def test_the_same_statement_in_two_branches_is_one_fix_with_another_like_it(door):
    door.write("two.py", TWINS)
    ran = door("lint", "two.py")
    assert [line for _, line, _ in ran.lines] == [7]
    assert "and 1 like it: line 10" in ran.out
    assert ran.err.startswith("2 findings in 1 of 1 file"), "what is counted stays what there is"
    assert [found["line"] for found in json.loads(door("lint", "two.py", "--format", "json").out)] == [7, 10]
    assert len(door("lint", "two.py", "--format", "concise").out.splitlines()) == 2


def test_the_diff_of_twins_is_one_and_has_both_places(door):
    door.write("two.py", TWINS)
    told = door("lint", "--diff", "two.py").out
    assert re.findall(r"^two.py:(\d+):\d+: [\w-]+, and 1 like it: line (\d+)$", told, re.MULTILINE) == [("7", "10")]
    ways = told.count("  fix (") + told.count("  or (")
    assert told.count("--- a/two.py") == ways
    assert len(re.findall(r"^(?:  \| )?-  .*\[keep\]", told, re.MULTILINE)) == 2 * ways
    assert told.count("  fix (") == 1


def test_a_diff_that_mends_two_lines_stands_at_the_first(door):
    door.write(
        "agent.py",
        """\
        import torch
        from torch.distributions import Categorical


        def train(net, env, optimizer, updates):
            obs = env.reset()
            for update in range(updates):
                for t in range(16):
                    with torch.no_grad():
                        logits, value = net(obs.cuda())
                        act = Categorical(logits=logits).sample()
                    obs, reward, done = env.step(act)
                logits, value = net(obs.cuda())
                dist = Categorical(logits=logits)
                loss = -(dist.log_prob(act) * reward).mean() - 0.01 * dist.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    )
    told = door("lint", "--diff", "--all", "--select", "distribution-validation", "agent.py").out
    assert told.count("validate_args=False") == 2
    assert len(re.findall(r"\n  the diff is the one at agent.py:11:", told)) == 1


def test_statements_that_are_alike_with_other_fixes_are_told_apart(door):
    door.write("two.py", TWINS.replace("(x * 2)[keep].sum()\n    else", "(x * 2)[keep].mean()\n    else"))
    ran = door("lint", "two.py")
    assert [line for _, line, _ in ran.lines] == [7, 10]
    assert "like it" not in ran.out


def test_terms_that_fixes_share_are_said_at_the_first(door):
    door.write(
        "terms.py",
        """\
        import torch


        def first(x: torch.Tensor, y: torch.Tensor):
            return torch.nonzero(x), x.sum()


        def second(z: torch.Tensor, y: torch.Tensor):
            rows = z[z > 0]
            return rows.sum(), (y * 3)[y > 1].sum()
        """,
    )
    offer = re.compile(r"(?:fix|or) \([\w-]+, --[\w-]+\): [^:\n]*: (.*)")
    told = [terms for terms in offer.findall(door("lint", "terms.py").out) if len(terms) > 80]
    assert told, "or the test asks nothing"
    assert len(told) == len(set(told)), "the same is said twice"
    shown = offer.findall(door("lint", "--diff", "terms.py").out)
    assert shown
    assert not any("as at" in terms for terms in shown), "a diff is read alone"


def test_what_a_wider_fix_makes_too_is_no_diff_of_its_own(door):
    door.write(
        "wide.py",
        """\
        import torch


        def forward(x: torch.Tensor, low):
            floor = torch.tensor(0.5, device=x.device)
            least = torch.tensor([low], device=x.device)
            return torch.maximum(torch.maximum(x, floor), least)
        """,
    )
    found = json.loads(door("lint", "wide.py", "--format", "json").out)
    assert [(each["line"], each["fix"]["safety"]) for each in found] == [(5, "safe"), (6, "unsafe")]
    told = door("lint", "--diff", "wide.py").out
    assert told.count("--- a/wide.py") == 1
    assert "wide.py:6:13: tensor-literal-on-device, and 1 like it: line 5" in told


SENT = """\
import torch


def step(x: torch.Tensor, idx: list[int]):
    x = x.cuda()
    return x[torch.tensor(idx, device=x.device)] - x[:, torch.tensor(idx, device=x.device)]


def training_step(x: torch.Tensor, y: torch.Tensor, rows: list[int]):
    x, y = x.cuda(), y.cuda()
    return x[torch.tensor(rows, device=x.device)] - y[torch.tensor(rows, device=y.device)]
"""


def test_a_long_part_of_terms_is_said_at_the_first_where_the_rest_differs(door):
    door.write("sent.py", SENT)
    told = door("lint", "--all", "--min-confidence", "low", "sent.py").out
    assert told.count("CUDA waits only for more than 2 MB") == 1
    assert re.search(r"not 2 times: .*all that it selects .* on one device; and as at line 6\n", told)


def test_the_page_that_helps_where_no_rewrite_fits_is_introduced_once_for_each_rule(door):
    code = "import torch\n\n\ndef training_step(model, x):\n    a = torch.unique(model(x))\n    return a\n"
    for name in ("one.py", "two.py"):
        door.write(name, code)
    told = re.findall(r"= (no rewrite fits here.*)", door("lint").out)
    assert told == [
        "no rewrite fits here: `syncscope explain unique` shows what is written instead",
        "no rewrite fits here, as at one.py:5",
    ]


INDEXED = """\
import numpy as np
import torch


def step(x: torch.Tensor, y: torch.Tensor):
    x, y = x.cuda(), y.cuda()
    rows = np.random.permutation(8)
    a = x[rows] - y[rows]
    b = x.abs()[rows]
    return a.sum() + b.sum() + y.abs()[rows].sum()
"""


def test_of_many_that_one_fix_mends_the_first_is_shown_and_of_the_others_their_lines(door):
    door.write("rows.py", INDEXED)
    told = door("lint", "--all", "rows.py").out
    assert re.findall(r"^rows.py:(\d+):\d+: .*\[list-as-index\]$", told, re.MULTILINE) == ["8"]
    assert "= and 3 like it: lines 8, 9, 10" in told
    assert "4 findings" in door("lint", "--all", "rows.py").err


def test_what_changes_nothing_in_a_pass_is_shown_with_what_does(door):
    path = door.write(
        "train.py",
        """\
        import torch


        def train(model, loader, optimizer, criterion, epochs: int):
            for epoch in range(epochs):
                correct, total = 0, 0.0
                for x, y in loader:
                    out = model(x.to("cuda", non_blocking=True))
                    loss = criterion(out, y)
                    total += loss.item()
                    _, pred = torch.max(out, 1)
                    correct += pred.eq(y.data).sum().item()
                    loss.backward()
                    optimizer.step()
                print(epoch, correct / len(loader), total / len(loader))
        """,
    )
    found = json.loads(door("lint", "train.py", "--format", "json").out)
    assert {each["line"]: each["fix"]["safety"] for each in found} == {10: "unsafe", 12: "safe"}
    told = door("lint", "--diff", "train.py").out
    assert told.count("--- a/train.py") == 1
    assert "train.py:10:22: host-read, and 1 like it: line 12" in told
    assert "+            correct += pred.eq(y.data).sum()" in told
    assert told.count("correct = int(correct)") == 1
    door("lint", "--fix", "train.py")
    assert "total += loss.item()" in path.read_text()
    assert "correct += pred.eq(y.data).sum()\n" in path.read_text()
