"""Hot or cold: whether a place runs in every step. The judges are asked one by one, and the first that knows decides."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from syncscope.heat import backward, blocks, by_code, fleeting
from syncscope.heat.beside_steps import called_beside_steps
from syncscope.heat.by_name import by_name, by_place, changes_batch, known_by_name, place
from syncscope.heat.by_role import by_role, for_others
from syncscope.heat.called_by_maker import called_by_maker
from syncscope.heat.called_in_file import called_in_file
from syncscope.heat.callers import callers, nearest
from syncscope.heat.loops import at_top
from syncscope.model.heat import IN_TRAINING, Heat, Reason, Role
from syncscope.project import beside_training, cold_names, conventions, environments
from syncscope.project.folders import root_of
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.private_names import is_private
from syncscope.project.syntax import NO_GRAD, dotted, name_of, walk

_FARTHEST = 3  # callers of callers that are asked


def of_wait(around: Heat | None, function: ProjectFunction | None, module: Module) -> Heat:
    """Hot or cold by what a wait stands in: the loop or the arm around it, its function, its file."""
    if beside := _of_file(module):
        return beside
    said = of_function(function)
    measures = function is not None and not said.hot and cold_names.MEASURES.match(function.name)
    if (
        around is None
        or measures
        or said.reason is Reason.UNTRAINED
        or (
            around.hot
            and around.reason not in IN_TRAINING
            and function is not None
            and not (said.hot or said.reason is Reason.OUTSIDE)
        )
    ):
        return said
    return around


_BEFORE_STEPS = (Reason.TOP_LEVEL, Reason.MAIN, Reason.SET_UP, Reason.OUTSIDE, Reason.COMMAND, Reason.NO_STEP)


def of_switch(said: Heat) -> Heat:
    """Hot, where what holds for the whole program is switched on before its steps."""
    return Reason.SWITCHED_ON() if said.reason in _BEFORE_STEPS else said


@kept(64)
def _of_file(module: Module) -> Heat | None:
    """Cold, where all of a file is."""
    path = Path(module.path)
    named = beside_training.TEST_FILE.search(path.stem) and not beside_training.SCRIPT.search(module.source)
    root = root_of(str(path.parent))
    folders = path.parent.relative_to(root).parts if root and path.is_relative_to(root) else ()
    if named or {*folders, path.parent.name, Path(module.package[0]).name} & {"test", "tests"}:
        return Reason.TESTS()
    if any(" " in each and beside_training.COPY.search(each) for each in (*folders, path.stem)):
        return Reason.COPY()
    names = (path.stem, *path.parts[-4:-1]) if path.suffix == ".ipynb" else ()
    return next((Reason.TEACHES(name) for name in names if beside_training.teaches(name)), None)


@kept(MANY)
def of_function(function: ProjectFunction | None) -> Heat:
    """Hot or cold by the function, for what stands outside its loops: by itself, or by who speaks of it."""
    said = by_itself(function)
    if function is None or (not said.hot and not _is_untrained(function)):
        return said
    role = by_role(function, said.reason in conventions.PARTLY)
    if role is not None and not role.hot:
        return role
    said = (
        _by_its_callers(function, 0)
        or called_beside_steps(function)
        or _for_constructors(function)
        or role
        or _as_step(function, said)
        or said
    )
    if said.reason is not Reason.MAYBE:
        return said
    line, caller, trains = nearest(function, lambda each: by_itself(each).hot)
    if trains:
        said = Reason.PASSES(function.name)
    return replace(said, line=line, caller=caller) if line else said


def _is_untrained(function: ProjectFunction) -> bool:
    owner, module = function.cls.name if function.cls is not None else "", function.module
    return module.project.role(module.path, function.name, owner) is Role.UNTRAINED


def _as_step(function: ProjectFunction, said: Heat) -> Heat | None:
    """Hot as a step, whatever it is called: it holds a backward pass in no loop of its own, and a training loop calls it."""
    module = function.module
    known = backward.steps(module.source)
    holding = known.methods if function.cls is not None else known.functions
    if said.reason is not Reason.MAYBE or function.name not in holding:
        return None
    for caller in callers(module, function.name, True):
        if caller is None:
            in_loop = at_top(module.tree) is not None
        else:
            in_loop = caller.around is None and blocks.trains(caller.function.node, module.source)
        if in_loop:
            return Reason.STEP()
    return None


_SELDOM = frozenset(
    (Reason.FIRST, Reason.WARNS, Reason.AFTER_ERROR, Reason.BEFORE_ERROR, Reason.ODD, Reason.NOT_TRAINED)
)


def _by_its_callers(function: ProjectFunction, depth: int) -> Heat | None:
    """Cold, where only cold functions of its file call a private function, or only cold methods of its own a public method, or
    others do so the first time, where something went wrong, or where a module is not trained; of what a program defines, where
    its steps never call it, or seldom.
    """
    partly = by_itself(function).reason in conventions.PARTLY
    program = partly and _is_program(function.module)
    private = program or is_private(function.name)
    owner, module = function.cls.name if function.cls is not None else "", function.module
    by_steps = (Role.SHARED, Role.CALLED, *([] if private or module.project.alone else [Role.STEP]))
    if module.project.role(module.path, function.name, owner) in by_steps:
        return None  # `agent.get_action(...)` of a loop in another file, beside its own `test`
    if depth > _FARTHEST or not (private or (function.cls is not None and partly)):
        return None
    said = None
    for caller in callers(function.module, function.name, private):
        if caller is None:
            return None
        if caller.around is not None and (caller.around.reason in _SELDOM or (program and not caller.around.hot)):
            said = caller.around
        elif caller.around is None and blocks.trains(caller.function.node, module.source):
            return None  # whatever the function around that loop is called
        elif caller.function is not function:
            said = _by_its_callers(caller.function, depth + 1) or by_itself(caller.function)
            if said.hot or said.reason is Reason.OUTSIDE:
                return None
    return Reason.CALLED_COLD(function.name, of=said) if said is not None else None


def _for_constructors(function: ProjectFunction) -> Heat | None:
    """Cold, where only constructors call what a program defines."""
    owner, module = function.cls.name if function.cls is not None else "", function.module
    if by_itself(function).reason not in conventions.PARTLY or not _is_program(module):
        return None
    if module.project.role(module.path, function.name, owner) in (Role.SHARED, Role.CALLED):
        return None
    makers = [caller and caller.function for caller in callers(module, function.name, True)]
    if not makers or not all(maker is not None and maker.name == "__init__" for maker in makers):
        return None
    return Reason.CALLED_COLD(function.name, of=by_itself(makers[0]))


@kept(16)
def _is_program(module: Module) -> bool:
    """Whether a file trains where it is started: nobody else calls what it defines."""
    guarded = b"__main__" in module.source and b".backward(" in module.source
    return guarded or at_top(module.tree) is not None


@kept(MANY)
def by_itself(function: ProjectFunction | None) -> Heat:
    """Hot or cold by the function alone, and by whether a step calls what its name, its folder or `no_grad` makes cold."""
    if function is None:
        return Reason.TOP_LEVEL()
    said = _by_what_it_is(function)
    owner, module = function.cls.name if function.cls is not None else "", function.module
    never = conventions.never(function.name, owner) and function.name not in conventions.MAKERS
    never = never or (said.reason is Reason.METRIC and function.name.strip("_") == "reset")  # as often as its result
    never = never or (said.reason is Reason.EVALUATION and by_code.only_measures_batches(function))
    never = never or _goes_through_data_set(function) or "inference_mode" in function.decorators()
    if never or said.reason not in conventions.SOFT:
        return said
    if function.closure is not None:
        return Reason.CALLED(function.name) if called_by_maker(function, lambda each: by_itself(each).hot) else said
    role = module.project.role(module.path, function.name, owner)
    if role is Role.CALLED or f"{owner}.{function.name}" in _called_alone(module):
        return Reason.CALLED(function.name)
    if role is Role.CALLED_BY_PUBLIC:
        asked = for_others(function)
        return asked if asked.hot else said
    return said


@kept(4)
def _called_alone(module: Module) -> frozenset[str]:
    """What the steps of the file itself call, also where it is in no project, or trains at its top level."""
    return called_in_file(module.path, module.source, module.tree)


class Judged(NamedTuple):
    """A function, what its name says of it, and whether it makes or is part of a distribution."""

    function: ProjectFunction
    said: Heat
    drawn_from: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.function.name

    @property
    def place(self) -> tuple[tuple[str, ...], str]:
        """The folders that are packages around its file, and the file's name without its suffix."""
        module = self.function.module
        return place(module.package[1:], Path(module.path).stem, module.source)


