"""What a program that fails is told, by what it raised and what it printed."""

import pytest

from syncscope.verify.failing import ONE_RANK, cannot_run
from syncscope.verify.processes import RunFailedError
from syncscope.verify.request import Program


def traceback(raised: str) -> str:
    return f'so far\nTraceback (most recent call last):\n  File "train.py", line 1, in <module>\n    run()\n{raised}\n'


@pytest.mark.parametrize(
    ("raised", "hint"),
    [
        ("EOFError: EOF when reading a line", "its standard input is empty here"),
        ("KeyError: 'LOCAL_RANK'", ONE_RANK),
        ("ValueError: no EOFError, only a word about one", "it must run by itself"),
    ],
)
def test_a_hint_is_of_what_was_raised(raised: str, hint: str) -> None:
    found = cannot_run(Program("train.py", device="ocl"), RunFailedError(1, traceback(raised)))
    assert raised in str(found)
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("code", "said", "name"),
    [
        (1, traceback("torch.cuda.OutOfMemoryError: too much"), "OutOfMemoryError"),
        (1, traceback("KeyboardInterrupt"), "KeyboardInterrupt"),
        (3, "bye", ""),
        (0, "", ""),
    ],
)
def test_the_name_of_what_was_raised(code: int, said: str, name: str) -> None:
    assert RunFailedError(code, said).raised == name
