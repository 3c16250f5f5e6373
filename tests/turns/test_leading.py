"""Loops that are led: their iterations come again as often as somebody likes; then the program does what it would have done."""

import ast
import random

import pytest

from syncscope.turns.leading import LeftError, Loops
from syncscope.turns.loops import around_a_loop, led, runs_once, stepping
from syncscope.turns.selector import NAME, Selector

SOURCES = {
    "a loop in a loop": """
        for epoch in range(3):
            for x in iter(range(10)):
                step(x)
            made.append(("epoch", epoch))
        """,
    "left early": """
        def train():
            for x in numbers():
                if x == 7:
                    break
                for y in range(2):
                    if y:
                        break
                step(x)
            else:
                made.append("never")
            for x in range(9):
                step(x)
                if x == 5:
                    return x

        def numbers():
            i = iter(range(100))
            while True:
                yield next(i)

        for _ in range(3):
            made.append(train())
        """,
    "while, with an iterator of its own": """
        n, it = 0, iter(range(100, 130))
        while n < 25:
            x = next(it, None)
            step(x)
            n += 1
        else:
            made.append(n)
        """,
    "goes on after what it raises": """
        for x in range(20):
            try:
                step(1 // (x % 5))
            except ZeroDivisionError:
                continue
            finally:
                made.append(-x)
        """,
}


def program(source: str) -> str:
    lines = source.strip("\n").splitlines()
    return "\n".join(line[8:] for line in lines)


class Putting:
    """Leads whichever loop steps: puts back what it has made, again and again; now and then it begins anew."""

    def __init__(self, loops: Loops, names: dict, draw: random.Random) -> None:
        self.loops, self.names, self.draw = loops, names, draw
        self.kept: tuple[int, dict] | None = None
        self.times = self.length = self.made = 0
        self.raises = False
        self.begun = 0

    def step(self, frame) -> None:
        if not self.loops.is_led and self.draw.random() < 0.3:
            key = self.loops.innermost(frame)
            assert key is not None
            self.loops.lead(key, self)
        elif self.kept and self.draw.random() < 0.1:
            self.raises = True
            raise RuntimeError("of a version")

    def top(self) -> None:
        if self.kept is None:
            self.begun += 1
            plain = {name: value for name, value in self.names.items() if isinstance(value, int)}
            self.kept, self.times, self.length = (len(self.names["made"]), plain), self.draw.randrange(4), 3
            self.made = 0
            self.loops.record()
        elif self.made == self.length:
            self.made, self.times = 0, self.times - 1
            del self.names["made"][self.kept[0] :]
            self.names.update(self.kept[1])
            self.loops.rewind()
            if self.times < 0:
                self.kept = None
                self.loops.release()
                return
        self.made += 1

    def is_over(self, made: bool) -> bool:
        self.made = self.length
        return self.kept is not None

    def failed(self, error: BaseException) -> bool:
        assert isinstance(error, LeftError) or self.raises
        self.made, self.raises = self.length, False
        return self.kept is not None


def run(source: str, draw: random.Random | None) -> tuple[list, int]:
    import builtins
    import sys

    made: list = []
    names: dict = {"made": made}
    loops = Loops()
    leader = Putting(loops, names, draw or random.Random())

    def step(x: object) -> None:
        if draw is not None:
            leader.step(sys._getframe(1))
        made.append(x)

    names["step"] = step
    tree = ast.parse(program(source))
    if draw is None:
        exec(compile(tree, "plain", "exec"), names)
        return made, 0
    selector = Selector()
    selector.follow(loops)
    setattr(builtins, NAME, selector)
    exec(compile(led(tree, stepping([tree])), "led", "exec"), names)
    return made, leader.begun


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_whoever_leads_in_the_end_all_is_as_without(source: str) -> None:
    expected, _ = run(source, None)
    begun = 0
    for seed in range(60):
        made, times = run(source, random.Random(seed))
        assert made == expected, seed
        begun += times
    assert begun > 60


def test_only_loops_that_may_step_are_led_and_none_that_is_suspended() -> None:
    tree = ast.parse(
        "def once(x):\n    x.backward()\n"
        "def every(xs):\n    for x in xs:\n        once(x)\n"
        "def some(xs):\n    for x in xs:\n        print(x)\n"
        "def given(xs):\n    for x in xs:\n        once(x)\n        yield x\n"
    )
    names = stepping([tree])
    assert {"once", "every", "given"} <= names
    assert "some" not in names
    woven = ast.unparse(led(tree, names))
    assert woven.count(f"{NAME}.over(") == 1


def test_a_next_of_ones_own_stays() -> None:
    own = "def next(x):\n    return x\nnext(3)\n"
    assert f"{NAME}.given" not in ast.unparse(led(ast.parse(own), {"step"}))
    assert f"{NAME}.given(x, 0)" in ast.unparse(led(ast.parse("y = next(x, 0)"), {"step"}))


CALLED = """
def main():
    for x in range(3):
        epoch(x)

def epoch(x):
    while x:
        step()

def step():
    for micro in range(2):
        micro.backward()

def again(): ...
def named(): ...

class Trainer:
    def run(self): ...

again() or again()
for _ in range(2):
    epoch(1)
if __name__ == "__main__":
    main()
    callback = named
    callback()
"""


def test_what_runs_once_is_called_in_one_place_that_the_file_comes_to_once() -> None:
    tree = ast.parse(CALLED)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if runs_once(tree, node.lineno)] == ["main"]
    assert not runs_once(tree, 99)


def test_what_goes_on_around_the_loop_that_makes_the_steps_is_told_by_names() -> None:
    tree = ast.parse(CALLED)
    names = stepping([tree], {"step"})
    around = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.For) and around_a_loop(tree, node.lineno, names)
    }
    assert around == {2, 6}  # main() and epoch(); of what step() does a part is no step
