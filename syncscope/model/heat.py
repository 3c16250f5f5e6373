"""Whether a place runs in every step, as a value: a reason, and the one place of its words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class Telling(Enum):
    """How much is said of a wait."""

    WHOLE = 2  # it waits in a step
    SHORT = 1  # it does, and nobody gains by reading more than its line
    NOT = 0  # it does not


WHOLE, SHORT, NOT = Telling


class Role(StrEnum):
    """When a function runs, as far as its project says."""

    STEP = "step"  # a step reaches it
    SHARED = "shared"  # a step reaches it, and files that import it
    CALLED = "called"  # a step calls it, whatever it is called
    OFFERED = "offered"  # no step of the project speaks of it, but files do: it is for others to call
    PUBLIC = "public"  # no step of the project reaches it, but its package offers it, or what speaks of it, to those of others
    CALLED_BY_PUBLIC = "called by public"  # what its package offers calls it, whatever it is called
    UNREACHED = "unreached"
    SELDOM = "seldom"  # all that calls it stands in arms that are gone into once in many steps
    UNTRAINED = "untrained"  # the training loops of its program neither build nor call it
    OFF = "off"  # a flag, asked for as `function(flag)`: nothing that its program's training loops call turns it on
    PREPARES = "prepares"  # data, on the host: it stands among transforms, or puts batches together
    OVERRIDDEN = "overridden"  # by all classes that objects are made of
    NAMESAKE = "namesake"  # nobody imports it: another of its name is the one in use
    UNUSED = "unused"  # nobody imports it, or speaks of it in its own file


class Reason(Enum):
    """A reason to be hot or cold. What follows from one is asked of it, never of its words."""

    telling: Telling
    prose: str  # with places for what the reason is about, `{of}` for another reason

    def __new__(cls, telling: Telling, prose: str) -> Reason:
        made = object.__new__(cls)
        made._value_ = len(cls.__members__)
        made.telling, made.prose = telling, prose
        return made

    __hash__ = object.__hash__  # there is one object of each, and they are asked for by the hundred thousand

    def __call__(self, *about: str, of: Heat | None = None) -> Heat:
        """This reason, about these names."""
        return Heat(self, about, of)

    # what runs in every step
    TRAINING = WHOLE, "in the training loop"
    LOOP = WHOLE, "in a training loop"  # by the function's name
    STEP = WHOLE, "in the training step"
    NAMED = WHOLE, "in `{0}`"
    IN_LOSS = WHOLE, "in the loss"
    LOSS = WHOLE, "in the loss `{0}`"
    OF_LOSS = WHOLE, "in `{0}` of a loss"  # by its class alone: what speaks of it tells whether it runs
    LOADER = WHOLE, "in a loop over a loader"
    MAYBE = WHOLE, "`{0}` may run in every step"  # no name says so, and nothing speaks against it
    PASSES = WHOLE, "each pass of a training loop runs `{0}`"  # the one of its own file
    CALLED = WHOLE, "a step calls `{0}`"  # whose name says that it runs seldom
    FOR_OTHERS = SHORT, "`{0}` is for the steps of others: its package offers it"
    CONFIGURED = WHOLE, "`{0}` runs in every step, as the configuration says"
    SURE = WHOLE, ""
    KERNEL = WHOLE, "in the kernel `{0}`"
    IN_A_KERNEL = WHOLE, "in a kernel"
    ENQUEUED = WHOLE, "enqueued"
    IN_LOOP = WHOLE, "in a loop"
    BETWEEN = WHOLE, "between launches"
    MAPPED = WHOLE, "mapped memory"

    # by the file
    SILENT = NOT, ""
    TESTS = NOT, "in a file of tests"
    TEACHES = NOT, "in a notebook that shows how something is used, as `{0}` says"
    COPY = NOT, "in a copy that somebody made by hand"
    TOP_LEVEL = NOT, "at the top level of the file, once"
    ASIDE = NOT, "in `{0}`: beside the training"

    # by what a function or class is called
    CONFIGURED_COLD = NOT, "`{0}` runs in no step, as the configuration says"
    SET_UP = NOT, "in `{0}`: set-up"
    OF_STATE = NOT, "`{0}` is called where a state is loaded or saved"
    SETTER = NOT, "in the setter of `{0}`: set-up"
    COMMAND = NOT, "`{0}` is a command: it runs once"
    CACHED = NOT, "`{0}` is cached: it runs once"
    NO_GRAD = NOT, "under no_grad: not in the training step"
    EVALUATION = NOT, "in `{0}`: evaluation"
    OVER_HELD_OUT = NOT, "in a loop over `{0}`, which is not trained on"
    DECODING = NOT, "in `{0}` of `{1}`: evaluation"
    INFERENCE = NOT, "in `{0}`: inference"
    SAMPLES = NOT, "in `{0}`: it samples, when training is over"
    RESULT = NOT, "in `{0}`: a result, once an epoch"
    METRIC = NOT, "in `{0}` of a metric: a result, once an epoch"
    CHECK = NOT, "in `{0}`: a check that is meant"
    TO_HOST = NOT, "in `{0}`: it is asked for what the host needs"
    DATA = NOT, "in `{0}`: data is prepared on the host"
    NEW_WEIGHTS = NOT, "in `{0}`: weights are made anew, once"

    # by what a function does
    OUTSIDE = NOT, "in `{0}`, outside its training loop"  # what such a function does before and after
    NO_STEP = NOT, "in `{0}`, which calls no step: once"
    LOG = NOT, "in `{0}`: for the log"
    DATA_SET = NOT, "in `{0}`, which goes through a data set: once"
    EPISODE = NOT, "in `{0}` of an environment: once an episode"
    KEEPS = NOT, "`{0}` keeps what it makes: it runs once"
    KEEPS_EACH = NOT, "`{0}` keeps what it makes for each `{1}`: it seldom runs"
    CALLED_COLD = NOT, "`{0}` is called {of}"

    # by what it is for in its project
    REDEFINED = NOT, "`{0}` is defined again further down: this one never runs"
    PREPARES = NOT, "`{0}` stands among transforms, or makes batches: data is prepared on the host"
    OVERRIDDEN = NOT, "`{0}` is there to be derived from, and who does has a `{1}` of its own"
    UNREACHED = NOT, "nothing that runs in every step speaks of `{0}`"
    COUNTED = NOT, "`{0}` is called only where steps are counted: once in many of them"
    UNTRAINED = NOT, "no training loop of the project builds or calls `{0}`"
    UNUSED = NOT, "nobody imports `{0}`, and nothing that is used speaks of it"
    NAMESAKE = NOT, "nobody imports this `{0}`: another of its name is in use"
    OFFERED = NOT, "`{0}` gives a number of Python, and no step here asks for it"
    UNASKED = NOT, "`{0}` is for others to call, and nothing says that they do so in a step"

    # by the block
    EPOCHS = NOT, "in the loop over epochs, around the one over steps"
    PACED = NOT, "in a loop that waits for somebody, or shows each pass"
    MAIN = NOT, "under `if __name__ == '__main__'`: once"
    WHEN = NOT, "only when `{0}`"
    LISTED = NOT, "only when `{0}`: in the few steps of a list"
    OFF = NOT, "only when `{0}`, which is off and which nothing turns on that trains"
    ENDS_EPOCH = NOT, "only when `{0}`: once an epoch"
    SOMETIMES = SHORT, "only when `{0}`: once in {1} steps"
    DELAYED = SHORT, "only when `{0}`: an actor is trained less often than its critics, once in a few steps"
    AROUND = SHORT, "in a loop around the steps of an update: once in many of them"
    SELDOM = NOT, "only when `{0}`: once in {1} steps"
    WHEN_NOT = NOT, "only when not `{0}`"
    NOT_TRAINED = NOT, "only when not `{0}`: in evaluation"
    WHEN_GIVEN = NOT, "only when `{0}` is given"
    WHEN_MOVED = NOT, "only when `{0}`: it is moved once"
    WHEN_NOTHING = NOT, "only when `{0}`: there is nothing to do"
    FIRST = NOT, "only when `{0}`: the first time"
    LAST = NOT, "only when `{0}`: there the training loop ends"
    ODD = NOT, "only when it says that values are odd"
    WARNS = NOT, "only when it warns"
    PROBED = NOT, "only to see whether it can be done"
    RAISES = NOT, "only when it raises"
    BEFORE_ERROR = NOT, "only before an error is raised"
    AFTER_ERROR = NOT, "only after an error was caught"
    MOVED = NOT, "it is moved once, and kept"

    # by the wait itself: what is there runs in every step
    SWITCHED_ON = WHOLE, "switched on once, for every step"
    NOT_FUSED = WHOLE, "once a step, which a fused optimizer does not ask for"
    BY_DESIGN = SHORT, "by design, once a step"
    CLOCK = NOT, "a clock for the log: to wait for it would cost more than it tells"
    TIMED = SHORT, "a clock is read right after, whose time is true by it"
    ASKED_AFTER = SHORT, "the test before has just waited: nothing is in flight"
    POSITIONS = SHORT, "looked for once, and the positions are what is needed"
    ASKED = SHORT, "{of}, and there the host needs what it asks for"
    NO_FORM = SHORT, "asked for once, and there is no form that does not check"
    BATCH = (
        SHORT,
        "the loader does not pin this batch, so the host copies it all the same: `pin_memory=True` changes that",
    )
    PREPARED = SHORT, "what was just prepared lies in memory that is not pinned, so the host copies it all the same"
    ENVIRONMENT = SHORT, "of what an environment on the host gave: nothing is in flight"
    GENERATION = SHORT, "beside a generation, which takes far longer"
    BUFFER = SHORT, "for a buffer that the host keeps"
    SOLVER = SHORT, "for a solver that runs on the host"
    ACTION = SHORT, "for an environment that runs on the host"
    SCORE = SHORT, "for `{0}`, which runs on the host"
    CHECKED = SHORT, "a check of its own, which whoever makes it may switch off"
    COPIED = SHORT, "beside what the same statement copies to the host"
    SAME_STATEMENT = SHORT, "the same statement has just waited: little is in flight"
    ONE_NUMBER = SHORT, "the one number that it gives"
    STAYS = SHORT, "the same statement waits for something else, too, and that stays"

    # by what was recorded, and by whose rule speaks of it
    MEASURED = WHOLE, "measured: it waited in the recorded steps"
    OWN = WHOLE, "{of}"  # of a rule that users bring: whether it is worth telling is theirs to say

    # by what it is worth
    IDLE = SHORT, "{of}, and no fix can be made here"
    BEFORE = SHORT, "line {0} waits right after, and stays"
    BEFORE_IN = SHORT, "line {0} of {1} waits right after, and stays"
    DRAINED = SHORT, "line {0} has just waited: little is in flight"
    DRAINED_IN = SHORT, "line {0} of {1} has just waited: little is in flight"
    RARE = SHORT, "only when `{0}`: there is next to nothing"
    UNGIVEN = SHORT, "it hangs on `{0}`, and nothing here asks for that"
    CONVERTED = SHORT, "only when `{0}`: it is converted the first time"
    OF_HOST = SHORT, "`{0}` is for the host, as its name says"
    NO_DEVICE = SHORT, "nothing here speaks of a device, so that its tensors live on the host"
    FOR_TOKENS = SHORT, "only when `{0}`: for one token after another, when the training is over"
    NO_LOSS = SHORT, "a number of its own is given in place of a loss: nothing is trained by it"
    CALLED_ASIDE = SHORT, "a step calls `{0}`, whose name says that it runs seldom"
    READ_ASIDE = SHORT, "`{0}` asks for numbers, and nothing says that a step calls it"
    PRINTED = SHORT, "for a line that is printed in each call"
    UNSPOKEN = SHORT, "nothing here names `{0}`, to call it or to offer it to others"


@dataclass(frozen=True, slots=True)
class Heat:
    """Why a place runs in every step, or does not: `about` are the names that the reason is about, `of` another reason.

    Of a function of which no name says so, `line` is one of its file that calls it, and `caller` the function there; 0: none.
    """

    reason: Reason
    about: tuple[str, ...] = ()
    of: Heat | None = None
    line: int = 0
    caller: str = ""

    @property
    def hot(self) -> bool:
        """Whether it runs in every step."""
        return self.reason.telling is not NOT

    @property
    def whole(self) -> bool:
        """Whether it does, and is worth more than a line."""
        return self.reason.telling is WHOLE

    @property
    def words(self) -> str:
        """The reason in words; "" where none needs to be given."""
        return self.told("")

    def told(self, more: str) -> str:
        """The same with more behind the words of the reason that it comes from."""
        said = self.reason.prose.format(*self.about, of=self.of.told(more) if self.of is not None else "")
        if self.line:
            said += f": line {self.line} calls it{f', in {self.caller}' * bool(self.caller)}"
        return said + more * (self.of is None)


FOLLOWS = frozenset(
    (
        Reason.DRAINED,
        Reason.DRAINED_IN,
        Reason.BEFORE,
        Reason.BEFORE_IN,
        Reason.ASKED_AFTER,
        Reason.SAME_STATEMENT,
        Reason.STAYS,
        Reason.COPIED,
    )
)
"""What waits beside another wait, at the line that the reason names, else in the same statement."""
IN_TRAINING = frozenset((Reason.TRAINING, Reason.AROUND))
"""Known by the backward pass in the loop: outranks what the function is called."""
CLOCKED = IN_TRAINING | {Reason.LOOP, Reason.STEP, Reason.PASSES}
"""Where a clock tells for the log how training goes on."""
BY_FILE = frozenset((Reason.TESTS, Reason.TEACHES))
"""Cold by what a file or its folder is called, whatever is in it."""
_ALL = list(Reason)
BY_FUNCTION = frozenset(
    (
        *_ALL[_ALL.index(Reason.SILENT) : _ALL.index(Reason.EPOCHS)],
        Reason.MAYBE,
        Reason.PASSES,
        Reason.FOR_OTHERS,
        Reason.ASKED,
    )
) - {Reason.TOP_LEVEL}
"""Said of a function or its file, as a whole: who knows more of it knows better."""
IN_AN_ARM = frozenset(_ALL[_ALL.index(Reason.WHEN) : _ALL.index(Reason.MOVED)]) - {Reason.AROUND}
"""Said of an arm that is gone into on some passes of what is around it."""
SURE, SILENT = Reason.SURE(), Reason.SILENT()


_DOUBTED = (Reason.MAYBE, Reason.FOR_OTHERS, Reason.ASKED)


def measured(heat: Heat) -> Heat:
    """The heat of what a recording saw waiting in its steps: where it runs is no longer a question."""
    if heat.reason is Reason.IDLE and heat.of is not None:
        return Reason.IDLE(of=measured(heat.of))
    return Reason.MEASURED() if not heat.hot or heat.reason in _DOUBTED else heat
