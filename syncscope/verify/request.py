"""What the process of a trial is asked for, and under which names it leaves what it found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

RESULT = "result.json"
PARAMETERS = "parameters.npz"
STATE = "state.npz"  # what else modules hold
STEPPED = "stepped"  # is there as soon as a step has ended
OUTPUT = "output"  # all that the program prints
TRACE = "trace.json.gz"
JOURNAL = "journal"  # what it changes of files
HEAD = 64  # numbers of a value that are kept to say how far it is off; of the others it is known whether they are equal
READY = "ready"  # says the process from which runs are forked, and who tells of what they do to files:
KERNEL, PYTHON = "kernel", "python"
HEARD_BY = "SYNCSCOPE_VERIFY_HEARD_BY"  # has the kernel not be asked
WITHIN = "SYNCSCOPE_VERIFY_IMPORTS"  # modules that are imported before a program is run

Kind = Literal["time", "values", "trace", "stale", "turns"]


@dataclass(frozen=True)
class Program:
    """What is verified: a script or a module with its arguments; `device` stands in for cuda."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    device: str | None = None

    def __str__(self) -> str:
        return " ".join(["-m " * self.module + self.target, *self.arguments])

    @property
    def to_a_device(self) -> str:
        """What has a program that works on the CPU work on a device."""
        if self.device == "ocl":
            return "have it ask for cuda, which --device ocl stands in for"
        return "--device ocl gives it one that runs on the processor, where it asks for cuda"


@dataclass(frozen=True)
class Request:
    """One run of the program. It ends after `steps` steps; without them, once `seconds` have passed since steps are alike.

    `folder` is empty, and gets what was found. `overlay` names the copies that are run in place of files. `perturb` changes the
    last bit of every parameter after the first step. `lines` are the places whose reads are answered late; none: all.
    `skip` steps go before a recording. What it does to files is noted in `journal`. Others run `beside` it, in turns.
    What the `first` run makes before its steps stays. `versions` are the copies of each version that takes turns in it, and
    `talk` the descriptors by which it hears which, and answers.
    """

    kind: Kind
    program: Program
    folder: str
    journal: str = ""
    beside: bool = False
    steps: int | None = None
    seconds: float = 3.0
    overlay: dict[str, str] = field(default_factory=dict)
    perturb: bool = False
    seed: int = 0
    skip: int = 0
    lines: tuple[tuple[str, int], ...] = ()
    first: bool = False
    versions: tuple[dict[str, str], ...] = ()
    talk: tuple[int, int] | None = None

    def said(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Request:
        """From what was `said`."""
        program = said["program"]
        said["program"] = Program(**{**program, "arguments": tuple(program["arguments"])})
        said["versions"] = tuple(said["versions"])
        said["talk"] = tuple(said["talk"]) if said["talk"] else None
        said["lines"] = tuple((path, line) for path, line in said["lines"])
        return cls(**said)
