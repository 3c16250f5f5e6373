"""Which line runs, as it is read in C without Python's lock, beside what Python itself says; needs no torch."""

import asyncio
import ctypes as c
import functools
import gc
import os
import shutil
import sys
import sysconfig
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from syncscope import native
from syncscope.tracers import places, record_file
from syncscope.tracers.lines import library as lines

if lines.library() is None:
    pytest.skip("no compiler, or an interpreter whose frames nobody knows", allow_module_level=True)


class At(NamedTuple):
    """A line by both accounts: in C `line` and `function`, and `caller`; by `sys._getframe` what `python` says."""

    line: int
    function: str
    caller: int
    python: tuple[int, str]


class Noted:
    """Asks for the line of whoever calls it, through a function in C that gives up the lock, as torch's operators do."""

    def __init__(self, folder: Path) -> None:
        self._file = record_file.RecordFile("python", folder)
        self._without_lock = c.CDLL(lines.library()._name)
        self._without_lock.here.restype = c.c_uint64
        self.asked: list[tuple[int, Any]] = []
        lines.start(self._file.handle)

    @functools.cached_property
    def here(self) -> Callable[[], int]:
        ask, asked, frame = self._without_lock.here, self.asked, sys._getframe
        own = "site-packages/torch/in_between.py"  # as the frames of torch that lie between an operator and its caller

        def here() -> int:
            found = ask()
            asked.append((found, (frame(1).f_lineno, frame(1).f_code.co_qualname)))
            return found

        return types.FunctionType(
            here.__code__.replace(co_filename=f"/x/{own}"), globals(), "here", None, here.__closure__
        )

    def told(self) -> list[At]:
        texts = record_file.texts(self._file.read().records, record_file.LINE)
        known = {0: (None, "")} | lines.known(texts)
        found = []
        for packed, python in self.asked:
            at, caller, _ = (int(n[0]) for n in lines.unpacked(np.array([packed])))
            place, function = known[at]
            outer = known[caller][0]
            found.append(At(place.line if place else 0, function, outer.line if outer else 0, python))
        return found

    def checked(self) -> list[At]:
        """All of it, where both accounts agree."""
        told = self.told()
        for at in told:
            line, function = at.python
            for made in ("<listcomp>", "<genexpr>"):
                function = function.removesuffix(f".<locals>.{made}")
            assert (at.line, at.function) == (line, function)
        return told

    def close(self) -> None:
        lines.stop()
        self._file.remove()


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Noted]:
    found = Noted(tmp_path)
    yield found
    found.close()


def code_of(text: str, path: str, **given: Any) -> dict[str, Any]:
    names: dict[str, Any] = given
    exec(compile(textwrap.dedent(text), path, "exec"), names)
    return names


def test_functions_and_expressions_over_several_lines(noted: Noted) -> None:
    here = noted.here

    def several() -> list[int]:
        return [
            here(),
            here() + here(),
            *[here() for _ in range(2)],
            max(
                here(),
                1,
            ),
        ]

    several()
    (lambda: here())()
    first = several.__code__.co_firstlineno
    assert [at.line - first for at in noted.checked()] == [2, 3, 3, 4, 4, 6, 12]


def test_calls_in_generators_and_coroutines_are_known_by_line(noted: Noted) -> None:
    here = noted.here

    def three() -> Iterator[int]:
        yield here()
        yield from (here() for _ in range(2))
        yield here()

    async def waits(n: int) -> int:
        here()
        await asyncio.sleep(0)
        return here() + (await waits(n - 1) if n else 0)

    async def several() -> None:
        await asyncio.gather(waits(2), waits(1))

    for _ in three():
        here()
    asyncio.run(several())
    assert len(noted.checked()) == 8 + 2 * 5


def test_threads_of_which_each_has_its_own(noted: Noted) -> None:
    here = noted.here

    def first() -> None:
        for _ in range(2000):
            here()

    def second() -> None:
        for _ in range(2000):
            here()

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {at.function.rpartition(".")[2] for at in noted.checked()} == {"first", "second"}
    assert len(noted.asked) == 4000


def test_a_thread_that_python_does_not_know_has_no_line(noted: Noted) -> None:
    system = c.CDLL(None)
    thread = c.c_ulong()
    ask = c.cast(noted._without_lock.here, c.c_void_p)
    result = c.c_void_p()
    assert system.pthread_create(c.byref(thread), None, ask, None) == 0
    assert system.pthread_join(thread, c.byref(result)) == 0
    assert not result.value


def test_code_that_goes_and_other_code_at_its_address(noted: Noted) -> None:
    """As exec makes it: of the same size, at the same address, with the same name, and another line."""
    seen, addresses = [], []
    for blank in [0, 1, 2, 3, 5, 8, 13, 21] * 8:
        text = "\n" * blank + "def f():\n" + "\n" * (21 - blank) + "    return here()\n"
        names = code_of(text, "<string>", here=noted.here)
        addresses.append(id(names["f"].__code__))
        names["f"]()
        seen.append(22 + 1)
        names.clear()
        gc.collect(0)
    assert len(set(addresses)) < len(addresses)  # else nothing was tried
    assert [at.line for at in noted.checked()] == seen


def test_lines_that_differ_at_one_address(noted: Noted) -> None:
    seen = []
    for blank in range(40):
        names = code_of("\n" * blank + "def f(): return here()\n", "<string>", here=noted.here)
        names["f"]()
        seen.append(blank + 1)
        del names
    assert [at.line for at in noted.checked()] == seen


