"""What runs in the steps of a project: the functions that a step speaks of, itself or through others, by name.

A project is gone through as text, which costs a fifth of parsing it. A name stands for all functions, or all methods, that
have it: what is said to be reached may not be, what is said not to be is spoken of by nothing that trains.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from syncscope.heat.asked_by_name import asking
from syncscope.heat.behind_counters import BehindCounters
from syncscope.heat.by_text import goes_on, is_step, said_by_name
from syncscope.heat.called_in_steps import Calls
from syncscope.heat.closure import Closure
from syncscope.heat.handed_losses import computing_losses
from syncscope.heat.losses import entrances
from syncscope.heat.makers import Makers
from syncscope.heat.offered_to_others import for_others, offered
from syncscope.heat.roles import overridden, preparing, unused_namesakes
from syncscope.heat.rollouts import handed_to, rollouts
from syncscope.heat.rows import filling
from syncscope.heat.scripts import called_at_top
from syncscope.heat.spoken_in_steps import SpokenInSteps
from syncscope.heat.survey import IsHot, Survey
from syncscope.heat.trained import Trained, untrained
from syncscope.heat.unused import copies, programs, unused
from syncscope.model.heat import Role
from syncscope.project import conventions, devices
from syncscope.project.folders import is_library
from syncscope.project.importers import importers
from syncscope.project.outline import FunctionText, Spoken, imported, imported_by
from syncscope.project.private_names import is_private, is_special

Imports = Mapping[tuple[str, str], bool]  # what files import of one another, and whether a package offers it


@dataclass(frozen=True, slots=True)
class Reach:
    """The names of what runs in steps: functions, methods with a point before them, `pin_memory` where a file speaks of it,
    `validate_args` where none switches the checks of all distributions off, and `devices.DEFAULT` and `DEFAULT_TYPE`, which
    have another role in files whose tensors are not made on the host.
    """

    names: frozenset[str]
    offered: frozenset[str]  # those of them that no step speaks of: files do, outside of all functions
    shared: frozenset[str]  # private functions that other files import
    public: frozenset[str]  # names of what no step reaches, and what the package offers to others does
    called: dict[
        str, str
    ]  # what a step calls though its name says that it runs seldom, "/path.py:Class.method", and by what
    called_by_public: frozenset[str]  # the same of what the package offers
    roles: dict[str, Role]  # of what is known to have another: "Class.method", "/path/of/file.py:function"
    alone: bool = False  # no step is known: all that may be hot is
    importers: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)  # by path and function: `importers`
    holds: bool = True  # a step, or what it offers to those of others; else it is only known who imports what

    def role(self, path: str, name: str, owner: str) -> Role:
        """When a function or method of this name runs; what Python or a base class calls by itself does in steps."""
        key = f"{path}:{owner}.{name}"
        if key in self.called:
            return Role.CALLED
        if key in self.called_by_public:
            return Role.CALLED_BY_PUBLIC
        if self.alone:
            return Role.STEP
        if name.endswith(")"):
            return self.roles.get(key, Role.STEP)
        found = self.roles.get(f"{owner}.{name}" if owner else f"{path}:{name}") or self.roles.get(f"{path}:{owner}")
        if found is not None:
            return found
        word = f".{name}" if owner else name
        if is_special(name) or (owner and name in conventions.HOOKS):
            return Role.STEP
        reached = Role.SHARED if not owner and name in self.shared else Role.STEP
        if word in self.offered:
            return Role.OFFERED
        return reached if word in self.names else Role.PUBLIC if word in self.public else Role.UNREACHED

    def caller(self, path: str, name: str) -> str:
        """What calls a function of this name in a file, where that is why it runs in steps; else ""."""
        found = (by for key, by in self.called.items() if key.startswith(f"{path}:") and key.endswith(f".{name}"))
        return next(found, "")

    def below(self, folder: str) -> Reach:
        """The same with its files relative to a folder."""
        above = os.path.join(folder, "")
        called = {key.removeprefix(above): by for key, by in self.called.items()}
        by_public = frozenset(key.removeprefix(above) for key in self.called_by_public)
        roles = {key.removeprefix(above): role for key, role in self.roles.items()}
        return replace(self, called=called, called_by_public=by_public, roles=roles, importers={})


def reach(root: Path, paths: Iterable[str], is_hot: IsHot | None = None) -> Reach | None:
    """What the steps of these files reach, and what they offer; None where that is nothing at all.

    `is_hot` says of a path and a function's dotted name whether the steps of others call it.
    """
    survey = Survey(root, is_hot)
    for path in paths:
        survey.take(path)
    if not survey.of_torch:
        return None
    by_file = imported_by(survey.sources)
    survey.take_what_asks(by_file)
    survey.set_aside(by_file)
    trained = untrained(root, survey.sources, survey.idle)
    if trained is None:
        words = (*survey.defined, *(name.encode() for name in survey.classes))
        said = Spoken(words, asking(survey.functions()))
    else:
        said = trained.said
        survey.leave_out(trained)
    starts = _starts(survey)
    apart = {each.key for each in survey.seldom}
    closure = Closure(survey, said, apart, survey.idle | survey.far, survey.kinds)
    calls = Calls(survey.seldom, survey, said, Makers(survey.classes, survey.sources), [*starts.steps, *starts.driving])
    by_steps, reached = _reached(survey, starts, said, closure, calls)
    called = {key: calls.by[key] for key in calls.found}
    imports = imported(by_file)
    lent, unasked = _lent(root, survey, starts, imports)
    importing = importers(survey.functions(), by_file, survey.of_torch)
    none = Reach(frozenset(), frozenset(), frozenset(), frozenset(), called, frozenset(), {}, True, importing)
    if not (starts.steps or lent or called):
        return replace(none, called={}, holds=False) if importing else None
    lending = Closure(survey, said, apart, survey.idle, survey.kinds)
    public = lending.of(reached, spoken={each.word for each in lent})
    measures = [each for each in lent if each.key in survey.measures and each.key not in called]
    asked = [each for each in measures if said_by_name(each).hot]
    calls.found.update((each.key, each) for each in asked)
    public = lending.with_calls(public, [*lending.running(public - reached), *asked], calls) - reached
    by_public = frozenset(calls.found.keys() - called.keys())
    if not starts.has_own:
        return replace(none, called_by_public=by_public)
    names = [*_decoded(reached), *survey.switches(), devices.DEFAULT, devices.DEFAULT_TYPE]
    return Reach(
        frozenset(names),
        _decoded(reached - by_steps),
        frozenset(name for _, name in imports if is_private(name)),
        _decoded(public),
        called,
        by_public,
        _counted(survey, said) | _roles(survey, starts, trained, reached, imports) | unasked | _of_devices(survey),
        importers=importing,
    )


class _Starts(NamedTuple):
    """From where the steps of a project are followed."""

    steps: list[FunctionText]
    driving: list[FunctionText]  # what holds a loop around an environment
    handed: set[bytes]  # words of what is handed to one
    has_own: bool  # whether one of the steps is the project's

    def words(self) -> set[bytes]:
        return {each.word for each in self.steps}


def _starts(survey: Survey) -> _Starts:
    steps = [*survey.steps, *entrances(survey.of_losses, survey.classes)]
    has_own = bool(steps)
    steps += survey.called_by_others
    steps += [each for each in computing_losses(steps, survey) if each.path not in survey.idle]
    every = [*survey.around_agents, *(each for each in survey.functions() if each.path not in survey.idle)]
    driving = [*rollouts(every)]
    return _Starts(steps, driving, {*handed_to(driving, survey.functions())}, has_own)


def _reached(
    survey: Survey, starts: _Starts, said: Spoken, closure: Closure, calls: Calls
) -> tuple[set[bytes], set[bytes]]:
    """The words of what runs in steps, of what a step speaks of, itself or through others, and with what files speak of outside
    of all functions."""
    words, entered = starts.words(), [*survey.entered, *starts.driving]
    in_steps = SpokenInSteps(said)
    around = {word for each in survey.around_steps for word in in_steps.by(each)}
    namesakes = [each for word in words for each in survey.defined[word] if goes_on(each) and not is_step(each)]
    by_steps = closure.with_kinds(
        closure.of(words, [*entered, *starts.steps, *namesakes], survey.kept() | around | starts.handed)
    )
    spoken = closure.with_kinds(closure.of(by_steps, spoken=survey.said_outside()))
    # What makes an object keeps what is called later, and a program's `main` may hold the loop itself.
    programs = (each for each in starts.steps if not goes_on(each))
    callers = [*closure.running(spoken), *programs, *entered, *survey.around_steps, *survey.defined[b".__init__"]]
    at_top = called_at_top(calls, survey.sources, survey.talking)
    spoken = closure.of(spoken, at_top)
    reached = closure.with_calls(spoken, [*callers, *at_top], calls)
    return by_steps | (reached - spoken), reached


def _lent(root: Path, survey: Survey, starts: _Starts, imports: Imports) -> tuple[list[FunctionText], dict[str, Role]]:
    """What a project offers to others, and the roles of what neither it nor, as far as can be told, others use."""
    every, classes, steps = survey.functions(), survey.owners(), starts.words()
    unasked = unused((each for each in every if each.word not in steps), classes, imports, survey.sources)
    lent = [*offered(every, classes, imports)]
    if is_library(root):
        lent += for_others(unasked, every)
        unasked = {key: role for key, role in unasked.items() if key.rpartition(":")[2].startswith("_")}
    return lent, unasked


def _roles(
    survey: Survey, starts: _Starts, trained: Trained | None, reached: Collection[bytes], imports: Imports
) -> dict[str, Role]:
    """What runs otherwise than its words say; of two that know of one, the later decides."""
    sources, classes = survey.sources, survey.classes
    roles = preparing(sources.values(), classes)
    roles |= trained.roles if trained is not None else {}
    roles |= overridden(sources.values(), classes, imports)
    roles |= unused_namesakes((survey.defined[word] for word in reached if word[:1] != b"."), imports, sources)
    tools = set(programs(sources, {each.path for each in starts.steps}, imports))
    roles |= {
        f"{each.path}:{each.cls or each.name}": Role.UNREACHED for each in survey.functions() if each.path in tools
    }
    by_row = (each for each in filling(survey.functions()) if f"{each.path}:{each.cls}" not in roles)
    return {f"{each.cls}.{each.name}": Role.STEP for each in by_row} | roles | copies(classes, imports, sources)


def _counted(survey: Survey, said: Spoken) -> dict[str, Role]:
    """What is called only in arms that are gone into once in many steps."""
    found = BehindCounters(survey, said, survey.idle, survey.outside).found()
    return {f"{each.cls}.{each.name}" if each.cls else f"{each.path}:{each.name}": Role.SELDOM for each in found}


def _of_devices(survey: Survey) -> dict[str, Role]:
    """The files whose tensors are not made on the host where no device is named."""
    roles: dict[str, Role] = {}
    for name, folders in ((devices.DEFAULT, survey.on_device), (devices.DEFAULT_TYPE, survey.typed_on_device)):
        below = tuple(os.path.join(each, "") for each in folders)
        roles |= {f"{path}:{name}": Role.UNREACHED for path in survey.sources if path.startswith(below)}
    return roles


def _decoded(words: Iterable[bytes]) -> frozenset[str]:
    return frozenset(word.decode() for word in words)
