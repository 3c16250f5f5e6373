"""Versions of a file as one: each does what it would by itself, and any of them may follow any other."""

import textwrap
from typing import Any

import pytest

from syncscope.turns.selector import Selector
from syncscope.turns.weaving import CannotTakeTurnsError, weave


def code(text: str) -> bytes:
    return textwrap.dedent(text).encode()


@pytest.fixture
def selector() -> Selector:
    chosen = Selector()
    chosen.install()
    return chosen


def run(before: str, *versions: str, **given: Any) -> dict[str, Any]:
    woven = weave("train.py", code(before), {number: code(text) for number, text in enumerate(versions, 1)})
    exec(compile(woven.tree, "train.py", "exec"), given)
    return given


SUMMED = """
def train(loader, step):
    total = 0.0
    for x in loader:
        step()
        {added}
    {last}return total
"""
AS_WRITTEN = SUMMED.format(added="total += float(x)", last="")
REWRITTEN = SUMMED.format(added="total = total + x", last="total = float(total)\n    ")


def test_a_loop_that_goes_on_changes_its_version_between_two_times_round(selector: Selector) -> None:
    class Number:  # of a device
        untyped_storage = None

        def __init__(self, value: float) -> None:
            self.value = value

        def __float__(self) -> float:
            reads.append(selector.version)
            return self.value

        def __add__(self, other: Any) -> "Number":
            return Number(self.value + getattr(other, "value", other))

        __radd__ = __add__

        def numel(self) -> int:
            return 1

        def item(self) -> float:
            return self.value

    reads: list[int] = []
    order = iter([0, 0, 1, 1, 0, 1])

    def step() -> None:
        selector.version = next(order, 0)

    train = run(AS_WRITTEN, REWRITTEN)["train"]
    assert train([Number(float(n)) for n in range(6)], step) == 15
    assert reads == [0, 0, 1, 1]  # by what comes next: three times round begin as written, two do not, one does
    assert [*selector.entered.values()] == [1, 4, 2]  # the function is begun once, its loop's body in turns


def test_the_next_version_begins_with_the_passage_that_holds_the_others(selector: Selector) -> None:
    outer, inner = 4, 5
    selector.head, selector.headed = outer, lambda: setattr(selector, "version", 1)
    assert [selector.at(passage) for passage in (inner, inner, outer, inner)] == [0, 0, 1, 1]


def test_loops_and_functions_around_what_differs_tell_that_they_begin(selector: Selector) -> None:
    before = """
    def epoch(batches):
        for x in batches:
            found.append(x)

    found = []
    for number in range(2):
        for times in range(3):
            found.append(1)
        epoch([number])
    """
    after = code(before.replace("append(x)", "append(-x)").replace("append(1)", "append(2)"))
    woven = weave("train.py", code(before), {1: after})
    exec(compile(woven.tree, "train.py", "exec"), {})
    begun = {(line, sum(selector.entered[key] for key in selector.entered if key[0] == number))
             for number, (_, line, _) in woven.around.items()}  # fmt: skip
    assert begun == {(3, 2), (8, 2)}
    assert len(woven.passages) == 2


def test_a_change_to_the_head_of_a_function_leaves_the_others_its_loops(selector: Selector) -> None:
    before = """
    found = []
    def main(turn):
        first = 10
        while len(found) < 6:
            for x in range(3):
                found.append(first + x)
                turn(x)
    """
    head, loop = before.replace("first = 10", "first = 20"), before.replace("append(first + x)", "append(first - x)")
    both = head.replace("append(first + x)", "append(first - x)")
    woven = weave("train.py", code(before), {1: code(both), 2: code(head), 3: code(loop)})
    assert {name: versions for name, _, versions in woven.passages.values()} == {
        "main()": {1, 2},
        "a loop of main()": {3},
    }
    for version, (one, other) in enumerate([(10, 1), (20, -1), (20, 1), (10, -1)]):
        selector.version = version
        names = run(before, both, head, loop)
        names["main"](lambda x: None)
        assert names["found"] == [one + other * x for x in (0, 1, 2)] * 2
    selector.version = 0
    names = run(before, both, head, loop)
    names["main"](lambda x: setattr(selector, "version", 3 if x == 1 else 0))
    assert names["found"] == [10, 11, 8, 10, 11, 8]  # between two rounds


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_does_what_it_says(selector: Selector, version: int) -> None:
    before = '''
    def f(x):
        """What it does."""
        global seen
        seen = x
        return x + 1
    '''
    one, two = before.replace("x + 1", "x + 2"), before.replace("x + 1", "sorted([x, 3])[0]")
    selector.version = version
    names = run(before, one, two)
    assert names["f"](5) == [6, 7, 3][version]
    assert names["seen"] == 5
    assert names["f"].__doc__ == "What it does."