LIBRARY = """
def outer(f):
    return f()

def inner(here):
    return here()
"""


def test_a_line_of_a_library_and_the_users_that_led_there(noted: Noted, tmp_path: Path) -> None:
    library = code_of(LIBRARY, str(tmp_path / "lib/python3.11/site-packages/zoo/model.py"))
    torch = code_of(LIBRARY, str(tmp_path / "lib/python3.11/site-packages/torch/nn/modules/module.py"))
    here = noted.here

    def user() -> None:
        library["inner"](here)  # the library's line 6, called from here
        torch["inner"](here)  # torch's: this line alone
        library["outer"](lambda: torch["inner"](here))  # the user's own again, below the library's
        torch["outer"](lambda: library["inner"](here))

    user()
    first = user.__code__.co_firstlineno
    told = [(at.line, at.caller and at.caller - first) for at in noted.told()]
    assert told == [(6, 1), (first + 2, 0), (first + 3, 0), (6, 4)]


def test_what_torch_compile_makes_of_a_function_stands_at_its_call(noted: Noted) -> None:
    made = code_of("def f(): return __compiled_fn_3_1234()\n", "train.py", __compiled_fn_3_1234=noted.here)["f"]
    made()
    (at,) = noted.told()
    assert at.line == sys._getframe().f_lineno - 2


def test_names_in_all_alphabets(noted: Noted) -> None:
    names = code_of("def größe(): return here()\ndef 漢字(): return here()\n", "/tmp/Бук/𝓂.py", here=noted.here)
    names["größe"](), names["漢字"]()
    assert [at.function for at in noted.checked()] == ["größe", "漢字"]
    texts = record_file.texts(noted._file.read().records, record_file.LINE)
    assert {place.path for place, _ in lines.known(texts).values()} == {"/tmp/Бук/𝓂.py"}


def test_nothing_is_said_while_nobody_records(noted: Noted) -> None:
    noted.here()
    lines.stop()
    noted.here()
    assert [bool(packed) for packed, _ in noted.asked] == [True, False]


def test_a_second_recording_numbers_anew(noted: Noted, tmp_path: Path) -> None:
    def ask(by: Noted) -> int:
        return by.here()

    ask(noted)
    (tmp_path / "second").mkdir()
    second = Noted(tmp_path / "second")
    ask(second)
    assert len(second.checked()) == 1
    second.close()


def test_a_fork_says_nothing(noted: Noted) -> None:
    child = os.fork()
    if not child:
        os._exit(int(noted._without_lock.here() != 0))
    assert os.waitpid(child, 0)[1] == 0
    assert noted.here()


@pytest.mark.parametrize(
    "path",
    [
        "train.py",
        "/home/me/torch/train.py",
        "/x/site-packages/torch/nn/functional.py",
        "/x/site-packages/torchvision/ops/boxes.py",
        "/x/site-packages/triton/runtime/jit.py",
        "/usr/lib/python3/dist-packages/zoo.py",
        "/x/site-packages/a/site-packages/torch/b.py",
        "/x/site-packages/torch/site-packages/b.py",
        "<string>",
        "<stdin>",
        "<frozen runpy>",
        "<eval_with_key>.7",
        "/tmp/ipykernel_12/345.py",
        "/tmp/torchinductor_me/ab/cab.py",
        threading.__file__,
        places.__file__,
        lines.__file__ + "x",
        "",
    ],
)
def test_whose_file_it_is_by_both_accounts(path: str, noted: Noted) -> None:
    """A function of this file asks; what lies between it and us says whose it is."""
    names = code_of("def f(): return here()\n", path, here=noted.here)

    def user() -> None:
        names["f"]()

    user()
    (at,) = noted.told()
    kind = places.kind_of_file(path)
    own = user.__code__.co_firstlineno + 1
    line, caller = {places.USER: (1, 0), places.LIBRARY: (1, own)}.get(kind, (own, 0))
    assert (at.line, at.caller) == (line, caller)


def test_every_line_of_a_large_table(noted: Noted) -> None:
    """Lines far from one another, back and forth, without columns: each way in which the table is written."""
    body = "".join("\n" * (n * n % 70) + f"    here() if {n} else (\n{n})\n" for n in range(300))
    code_of(f"def f():\n{body}\nf()\n", "many.py", here=noted.here)
    code_of("def f():\n" + "\n" * 300_000 + "    here()\n    here()\nf()\n", "far.py", here=noted.here)
    code_of("f = lambda: (\nhere(),\n" + "\n" * 90 + "here())\nf()\n", "lambda.py", here=noted.here)
    assert len(noted.checked()) == 299 + 2 + 2


@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
def test_why_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a free-threaded Python has it, whose headers say so."""
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    flags = ("-DPy_GIL_DISABLED", f"-I{sysconfig.get_path('include')}")
    monkeypatch.setattr(lines, "built", lambda source, *_: native.built(source, *flags))
    monkeypatch.setattr(native.Path, "exists", lambda path: False)
    monkeypatch.setattr(lines, "_reasons", [])
    lines.library.cache_clear()
    try:
        assert lines.library() is None
        assert lines.why_not() == "it is not known how this interpreter keeps its frames"
        assert lines.asked() is None
    finally:
        monkeypatch.undo()
        lines.library.cache_clear()
    assert not lines.why_not()
