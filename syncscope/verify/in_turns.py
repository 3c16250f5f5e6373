"""One run in which versions take turns: woven files, blocks of steps that the search asks for, and their times.

Search and run talk in lines of JSON. The run says how long it took and what cannot take turns once it is warm, is asked for
`{"order": [0, 2, 1]}`, and answers each block with `{"version": 2, "step": ns, "work": ns, "fed": ns}`, by the clock, of
processors, and up to where batches were there, until it is ended or the program does. Asked for `{"compare": [0, 0, 2],
"seconds": 6}` it makes the same steps by each, in about so much time: `same_steps`.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean, median, pstdev
from time import monotonic, monotonic_ns
from typing import Any

from syncscope.turns.selector import Selector
from syncscope.turns.weaving import CannotTakeTurnsError, Woven, heard, weave
from syncscope.verify.fed import Fed
from syncscope.verify.periods import Periods
from syncscope.verify.rehearsal import wait
from syncscope.verify.request import Request
from syncscope.verify.same_steps import SameSteps
from syncscope.verify.timing import ALIKE, LONG
from syncscope.verify.worked import worked

WARM = 8  # steps at least before the first block
COLD = 40  # steps after which it begins, however much they differ
LASTS = 5e7  # ns that the steps of a block take together, as far as these numbers allow:
SHORT, MANY = 4, 40  # steps of a block that count, where each begins anew what differs
JITTER, LONGER = 0.25, 3  # where steps vary by this part, blocks are so many times as long, or whole epochs,
SEVERAL = 3  # unless these are more than so many blocks: a pause between two is then in few of them, and cut off
PATIENT = 8.0  # s in which what differs is to be begun anew, or it is taken for what runs once
LONGEST = 4e9  # ns between two times that it is
BRIEF = 4e8  # ns from its begin to the next of what is better all of one version,
UNEVEN = 1.2  # unless steps are so much longer on the whole than they usually are


def fewest_steps(versions: int) -> int:
    """How many steps a program makes at least in which so many versions take a turn."""
    return WARM + versions * (SHORT + 1)


def most_steps(versions: int) -> int:
    """How many one takes where steps are short, or differ."""
    return WARM + versions * (MANY + 1)


def woven(before: Mapping[str, bytes], versions: Mapping[int, Mapping[str, bytes]]) -> dict[str, Woven]:
    """The files that change in these versions (numbers from 1), each with all of them.

    Raises:
        CannotTakeTurnsError: why they cannot run in turns.
    """
    found: dict[str, Woven] = {}
    first = 0
    for path in sorted({path for files in versions.values() for path in files}):
        own = {number: files[path] for number, files in versions.items() if path in files}
        try:
            found[path] = weave(path, before[path], own, first)
        except CannotTakeTurnsError as error:
            raise CannotTakeTurnsError(f"{os.path.basename(path)}: {error}") from None
        first = max(first, found[path].next)
    return found


def read(copies: Mapping[str, str]) -> dict[str, bytes]:
    """The contents that lie in copies of files."""
    return {path: Path(copy).read_bytes() for path, copy in copies.items()}


class Conductor:
    """In the run: which version a step is of, and how long it took."""

    def __init__(self, request: Request, optimizers: dict[int, Any]) -> None:
        from syncscope.tracers.step_times import StepTimes

        assert request.talk is not None
        self._request, self._optimizers = request, optimizers
        self._comparison: SameSteps | None = None
        self._waits: dict[str, Any] = {}  # what is to be compared from where the last of several optimizers has stepped
        self._ask, self._answer = request.talk
        self._name = request.folder  # what is left of another run's talk is none of ours
        before = {path: Path(path).read_bytes() for files in request.versions for path in files}
        before |= read(request.overlay)
        self.files = woven(before, {number: read(files) for number, files in enumerate(request.versions, 1)})
        self.selector = Selector()
        self.selector.install()
        self._versions = range(1, len(request.versions) + 1)
        self._ends: list[int] = []  # of steps, ns, as long as it warms up
        self._began = monotonic()
        self._periods, self._period = Periods(), 1  # steps from one time that a block may begin to the next
        self._needed = 1  # the same where it must begin there
        self._order: list[int] = []
        self._times: Any = None
        self._new = partial(StepTimes, kept=None, queued=True, apart=0)
        self._worked: int | None = None  # ns of the processors by the begin of a block, with nothing left to do
        self._fed, self._fed_before = Fed(), 0  # the same until batches were there
        self._steps = self._long = 0  # steps of this block so far, and of a block
        self._head: int | None = None  # where blocks begin, if not at any step
        self._seen = 0  # of these when the head was begun last
        self._process = os.getpid()
        self._chosen = 0  # the version of the block that comes, or is under way
        self.ended: Callable[[], None] = lambda: None  # called where nobody asks for more, and no step has just ended
        self._heard = b""

    def heard(self, path: str) -> ast.Module | None:
        """Any other file of the program's own, with loops that ask what they are over."""
        from syncscope.tracers import places

        if not path.endswith(".py") or places.kind_of_file(os.path.realpath(path)) != places.USER:
            return None
        try:
            return heard(ast.parse(Path(path).read_bytes()))
        except (OSError, SyntaxError, ValueError, RecursionError):  # Python will say what is wrong
            return None

    def listen(self) -> None:
        """What a loader gives is kept, too, whoever asks for it."""
        loading = sys.modules.get("torch.utils.data.dataloader")  # which is there before the program, if it can be
        if loading is None:
            return
        give, tape = loading._BaseDataLoaderIter.__next__, self.selector.tape

        def next_of(iterator: Any) -> Any:
            return tape.of(iterator, give).next()

        loading._BaseDataLoaderIter.__next__ = next_of
        self._fed.listen(loading)

    def boundary(self) -> bool:
        """A step has ended: another block may begin. Whether there is more to be run."""
        if self._waits or self._comparison is not None:
            return self._last is not None or self._compared()
        if not self._long:
            self._ends.append(monotonic_ns())
            self._periods.step(self.selector.entered)
            if not self._is_warm():
                return True
            self._plan_blocks()
            once = {str(number): why for number in self._versions if (why := self._once(number))}
            self._say({"seconds": monotonic() - self._began, "once": once})
            return self._next()
        self._steps += 1
        if self.selector.head is not None:
            return True  # blocks begin and end where the head does
        if self._steps == 1:  # the first step of a block has what the one before left
            self._begin()
        elif self._steps > 1:
            self._times.boundary()
        return self._steps <= self._long or self._end()

    @property
    def _last(self) -> Any:
        """Of several optimizers that which steps last: between them a graph waits for its backward pass, which comes once."""
        return [*self._optimizers.values()][-1] if len(self._optimizers) > 1 else None

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped: where it is the last of several, the same steps end here, or begin."""
        if optimizer is not self._last or os.getpid() != self._process:
            return
        asked, self._waits = self._waits, {}
        more = self._compare(asked) or self._next() if asked else self._comparison is None or self._compared()
        if not more:
            self.ended()

    def _compared(self) -> bool:
        """A step of a comparison has ended. Whether there is more to be run."""
        assert self._comparison is not None
        if self._comparison.boundary():
            return True
        self._comparison, self.selector.head = None, self._head
        return self._next()

    def _compare(self, asked: Mapping[str, Any]) -> bool:
        """The same steps begin here; False where that cannot be, which is told."""
        versions = asked["compare"]
        most = asked["seconds"] * 1e9 / median(self._lengths()) / len(versions)
        self._comparison = SameSteps(self._request, self._optimizers, self.selector, self._passages, self._say, most)
        self.selector.head = None
        if self._comparison.begin(versions):
            return True
        self._comparison, self.selector.head = None, self._head
        return False

    def _headed(self) -> None:
        """What differs is begun anew: a block ends where the next begins. More than once before a step is one time."""
        if (self._times is not None and self._steps == self._seen) or os.getpid() != self._process:
            return
        self._seen = self._steps
        if self._times is not None:
            self._times.boundary()
            if self._steps < self._long:
                return
            if not self._end():
                self.ended()
        if self._times is None:
            self.selector.version, self._steps, self._seen = self._chosen, 0, 0
            wait()
            self._begin()

    def _begin(self) -> None:
        """The steps that count begin."""
        self._worked = self._worked_by_now()
        self._times, self._fed_before = self._new(), self._fed.ns
        self._times.boundary()

    def _end(self) -> bool:
        """A block has ended: says how long its steps took, and begins the next. Whether there is one."""
        steps = self._steps - (self.selector.head is None)
        self._times.pause()
        now = self._worked_by_now()
        lengths = [length for length in self._times.every() if length is not None]
        is_whole = len(lengths) == len(self._times)
        told = sum(lengths) / steps if is_whole else None
        work = None if now is None or self._worked is None else (now - self._worked) / steps
        fed = (self._fed.ns - self._fed_before) / steps
        self._say({"version": self.selector.version, "step": told, "work": told and work, "fed": told and fed})
        self._times = None
        return self._next()

    def _worked_by_now(self) -> int | None:
        """What the processors have done, with all that they were asked for: a version in which nothing waits would leave the
        most of its work to the next."""
        if worked() is not None:
            wait()
        return worked()

    def _lengths(self) -> list[int]:
        return [b - a for a, b in zip(self._ends, self._ends[1:], strict=False)][WARM // 2 :]

    def _is_warm(self) -> bool:
        last = self._lengths()[-ALIKE:]
        if len(self._ends) < WARM or len(last) < ALIKE:
            return False
        since = monotonic_ns() - self._ends[0]
        if not self._periods.known(self._all_passages) and since < PATIENT * 1e9:
            return False
        if not self._periods.known(self._filled) and since < LONGEST:
            return False
        if self._varies and not self._periods.known(self._around) and len(self._ends) < COLD:
            return False
        return len(self._ends) >= COLD or max(last) <= LONG * min(last)

    @property
    def _all_passages(self) -> list[int]:
        return [passage for one in self.files.values() for passage in one.passages]

    @property
    def _filled(self) -> list[int]:
        """Where lists begin that passages fill, and that are finished behind them."""
        return [passage for one in self.files.values() for passage in one.filled]

    @property
    def _around(self) -> list[int]:
        """Loops and functions around loops that differ."""
        return [passage for one in self.files.values() for passage in one.around]

    @property
    def _varies(self) -> bool:
        """Whether steps vary, as where batches of several workers come in bursts, and each epoch begins with a pause."""
        return pstdev(self._lengths()) > JITTER * fmean(self._lengths())

    def _once(self, version: int) -> str:
        """Why a version cannot take turns: what it changes began before the steps and goes on, or is not reached in them."""
        if _is_compiled():
            return "torch.compile has compiled some of the program"
        for one in self.files.values():
            for passage, (name, line, versions) in one.passages.items():
                period = self._periods.of(passage) if version in versions else 1
                if period is None:
                    return f"{name} (line {line}) is not begun anew in each step"
                if period > self._period:
                    return f"{name} (line {line}) is begun anew every {period} steps only"
        return ""

    def _plan_blocks(self) -> None:
        """A block is as many steps as begin all that differs at least once."""
        usual = median(self._lengths())
        each = fmean(self._lengths())
        most = BRIEF if each < UNEVEN * usual else LONGEST  # else blocks would be with a rollout, and without one
        periods = [
            period
            for passage in self._all_passages
            if (period := self._periods.of(passage)) and period * usual <= LONGEST
        ]
        periods += [
            period for passage in self._filled if (period := self._periods.of(passage)) and period * each <= most
        ]
        steps = round(min(MANY, max(SHORT, LASTS / usual) * (LONGER if self._varies else 1)))
        whole = [
            period
            for passage in self._around
            if 1 < (period := self._periods.of(passage) or 1) <= SEVERAL * steps and period * each <= LONGEST
        ]
        self._needed = max(periods, default=1)
        self._period = max(self._needed, min(whole, default=1) if self._varies else 1)
        self._long = steps if self._period == 1 else max(1, round(LASTS / each / self._period)) * self._period
        if self._period > 1:
            begun = [passage for passage, _ in self.selector.entered]  # the outer one before those inside of it
            self._head = next(passage for passage in begun if self._periods.of(passage) == self._period)
            self.selector.head, self.selector.headed = self._head, self._headed

    def _next(self) -> bool:
        """Begins the block that is asked for; False where none is, and the run is to end."""
        while not self._order:
            said = self._hear()
            if not said:
                return False
            if "compare" in said and self._needed > 1:
                self._say({"compared": None, "why": f"what differs is begun anew every {self._needed} steps only"})
            elif "compare" in said and self._last is not None:
                self._waits = said
                return True
            elif "compare" in said:
                if self._compare(said):
                    return True
            else:
                self._order = said["order"]
        self._chosen, self._steps = self._order.pop(0), 0
        if self.selector.head is None:
            self.selector.version = self._chosen
        return True

    def _passages(self, version: int) -> set[int]:
        """Those in which a version differs."""
        return {p for one in self.files.values() for p, (_, _, versions) in one.passages.items() if version in versions}

    def _hear(self) -> dict[str, Any]:
        while b"\n" not in self._heard:
            more = os.read(self._ask, 1 << 16)
            if not more:
                return {}
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said if said["run"] == self._name else self._hear()

    def _say(self, what: Mapping[str, Any]) -> None:
        os.write(self._answer, json.dumps({**what, "run": self._name}).encode() + b"\n")


def _is_compiled() -> bool:
    """Whether torch's compiler has made code of its own of the program's: it would make it anew for each version."""
    utils = sys.modules.get("torch._dynamo.utils")
    return bool(utils and utils.counters["frames"].get("ok"))
