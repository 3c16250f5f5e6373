"""What runs in the steps of a project: the functions that a step speaks of, itself or through others, by name.

A project is gone through as text, which costs a fifth of parsing it. A name stands for all functions, or all methods, that
have it: what is said to be reached may not be, what is said not to be is spoken of by nothing that trains.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from syncscope.files import regular
from syncscope.heat import loops
from syncscope.heat.asked_by_name import asking
from syncscope.heat.by_name import by_place, changes_batch, place
from syncscope.heat.by_text import goes_on, is_of_loss, is_step, said_by_name
from syncscope.heat.called import Calls, is_seldom
from syncscope.heat.compiled_models import compiles_its_model
from syncscope.heat.handing import handing
from syncscope.heat.losses import entrances
from syncscope.heat.makers import Makers
from syncscope.heat.offered import for_others, offered
from syncscope.heat.roles import overridden, preparing, unused_namesakes
from syncscope.heat.rollouts import rollouts
from syncscope.heat.trained import untrained
from syncscope.heat.unused import copies, programs, unused
from syncscope.model.heat import Reason, Role
from syncscope.model.source import speaks_of_torch
from syncscope.project import conventions, devices
from syncscope.project.environments import asks_environment
from syncscope.project.folders import is_library
from syncscope.project.importers import asks_of_parameters, brought, importers
from syncscope.project.outline import (
    ClassText,
    FunctionText,
    Spoken,
    imported,
    imported_by,
    outlined,
    plain,
    without_imports,
    words,
)

IsHot = Callable[[str, str], bool]
_ASSIGNED = re.compile(rb"\.\w+ = (?:\w+\.)*(\w+)[ \t]*[,)\n]")
_STORED = re.compile(rb"self\.\w+ = self\.(\w+)(?:[ \t]*\n| if [^\n]* else self\.(\w+)[ \t]*\n)")
_PARTIAL = re.compile(rb"partial\(\s*(?:\w+\.)*(\w+)[ \t]*[,)\n]")
_QUOTED = re.compile(rb"\"[\w.]+\"|'[\w.]+'")
_LAMBDA = re.compile(rb"lambda[ \t\w,=.*]*:\s*(?:\w+\.)*(\w+)\(")
_HOOKED = re.compile(rb"\.register_(?!\w*state_dict)\w*hook\(\s*(?:\w+\.)*(\w+)\s*[,)(]")
_NAMED_CALL = re.compile(rb"(\w+)\(")
_PINS, _CHECKS = b"pin_memory", b"validate_args"
_REGISTERED = re.compile(rb"@(\w+)\.register\b[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*(?:async )?def (\w+)")
_UNCHECKED = re.compile(rb"set_default_validate_args\(False\)|Distribution\._validate_args\s*=\s*False")
_ENTRANCES = frozenset(("bin", "cli", "scripts", "tools"))  # where programs stand that train


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
        if name.startswith("__") or (owner and name in conventions.HOOKS):
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


def _is(function: FunctionText, roles: Mapping[str, Role]) -> bool:
    """Whether a function, or its class, is one of these."""
    return f"{function.path}:{function.cls or function.name}" in roles


def _kept(source: bytes) -> set[bytes]:
    """Functions that are kept to be called later: `self.prepare = prepare`, `self.ask = self.ask_all`,
    `partial(prepare, cutoff=5)`, `lambda x: prepare(x, 5)`; what is hooked, `p.register_hook(scaled)`, and what makes that:
    `self.hook = self.made(scale)`
    """
    hooked = set(_HOOKED.findall(source)) if b"hook(" in source else set()
    hooked |= {called for name in hooked for line in _made_as(name, source) for called in _NAMED_CALL.findall(line)}
    stored = {name for names in _STORED.findall(source) for name in names if name}
    methods = (b"." + name for name in hooked | stored)
    wrapped = _LAMBDA.findall(source) if b"lambda" in source else ()
    return {*_PARTIAL.findall(source), *wrapped, *_ASSIGNED.findall(source), *hooked, *methods}


def _made_as(name: bytes, source: bytes) -> list[bytes]:
    """What a file assigns to a name, or an attribute of this name, each to the end of its line, or of the next in a bracket."""
    return re.findall(rb"\b%b(?:: ?[^\n=]*)? = ((?:\(\n)?[^\n]*)" % name, source)


def _said_outside(text: bytes) -> set[bytes]:
    """What a file speaks of outside of all functions: what stands in `__all__`, or as text in a table, is named, not called."""
    return words(_QUOTED.sub(b"", plain(without_imports(text))))


def reach(root: Path, paths: Iterable[str], is_hot: IsHot | None = None) -> Reach | None:
    """What the steps of these files reach, and what they offer; None where they hold no step and offer nothing.

    `is_hot` says of a path and a function's dotted name whether the steps of others call it.
    """
    defined: dict[bytes, list[FunctionText]] = defaultdict(list)
    classes: dict[str, list[ClassText]] = defaultdict(list)
    sources: dict[str, bytes] = {}
    steps: list[FunctionText] = []
    others: list[FunctionText] = []  # what the steps of others call
    parts: list[FunctionText] = []  # of losses
    todo: list[FunctionText] = []
    talking: list[str] = []  # files that may speak of functions outside of all functions
    kept: set[bytes] = set()
    kinds: dict[bytes, set[bytes]] = defaultdict(set)  # by a function what is registered with it, of other types
    seldom: list[FunctionText] = []
    around_agents: list[FunctionText] = []  # what may hold a loop around an environment
    idle: set[str] = set()  # files of what prepares data, evaluates and the like
    packages: dict[str, list[str]] = {}  # around a folder
    speaking: list[str] = []  # files, of torch
    outsides: dict[str, bytes] = {}  # what stands in each of these outside of its functions
    measures: set[str] = set()  # functions that look aside by `no_grad`, or as one of metrics, alone
    switched: set[str] = set()  # folders whose files make tensors on another device than the host where none is named
    typed: set[str] = set()  # ... and `torch.Tensor(values)`, too
    pins, checks = False, True
    for path in paths:
        try:
            source = regular(path)
        except OSError:
            continue
        if b"\r" in source:  # most have none, which is seen in a twentieth of the time
            source = source.replace(b"\r\n", b"\n")
        source = sources[path] = b"\n" + source
        pins = pins or _PINS in source
        checks = checks and not (_CHECKS in source and _UNCHECKED.search(source))
        speaks = speaks_of_torch(source)
        if not (speaks or asks_environment(source)):
            continue
        folder, file = os.path.split(path)
        if folder not in packages:
            packages[folder] = [*Path(folder).relative_to(root.parent).parts]
        around, stem = place(packages[folder], file.removesuffix(".py"), source)
        beside = bool(by_place([each for each in around if each not in _ENTRANCES], stem, "forward"))
        if beside:
            idle.add(path)
        if not speaks:  # it may hold the loop around an agent
            around_agents += [] if beside else outlined(path, source)[0]
            continue
        speaking.append(path)
        aside = beside or bool(by_place(around, stem, "forward"))
        checks = checks and (aside or not compiles_its_model(source))
        written, owners, outside = outlined(path, source)
        outsides[path] = outside
        if not beside and (scope := devices.switched_for(path, source, outside)) is not None:
            switched.add(scope)
            typed.update([scope] * devices.switches_type(source))
        for owner in owners:
            classes[owner.name].append(owner)
        for each in written:
            defined[each.word].append(each)
            beside_all = by_place(around, stem, each.name)
            if is_seldom(each, aside or bool(beside_all)):
                seldom.append(each)
                if not each.cls and not aside and (beside_all is None or beside_all.reason is Reason.METRIC):
                    measures.add(each.key)
            if is_hot is not None and is_hot(path, f"{each.cls}.{each.name}" if each.cls else each.name):
                others.append(each)
            elif (not beside or changes_batch(around, each.name, each.cls)) and is_step(each):
                steps.append(each)
            elif not beside and is_of_loss(each):
                parts.append(each)
            elif (
                not beside
                and (each.name.startswith("__") or (each.cls and each.name in conventions.HOOKS))
                and goes_on(each)
            ):
                todo.append(each)  # Python itself calls it, or the loop around an environment
        if b".register" in source:
            for function, kind in _REGISTERED.findall(source):
                kinds[function].add(kind)
        if not beside:
            talking.append(path)
            kept |= _kept(source)
    if not speaking:
        return None
    by_file = imported_by(sources)
    for path in brought(sources.keys() - set(speaking), by_file, speaking):
        for each in outlined(path, sources[path])[0]:
            if asks_of_parameters(each):
                defined[each.word].append(each)
    said = Spoken([*defined, *(name.encode() for name in classes)], asking(chain(*defined.values())))
    trained = untrained(root, sources, idle)
    if trained is not None:  # its steps are those of its own loops
        steps, parts, todo, seldom = (
            [each for each in some if not _is(each, trained.roles)] for some in (steps, parts, todo, seldom)
        )
        defined = defaultdict(
            list, {word: [each for each in same if not _is(each, trained.roles)] for word, same in defined.items()}
        )
        said = trained.said
        talking = [path for path in talking if path in trained.files]
    spoken = {word for path in talking for word in _said_outside(outsides[path])}
    steps += entrances(parts, classes)
    has_own = bool(steps)
    steps += others
    steps += [each for each in handing(steps, defined, classes) if each.path not in idle]
    around_agents += (each for same in defined.values() for each in same if each.path not in idle)
    driving = [*rollouts(around_agents)]
    todo += driving
    stepped = {each.word for each in steps}
    namesakes = [each for word in stepped for each in defined[word] if goes_on(each) and not is_step(each)]
    by_steps = _closed(stepped, [*todo, *steps, *namesakes], kept, defined, said)
    by_steps = _dispatched(by_steps, kinds, defined, said)
    reached = _dispatched(_closed(by_steps, [], spoken, defined, said), kinds, defined, said)
    calls = Calls(seldom, classes, defined, sources, said, Makers(classes), [*steps, *driving])
    apart = {each.key for each in seldom}

    def running(words: Iterable[bytes]) -> list[FunctionText]:
        """The functions that run in steps, of those that are reached, but for what a call would have to say it of."""
        every = (each for word in words for each in defined[word])
        return [each for each in every if each.path not in idle and each.key not in apart and goes_on(each)]

    def with_calls(reached: set[bytes], new: Collection[FunctionText]) -> set[bytes]:
        """What is reached, and what is through the functions that are called all the same."""
        while new:
            called = calls.of(new)
            more = _closed(reached, called, set(), defined, said) - reached
            reached = reached | more
            new = [*called, *running(more)]
        return reached

    before = reached
    reached = with_calls(
        reached, [*running(reached), *todo, *defined[b".__init__"]]
    )  # which keeps what is called later
    by_steps |= reached - before
    called = {key: calls.by[key] for key in calls.found}
    functions = (defined[word] for word in reached if word[:1] != b".")
    imports = imported(by_file)
    every = [each for same in defined.values() for each in same]
    owners = [cls for same in classes.values() for cls in same]
    unasked = unused((each for each in every if each.word not in stepped), owners, imports, sources)
    lent = [*offered(every, owners, imports)]
    if is_library(root):
        lent += for_others(unasked, every)
        unasked = {key: role for key, role in unasked.items() if key.rpartition(":")[2].startswith("_")}
    if not (steps or lent):
        return None
    importing = importers(every, by_file, speaking)
    public = _closed(reached, [], {each.word for each in lent}, defined, said)
    asked = [each for each in lent if each.key in measures and each.key not in called and said_by_name(each).hot]
    calls.found.update((each.key, each) for each in asked)
    public = with_calls(public, [*running(public - reached), *asked]) - reached
    by_public = frozenset(calls.found.keys() - called.keys())
    if not has_own:
        return Reach(frozenset(), frozenset(), frozenset(), frozenset(), called, by_public, {}, True, importing)
    roles = preparing(sources.values(), classes) | (trained.roles if trained is not None else {})
    roles |= overridden(sources.values(), classes, imports)
    roles |= unused_namesakes(functions, imports, sources)
    tools = set(programs(sources, {each.path for each in steps}, imports))
    roles |= {f"{each.path}:{each.cls or each.name}": Role.UNREACHED for each in every if each.path in tools}
    roles |= copies(classes, imports, sources)
    roles |= unasked
    for name, folders in ((devices.DEFAULT, switched), (devices.DEFAULT_TYPE, typed)):
        below = tuple(os.path.join(each, "") for each in folders)
        roles |= {f"{path}:{name}": Role.UNREACHED for path in sources if path.startswith(below)}
    words_reached = (word.decode() for word in (*reached, *[_PINS] * pins, *[_CHECKS] * checks))
    return Reach(
        frozenset((*words_reached, devices.DEFAULT, devices.DEFAULT_TYPE)),
        frozenset(word.decode() for word in reached - by_steps),
        frozenset(name for _, name in imports if conventions.is_private(name)),
        frozenset(word.decode() for word in public),
        called,
        by_public,
        roles,
        importers=importing,
    )


def called_alone(path: str, source: bytes, tree: ast.Module) -> frozenset[str]:
    """What the steps of one file call in it, a training loop at its top level among them: "Class.method"."""
    written, owners, _ = outlined(path, b"\n" + source)
    seldom = [each for each in written if is_seldom(each, False)]
    if not seldom:
        return frozenset()
    defined: dict[bytes, list[FunctionText]] = defaultdict(list)
    classes: dict[str, list[ClassText]] = defaultdict(list)
    for owner in owners:
        classes[owner.name].append(owner)
    for each in written:
        defined[each.word].append(each)
    apart = {each.key for each in seldom}
    steps = [each for each in written if each.key not in apart and is_step(each)]
    steps += entrances((each for each in written if each.key not in apart and is_of_loss(each)), classes)
    top = loops.at_top(tree)
    if not steps and top is None:
        return frozenset()
    said = Spoken(defined, asking(written))
    calls = Calls(seldom, classes, defined, {path: source}, said, Makers({}), steps)
    whole = FunctionText("", "", set(), path, source, 0, 0, len(source))
    first = calls.within(top, source, whole, calls.seldom) if top is not None else []
    reached: set[bytes] = set()
    new = [*first, *steps]
    while new:
        more = _closed(reached, new, set(), defined, said) - reached
        reached |= more
        own = [each for word in more for each in defined[word] if each.key not in apart and goes_on(each)]
        new = calls.of([*new, *own])
    return frozenset(f"{each.cls}.{each.name}" for each in calls.found.values())


def _dispatched(
    reached: set[bytes], kinds: Mapping[bytes, set[bytes]], defined: dict[bytes, list[FunctionText]], said: Spoken
) -> set[bytes]:
    """What is reached, and what is registered with it: `@permuted.register def of_tensor(x)` runs where `permuted` does."""
    while more := {each for word in kinds.keys() & reached for each in kinds[word]} & (defined.keys() - reached):
        reached = _closed(reached, [], more, defined, said)
    return reached


def _closed(
    reached: set[bytes],
    todo: list[FunctionText],
    spoken: set[bytes],
    defined: dict[bytes, list[FunctionText]],
    said: Spoken,
) -> set[bytes]:
    """What is reached from functions, and from what else is spoken of."""
    reached = set(reached)
    waiting = defined.keys() - reached
    as_attribute, spoken = said.as_attribute, set(spoken)
    while todo or spoken:
        for each in todo:
            spoken.update(said.by(each))
        new = (spoken | {as_attribute[word] for word in as_attribute.keys() & spoken}) & waiting
        todo = [each for name in new for each in defined[name] if goes_on(each)]
        reached |= new
        waiting -= new
        spoken = set()
    return reached
