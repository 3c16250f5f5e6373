"""What loops are given can be given again, and then goes on: nothing is lost, nothing comes twice."""

from collections.abc import Iterator

import pytest

from syncscope.turns.selector import Selector
from syncscope.turns.tape import Tape
from syncscope.turns.weaving import heard

TOLD = list("abcdefghij")


def test_what_comes_after_the_recording_comes_again_and_then_what_is_new() -> None:
    tape = Tape()
    loop = iter(tape.loop(TOLD))
    assert next(loop) == "a"
    tape.record()
    first = [next(loop) for _ in range(3)]
    for _ in range(2):
        tape.rewind()
        assert [next(loop) for _ in range(3)] == first == ["b", "c", "d"]
    tape.release()
    assert list(loop) == TOLD[1:]


def test_a_second_recording_begins_where_the_first_is_still_to_come() -> None:
    tape = Tape()
    loop = iter(tape.loop(TOLD))
    tape.record()
    assert [next(loop), next(loop)] == ["a", "b"]
    tape.release()
    assert next(loop) == "a"
    tape.record()
    assert [next(loop), next(loop)] == ["b", "c"]
    tape.rewind()
    tape.stop()
    assert list(loop) == TOLD[1:]


def test_of_loops_that_ask_one_another_the_outermost_keeps_it() -> None:
    tape = Tape()

    def batches() -> Iterator[str]:
        yield from (letter.upper() for letter in tape.loop(TOLD))

    loop = iter(tape.loop(batches()))
    next(loop)
    tape.record()
    assert [next(loop), next(loop)] == ["B", "C"]
    tape.rewind()
    assert [next(loop), next(loop), next(loop)] == ["B", "C", "D"]
    tape.release()
    assert "".join(loop) == "BCDEFGHIJ"


def test_a_loop_in_the_middle_of_which_a_step_is_made_is_no_batch() -> None:
    tape = Tape()

    def steps() -> Iterator[str]:
        for letter in tape.loop(TOLD):
            if letter == "c":
                tape.record()
            yield letter

    loop = iter(tape.loop(steps()))
    assert [next(loop) for _ in range(5)] == TOLD[:5]
    tape.rewind()
    assert [next(loop) for _ in range(2)] == ["d", "e"]  # the inner one gives them again, not the outer
    tape.release()
    assert list(loop) == TOLD[3:]


def test_that_a_loop_has_ended_is_known() -> None:
    tape = Tape()
    loop = iter(tape.loop("ab"))
    next(loop)
    tape.record()
    assert not tape.ended
    assert list(loop) == ["b"]
    assert tape.ended


@pytest.mark.parametrize("decorator", ["@numba.njit", "@torch.jit.script", "@torch.compile(dynamic=True)"])
def test_what_others_compile_is_left_as_it_is(decorator: str) -> None:
    import ast

    text = f"{decorator}\ndef f(n):\n    for i in range(n):\n        pass\n"
    assert ast.unparse(heard(ast.parse(text))) == ast.unparse(ast.parse(text))


def test_loops_of_a_file_are_heard() -> None:
    import ast

    chosen = Selector()
    chosen.install()
    names: dict[str, object] = {"seen": []}
    text = "for letter in 'abcd':\n    seen.append(letter)\n    yield_to(letter)\n"

    def told(letter: str) -> None:
        if letter == "b":
            chosen.tape.record()
        if letter == "d" and not again:
            again.append(letter)
            chosen.tape.rewind()

    again: list[str] = []
    names["yield_to"] = told
    exec(compile(heard(ast.parse(text)), "train.py", "exec"), names)
    assert names["seen"] == ["a", "b", "c", "d", "c", "d"]