def _by_what_it_is(function: ProjectFunction) -> Heat:
    """What the first judge says that says anything, else its name."""
    cls = function.cls
    owner, methods = (cls.name, cls.methods) if cls is not None else ("", ())
    said, drawn_from = by_name(function.name, owner, methods), cls is not None and by_code.of_distributions(cls)
    if drawn_from and (said.reason is Reason.DATA or function.name == "__init__"):
        said = Reason.MAYBE(function.name)  # made anew in each step, most often
    by_class = said.reason is Reason.DATA and said.about == (owner,)
    if by_class and cls is not None and (function.name == "to" or by_code.keeps_on_device(cls)):
        said = by_name(function.name, "", methods)  # each batch is sent by it, or picked on the device
    case = Judged(function, said, drawn_from)
    return next((heat for judge in JUDGES if (heat := judge(case)) is not None), said)


def _decorators(case: Judged) -> Iterator[str]:
    for decorator in case.function.node.decorator_list:
        yield name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _decorated(case: Judged) -> Heat | None:
    """Cold by a decorator: what is cached, a command or a setter runs once."""
    for word in _decorators(case):
        if word in _ONCE or cold_names.CACHES.search(word):
            return _ONCE.get(word, Reason.CACHED)(case.name)
    return None


_ONCE = {
    **dict.fromkeys(("cache", "lru_cache", "cached_property", "singleton"), Reason.CACHED),
    "command": Reason.COMMAND,
    "setter": Reason.SETTER,
}


