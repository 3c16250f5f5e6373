"""Loops whose passes need nothing of one another, and such as do."""

import textwrap

import pytest

from syncscope.linter.passes_apart import loops_apart
from syncscope.model.source import Place

APART = """
for image in range(batch):
    best = overlap(anchors, targets[image]).max()
    loss = bce(scores[image], best)
    if best.any():  # waits
        loss = loss + l1(deltas[image], best)
    losses.append(loss)
    total += loss
---
for name, p in model.named_parameters():
    norms[name] = p.grad.norm().item()  # waits
---
for x in xs:
    y = [z for z in x if z > 0]
    self.count += len(y)
    out[x] = y[0].item()  # waits
---
for step in range(3):
    token = start
    for x in xs[step]:
        best = (x + 1).max()
        seen.append(best.item())  # waits
"""

NOT_APART = """
for _ in range(longest):
    token = model(token).argmax()
    seen.append(token.item())  # waits
---
for _ in range(longest):
    done |= model(x).argmax() == END
    if done.all():  # waits
        break
---
for batch in loader:
    loss = model(batch).mean()
    loss.backward()
    log.append(loss.item())  # waits
---
for x in xs:
    self.state = cell(x, self.state)
    seen.append(self.state.sum().item())  # waits
---
for x in xs:
    if ready:
        best = x
    seen.append(best.item())  # waits
---
for x in xs:
    total += x
    seen.append(total.item())  # waits
---
for x in xs:
    while x.sum() > 1:  # waits
        x = x / 2
---
for x in xs:
    def read():
        return x.item()  # waits
---
for _ in range(moves):
    action = act()
    seen.append(action.cpu())  # waits
---
for row in range(rows):
    best = costs[row].argmin().item()  # waits
    costs[:, best] = inf
---
x.item()  # waits
"""


def cases(text: str) -> list[str]:
    return [case.strip("\n") for case in text.split("---\n")]


def loop_of(code: str) -> int | None:
    line = 1 + next(n for n, text in enumerate(code.splitlines()) if "# waits" in text)
    place = Place("train.py", line)
    return loops_apart({"train.py": code.encode()}, [place]).get(place)


@pytest.mark.parametrize("code", cases(APART))
@pytest.mark.parametrize("inside", [False, True], ids=["module", "function"])
def test_passes_that_need_nothing_of_one_another(code: str, inside: bool):
    if inside:
        code = "def loss():\n" + textwrap.indent(code, "    ")
    found = loop_of(code)
    assert found is not None
    loop = code.splitlines()[found - 1].strip()
    assert loop.startswith("for ")
    assert not loop.startswith("for step"), "the innermost"


@pytest.mark.parametrize("code", cases(NOT_APART))
def test_passes_that_need_one_another_or_may_be_the_last(code: str):
    assert loop_of(code) is None


@pytest.mark.parametrize("source", [b"def f(:\n  x\n", b"\x00\x00", b""], ids=["broken", "binary", "empty"])
def test_what_is_not_python_has_no_loops(source: bytes):
    place = Place("train.py", 1)
    assert loops_apart({"train.py": source}, [place, Place("elsewhere.py", 3)]) == {}
