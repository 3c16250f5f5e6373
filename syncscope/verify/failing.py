"""What to say of a program that fails, or makes no steps, and what may help."""

from __future__ import annotations

import re

from syncscope.errors import UserError
from syncscope.tracers.program import without_gpu
from syncscope.verify.processes import RunFailedError
from syncscope.verify.request import Program

RANKS = re.compile(r"(?:KeyError: '|variable )(?:LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)\b")
ONE_RANK = "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29501"
STEP = "a step ends with optimizer.step(), or with backward() where there is no optimizer"
TWICE = "it ran once, and fails the second time: is something left, a port, a lock, a file outside of its folder?"
FEWEST_STEPS = 4  # that --steps takes


class CannotRunError(UserError):
    """The program itself fails; `said` is what it printed last, `code` its exit code."""

    def __init__(self, message: str, hint: str, said: str, code: int) -> None:
        super().__init__(message, hint)
        self.said, self.code = said, code


def cannot_run(program: Program, error: RunFailedError, again: bool = False) -> CannotRunError:
    """What to say of a program that fails, and what may help; `again`: it ran before."""
    hint = "it must run by itself before it can be verified"
    if error.steps > FEWEST_STEPS:
        hint = f"it made {error.steps} steps before that, and --steps {error.steps - 1} ends it earlier"
    if error.code == 0:
        hint = f"{STEP}; those of processes that it starts (mp.spawn, torchrun) are not seen: let it train in its own"
    if error.raised == "EOFError":
        hint = "its standard input is empty here: give it what it asks for as an argument, or in a file"
    if RANKS.search(error.said):
        hint = f"as one rank: {ONE_RANK} syncscope verify ..."
    if not program.device and (without := without_gpu(error.said)):
        hint = without
    if again:
        hint = TWICE
    return CannotRunError(f"{program} cannot be run: {error.why}", hint, error.said, error.code)