def _known(case: Judged) -> Heat | None:
    """Hot by a name that says so wherever it stands; but not among data, around its own loop, or where no step is called."""
    function, said = case.function, case.said
    methods = function.cls.methods if function.cls is not None else ()
    if said.hot and said.reason is not Reason.LOOP and by_code.changes_table(function):
        return Reason.DATA(function.name)
    if not said.hot or not known_by_name(function.name, methods):
        return None
    package, stem = case.place
    stem = stem.strip("_")
    if changes_batch(package, function.name, function.cls.name if function.cls is not None else ""):
        return said
    if beside_training.NO_STEPS.intersection(package) or stem in beside_training.EXPORTS:
        return by_place(package, stem, function.name) or Reason.SILENT()
    if stem in beside_training.TRANSFORMS and b"torchvision" in function.module.source:
        return Reason.DATA(function.cls.name if function.cls is not None else function.name)
    holds = by_code.holds_its_loop if said.reason is Reason.LOOP else by_code.goes_through_loader
    if holds(function):
        return Reason.AROUND() if by_code.is_an_update(function) else Reason.OUTSIDE(function.name)
    # A `train` that takes a batch may be a step itself, unless it is that of an index, to which vectors are added.
    takes = bool({*function.names} - {"self", "mode"}) and not by_code.is_of_an_index(function)
    if said.reason is Reason.LOOP and (function.name == "fit" or not takes) and not by_code.calls_steps(function):
        return Reason.NO_STEP(function.name)
    return said


def _watched(case: Judged) -> Heat | None:
    """Cold, where somebody watches its passes: it samples, or goes through all there is; of a network, without gradients."""
    source = case.function.module.source
    if b"tqdm" not in source and b"trange" not in source:
        return None
    alone = case.said.reason is Reason.MAYBE or (case.name == "forward" and b"no_grad" in source)
    return Reason.SAMPLES(case.name) if alone and by_code.shows_its_passes(case.function) else None


def _frozen(case: Judged) -> Heat | None:
    """Cold without gradients, until a step is seen to call it; an optimizer has none in its steps, nor in its hooks."""
    if not case.said.hot or NO_GRAD.isdisjoint(_decorators(case)):
        return None
    outermost = case.function
    while (around := getattr(outermost.closure, "function", None)) is not None:
        outermost = around
    bases = outermost.cls.node.bases if outermost is not case.function and outermost.cls is not None else ()
    return None if any(name_of(base).endswith("Optimizer") for base in bases) else Reason.NO_GRAD()


def _within(case: Judged) -> Heat | None:
    """Cold in a cold function; what is made before a training loop may be what runs in it, and what set-up hands on, too."""
    around = getattr(case.function.closure, "function", None)
    outer = by_itself(around) if around is not None else None
    if outer is None or outer.hot or outer.reason is Reason.OUTSIDE:
        return None
    return None if by_code.is_made_by_set_up(case.function) else outer