def test_generators_and_methods_and_loops_of_a_script_take_turns(selector: Selector) -> None:
    before = """
    class Model:
        def forward(self, x):
            return x * 2

    def each(values):
        for value in values:
            yield value

    found = []
    for step in range(4):
        found.append(Model().forward(step))
        turn(step)
    """
    after = before.replace("x * 2", "x * -2").replace("yield value", "yield -value").replace("append(M", "append(1 + M")

    def turn(step: int) -> None:
        selector.version = step % 2

    names = run(before, after, turn=turn)
    assert names["found"] == [0, 2, -3, 6]
    values = names["each"]([1, 2, 3])
    selector.version = 0
    assert next(values) == 1
    selector.version = 1
    assert next(values) == -2


def test_an_import_that_a_version_adds_is_made_for_all(selector: Selector) -> None:
    before = "def f():\n    return 1\n"
    names = run(before, "import math\n" + before.replace("1", "math.floor(2.5)"))
    assert names["f"]() == 1
    selector.version = 1
    assert names["f"]() == 2


def test_a_version_may_give_a_function_parameters_that_have_defaults(selector: Selector) -> None:
    """Or take them away; whoever calls, of whichever version: one begins while the other is in its middle."""
    before = """
    class Model:
        def forward(self, x, double=True):
            return 2 * x if double else x

    def step(model, x):
        return model.forward(x)

    def train(turn):
        found = []
        for x in range(4):
            found.append(step(Model(), x))
            turn(x + 1)
        return found
    """
    after = (
        before.replace("double=True", "double=True, *, less=0")
        .replace("else x", "else x - less")
        .replace("(model, x):", "(model, x, less=100):")
        .replace("forward(x)", "forward(x, False, less=less)")
        .replace("step(Model(), x)", "step(Model(), x, 10)")
    )

    def turn(x: int) -> None:
        selector.version = x % 2

    names = run(before, after)
    assert names["train"](turn) == [0, -9, 4, -7]
    selector.version = 0
    names = run(after, before)
    assert names["train"](turn) == [-10, 2, -8, 6]
    selector.version = 0
    names = run(before, after)
    assert names["step"](names["Model"](), 3) == 6
    selector.version = 1
    assert names["step"](names["Model"](), 3) == -97, "a call of the other version is right, too"


@pytest.mark.parametrize(
    ("head", "other"),
    [
        ("a", "a, b"),
        ("a, b=1", "a, b=2"),
        ("a", "b=1, a=2"),
        ("a, *rest", "a, b=1, *rest"),
        ("a, **rest", "a, b=1, **rest"),
        ("a", "a, *, b"),
        ("a, *, b=1", "a, b=1"),
    ],
)
def test_heads_that_no_call_of_both_versions_fits_are_refused(head: str, other: str) -> None:
    with pytest.raises(CannotTakeTurnsError, match="with the same parameters"):
        weave("train.py", code(f"def f({head}): return a\n"), {1: code(f"def f({other}): return a + 1\n")})


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("x = 1\n", "x = 2\n", "line 1 is in the module, which runs once"),
        (
            "def f(a): return a\n",
            "def f(a, b): return a\n",
            "line 1 is the head of f(), which is made once: with the same parameters in both they take turns",
        ),
        ("def f(a): return a\n", "x = 2\n", "line 1 is in the module, which runs once"),
        ("class A:\n    x = 1\n", "class A:\n    x = 2\n", "line 2 is in the body of class A, which runs once"),
        ("def f(a):\n    return a\n", "def f(a):\n    yield a\n", "f is a generator in one version only"),
        ("def f():\n    return sum\n", "def f():\n    sum = 1\n    return sum\n", "sum is local in one version of f"),
    ],
)
def test_what_cannot_take_turns_says_why(before: str, after: str, why: str) -> None:
    with pytest.raises(CannotTakeTurnsError) as refused:
        weave("train.py", code(before), {1: code(after)})
    assert why in str(refused.value)


def test_what_is_equal_is_left_alone() -> None:
    text = code("def f(x):\n    return x\n")
    assert not weave("train.py", text, {1: text}).passages
