"""Whether a place runs in every step, as a value: a reason, and the one place of its words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """A reason to be hot or cold. What follows from one is asked of it, never of its words."""

    hot: bool
    prose: str  # with places for what the reason is about, `{of}` for another reason

    def __new__(cls, hot: bool, prose: str) -> Reason:
        made = object.__new__(cls)
        made._value_ = len(cls.__members__)
        made.hot, made.prose = hot, prose
        return made

    def __call__(self, *about: str, of: Heat | None = None) -> Heat:
        """This reason, about these names."""
        return Heat(self, about, of)

    # what runs in every step
    TRAINING = True, "in the training loop"  # known by the backward pass in it: outranks what the function is called
    LOOP = True, "in a training loop"  # by the function's name
    STEP = True, "in the training step"
    NAMED = True, "in `{0}`"
    IN_LOSS = True, "in the loss"
    LOSS = True, "in the loss `{0}`"
    LOADER = True, "in a loop over a loader"
    MAYBE = True, "`{0}` may run in every step"  # no name says so, and nothing speaks against it
    SURE = True, ""
    KERNEL = True, "in the kernel `{0}`"
    IN_A_KERNEL = True, "in a kernel"
    ENQUEUED = True, "enqueued"
    IN_LOOP = True, "in a loop"
    BETWEEN = True, "between launches"
    MAPPED = True, "mapped memory"

    # by the file
    SILENT = False, ""
    TESTS = False, "in a file of tests"
    TEACHES = False, "in a notebook that shows how it is used"
    TOP_LEVEL = False, "at the top level of the file, once"
    ASIDE = False, "in `{0}`: beside the training"

    # by what a function or class is called
    SET_UP = False, "in `{0}`: set-up"
    SETTER = False, "in the setter of `{0}`: set-up"
    COMMAND = False, "`{0}` is a command: it runs once"
    CACHED = False, "`{0}` is cached: it runs once"
    NO_GRAD = False, "under no_grad: not in the training step"
    EVALUATION = False, "in `{0}`: evaluation"
    DECODING = False, "in `{0}` of `{1}`: evaluation"
    INFERENCE = False, "in `{0}`: inference"
    SAMPLES = False, "in `{0}`: it samples, when training is over"
    RESULT = False, "in `{0}`: a result, once an epoch"
    METRIC = False, "in `{0}` of a metric: a result, once an epoch"
    CHECK = False, "in `{0}`: a check that is meant"
    TO_HOST = False, "in `{0}`: it is asked for what the host needs"
    DATA = False, "in `{0}`: data is prepared on the host"
    NEW_WEIGHTS = False, "in `{0}`: weights are made anew, once"

    # by what a function does
    OUTSIDE = False, "in `{0}`, outside its training loop"  # what such a function does before and after
    NO_STEP = False, "in `{0}`, which calls no step: once"
    LOG = False, "in `{0}`: for the log"
    DATA_SET = False, "in `{0}`, which goes through a data set: once"
    KEEPS = False, "`{0}` keeps what it makes: it runs once"
    CALLED_COLD = False, "`{0}` is called {of}"

    # by what it is for in its project
    REDEFINED = False, "`{0}` is defined again further down: this one never runs"
    PREPARES = False, "`{0}` stands among transforms, or makes batches: data is prepared on the host"
    OVERRIDDEN = False, "`{0}` is there to be derived from, and who does has a `{1}` of its own"
    UNREACHED = False, "nothing that runs in every step speaks of `{0}`"
    UNUSED = False, "nobody imports `{0}`, and nothing that is used speaks of it"
    NAMESAKE = False, "nobody imports this `{0}`: another of its name is in use"
    OFFERED = False, "`{0}` gives a number of Python, and no step here asks for it"

    # by the block
    EPOCHS = False, "in the loop over epochs, around the one over steps"
    MAIN = False, "under `if __name__ == '__main__'`: once"
    WHEN = False, "only when `{0}`"
    WHEN_NOT = False, "only when not `{0}`"
    WHEN_GIVEN = False, "only when `{0}` is given"
    WHEN_MOVED = False, "only when `{0}`: it is moved once"
    WHEN_NOTHING = False, "only when `{0}`: there is nothing to do"
    FIRST = False, "only when `{0}`: the first time"
    ODD = False, "only when it says that values are odd"
    WARNS = False, "only when it warns"
    RAISES = False, "only when it raises"
    BEFORE_ERROR = False, "only before an error is raised"
    AFTER_ERROR = False, "only after an error was caught"
    MOVED = False, "it is moved once, and kept"

    # by the wait itself
    BY_DESIGN = False, "by design, once a step"
    CLOCK = False, "a clock for the log: to wait for it would cost more than it tells"
    ASKED_AFTER = False, "the test before has just waited: nothing is in flight"
    POSITIONS = False, "looked for once, and the positions are what is needed"
    ASKED = False, "asked for, where nothing says that it runs in every step"
    NO_FORM = False, "asked for once, and there is no form that does not check"
    BATCH = False, "of a batch that nothing here pins: it is copied by the host all the same"
    PREPARED = False, "of what was just prepared, in memory that nobody pins: it is copied by the host all the same"
    ENVIRONMENT = False, "of what an environment on the host gave: nothing is in flight"
    GENERATION = False, "beside a generation, which takes far longer"
    BUFFER = False, "for a buffer that the host keeps"
    SOLVER = False, "for a solver that runs on the host"
    ACTION = False, "for an environment that runs on the host"
    SCORE = False, "for `{0}`, which runs on the host"
    COPIED = False, "beside what the same statement copies to the host"
    SAME_STATEMENT = False, "the same statement has just waited: nothing is in flight"
    ONE_NUMBER = False, "the one number that it gives"

    # by what it is worth
    IDLE = False, "{of}, and nothing is known to write instead"
    BEFORE = False, "{0} waits right after, and stays"
    DRAINED = False, "{0} has just waited: nothing is in flight"


@dataclass(frozen=True, slots=True)
class Heat:
    """Why a place runs in every step, or does not: `about` are the names that the reason is about, `of` another reason."""

    reason: Reason
    about: tuple[str, ...] = ()
    of: Heat | None = None

    @property
    def hot(self) -> bool:
        """Whether it runs in every step."""
        return self.reason.hot

    @property
    def words(self) -> str:
        """The reason in words; "" where none needs to be given."""
        return self.reason.prose.format(*self.about, of=self.of.words if self.of is not None else "")


SURE, SILENT = Reason.SURE(), Reason.SILENT()