def _goes_through_data_set(function: ProjectFunction) -> bool:
    """Whether it is given all of a data set, or shows how far it has come; what a step is given and hands on is part of it."""
    return _takes_data_set(function) and not any(
        caller is not None and caller.around is None and _takes_in_steps(caller.function)
        for caller in callers(function.module, function.name, is_private(function.name))
    )


def _takes_data_set(function: ProjectFunction) -> bool:
    arguments = function.node.args
    names = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]
    if not conventions.DATA_SETS.isdisjoint(names):
        return function.cls is None or not any(
            map(environments.acts, function.cls.methods)
        )  # else it is its last rollout
    loaders = (name for name in names if conventions.is_loader(name) and "train" not in name)
    return any(loaders) and "optimizer" not in names and not by_code.calls_steps(function)


def _takes_in_steps(function: ProjectFunction) -> bool:
    """Whether a function whose name says that it runs in every step is given a data set: the last rollout."""
    methods = function.cls.methods if function.cls is not None else ()
    return _takes_data_set(function) and known_by_name(function.name, methods) and by_itself(function).hot


def _by_code(case: Judged) -> Heat | None:
    """Cold by what it does, where no name says more than that it may run in every step."""
    function, name = case.function, case.name
    if case.said.reason not in conventions.PARTLY:
        return None
    if by_code.holds_all_steps(function):
        return Reason.AROUND() if by_code.is_an_update(function) else Reason.OUTSIDE(name)
    if conventions.STATISTICS.match(name) and not by_code.gives(function):
        return Reason.LOG(name)
    if _goes_through_data_set(function):
        return Reason.DATA_SET(name)
    if by_code.makes_weights(function):
        return Reason.NEW_WEIGHTS(name)
    if by_code.uses_pipeline(function):
        return Reason.INFERENCE(name)
    if by_code.evaluates(function):
        return Reason.EVALUATION(name)
    if by_code.sends_objects(function):
        return Reason.TO_HOST(name)
    if by_code.reads_weights(function):
        return Reason.SET_UP(name)
    kept = by_code.kept_by_hand(function)
    if kept is None or _is_emptied(function, kept[1]):
        return None
    key = ast.unparse(kept[0])
    return Reason.KEEPS_EACH(name, key) if by_code.is_given(function, kept[0]) else Reason.KEEPS(name)


def _is_emptied(function: ProjectFunction, kept: str) -> bool:
    """Whether what surely runs in steps empties what a function of the same class keeps: it is made anew in each."""
    methods = function.cls.methods.values() if function.cls is not None and kept.startswith("self.") else ()
    emptying = fleeting.emptying(kept, function.module.source)
    return any(each.name in emptying and _surely_in_steps(each) for each in methods)


def _surely_in_steps(function: ProjectFunction, depth: int = 0) -> bool:
    """Whether a function is a step by its name, or called by one in its file; what keeps things is neither."""
    if by_code.kept_by_hand(function) is not None:
        return False
    said = by_itself(function)
    if said.hot and said.reason not in conventions.PARTLY:
        return True
    return depth < _FARTHEST and any(
        caller is not None and caller.around is None and _surely_in_steps(caller.function, depth + 1)
        for caller in callers(function.module, function.name, False)
    )


def _placed(case: Judged) -> Heat | None:
    """Cold by its file; `transforms.py` of distributions is none of data, nor `dataset.py` of rows on the device, nor `to`, by
    which steps send batches of a class of one's own.
    """
    cls = case.function.cls
    there = case.drawn_from or (
        cls is not None
        and (case.name == "to" or (cls.name.endswith(conventions.DATA_CLASSES) and by_code.keeps_on_device(cls)))
    )
    return by_place(*case.place, case.name) if case.said.hot and not there else None


def _begins_episode(case: Judged) -> Heat | None:
    """Cold where an environment begins anew, which none of its steps asks for."""
    cls = case.function.cls
    if case.name != "reset" or cls is None or not environments.is_one(cls.name, cls.methods):
        return None
    asked = {dotted(each) for each in walk(cls.methods["step"].node) if isinstance(each, ast.Attribute)}
    return None if "self.reset" in asked else Reason.EPISODE(case.name)


JUDGES: tuple[Callable[[Judged], Heat | None], ...] = (
    _decorated,
    _watched,
    _known,
    _frozen,
    _begins_episode,
    _within,
    _by_code,
    _placed,
)
"""Of a function by itself, in the order in which they are asked. What a step calls outranks them where they are soft."""
