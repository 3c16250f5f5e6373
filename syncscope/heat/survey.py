"""What the files of a project tell one by one, as text: which functions are steps, which run seldom, what is kept for later.

Nothing here follows a call: `reach.py` does, from what is found here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from syncscope.files import regular
from syncscope.heat.around_steps import loops_over_steps
from syncscope.heat.by_name import by_place, changes_batch, place
from syncscope.heat.by_text import goes_on, is_of_loss, is_step
from syncscope.heat.called_in_steps import is_seldom
from syncscope.heat.compiled_models import compiles_its_model
from syncscope.heat.far_from_training import far_from_training
from syncscope.heat.kept import kept, registered
from syncscope.heat.tables import QUOTED, tables
from syncscope.heat.trained import Trained
from syncscope.model.heat import Reason, Role
from syncscope.model.source import speaks_of_torch
from syncscope.project import conventions, devices
from syncscope.project.definitions import Definitions
from syncscope.project.environments import drives
from syncscope.project.importers import asks_of_parameters, brought
from syncscope.project.outline import FunctionText, Imported, aliases, outlined, plain, without_imports, words

IsHot = Callable[[str, str], bool]
"""Whether the steps of others call a function, by its path and dotted name."""

_PINS, _CHECKS = b"pin_memory", b"validate_args"
_UNCHECKED = re.compile(rb"set_default_validate_args\(False\)|Distribution\._validate_args\s*=\s*False")
_EVERYWHERE = re.compile(
    r"__(?!a(enter|exit|iter|next)__)"
)  # what Python calls by itself, but not what waits for events
_ENTRANCES = frozenset(("bin", "cli", "scripts", "tools"))  # where programs stand that train


class _Place(NamedTuple):
    """Where a file is, as its folders and its name say it."""

    around: tuple[str, ...]
    stem: str
    beside: bool  # it prepares data, evaluates and the like
    aside: bool  # ... or is a program's entrance, which may train all the same


class Survey(Definitions):
    """The files of a project that speak of torch, and what each tells of its functions."""

    def __init__(self, root: Path, is_hot: IsHot | None) -> None:
        super().__init__({})  # of all files the sources, of those that speak of torch what they define
        self._root, self._is_hot = root, is_hot
        self._folders: dict[str, list[str]] = {}  # by a folder, those around it
        self.of_torch: list[str] = []  # files
        self.idle: set[str] = set()  # files of what prepares data, evaluates and the like
        self.far: set[str] = set()  # files in which nothing trains, and which nothing that trains imports
        self.outside: dict[str, bytes] = {}  # by file what stands outside of all functions
        self.talking: list[str] = []  # files that may speak of functions there
        self.held: list[
            bytes
        ] = []  # what fills the tables of functions of a program: others are for those to look into

        self.steps: list[FunctionText] = []
        self.around_steps: list[FunctionText] = []  # what holds a loop that calls a step
        self.called_by_others: list[FunctionText] = []  # by their steps
        self.of_losses: list[FunctionText] = []
        self.entered: list[FunctionText] = []  # by Python itself, or by the loop around an environment
        self.seldom: list[FunctionText] = []
        self.measures: set[str] = set()  # keys of functions that look aside by `no_grad`, or as one of metrics, alone
        self.around_agents: list[
            FunctionText
        ] = []  # what may hold a loop around an environment, in files without torch

        self._kept: dict[str, set[bytes]] = {}  # by a file words of what is called later
        self.kinds: dict[bytes, set[bytes]] = defaultdict(
            set
        )  # by a function what is registered with it, of other types
        self.pins, self.checks = False, True  # whether memory is pinned, and distributions check what they are given
        self.on_device: set[str] = set()  # folders whose files make tensors on another device where none is named
        self.typed_on_device: set[str] = set()  # ... and `torch.Tensor(values)`, too

    def take(self, path: str) -> None:
        """Go through a file."""
        try:
            source = regular(path)
        except OSError:
            return
        if b"\r" in source:  # most have none, which is seen in a twentieth of the time
            source = source.replace(b"\r\n", b"\n")
        source = self.sources[path] = b"\n" + source
        self.pins = self.pins or _PINS in source
        self.checks = self.checks and not (_CHECKS in source and _UNCHECKED.search(source))
        if speaks_of_torch(source):
            self._take_of_torch(path, source)
        elif drives(source):  # it may hold the loop around an agent
            if self._place(path, source).beside:
                self.idle.add(path)
            else:
                self.around_agents += outlined(path, source)[0]

    def _place(self, path: str, source: bytes) -> _Place:
        folder, file = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = [*Path(folder).relative_to(self._root.parent).parts]
        around, stem = place(self._folders[folder], file.removesuffix(".py"), source)
        beside = bool(by_place([each for each in around if each not in _ENTRANCES], stem, "forward"))
        return _Place(around, stem, beside, beside or bool(by_place(around, stem, "forward")))

    def _take_of_torch(self, path: str, source: bytes) -> None:
        at = self._place(path, source)
        self.of_torch.append(path)
        self.checks = self.checks and (at.aside or not compiles_its_model(source))
        functions, classes, self.outside[path] = outlined(path, source)
        self.add(functions, classes)
        for each in functions:
            self._take_function(each, at)
        for function, kind in registered(source):
            self.kinds[function].add(kind)
        if at.beside:
            self.idle.add(path)
            return
        self.talking.append(path)
        self._kept[path] = kept(source)
        if (scope := devices.switched_for(path, source, self.outside[path])) is not None:
            self.on_device.add(scope)
            self.typed_on_device.update([scope] * devices.switches_type(source))

    def _take_function(self, each: FunctionText, at: _Place) -> None:
        """Sort a function: what runs seldom, and from where steps are followed."""
        by_file = by_place(at.around, at.stem, each.name)
        if is_seldom(each, at.aside or bool(by_file)):
            self.seldom.append(each)
            if not each.cls and not at.aside and (by_file is None or by_file.reason is Reason.METRIC):
                self.measures.add(each.key)
        if self._is_hot is not None and self._is_hot(each.path, f"{each.cls}.{each.name}" if each.cls else each.name):
            self.called_by_others.append(each)
        elif (not at.beside or changes_batch(at.around, each.name, each.cls)) and is_step(each):
            self.steps.append(each)
        elif at.beside:
            return
        elif loops_over_steps(each):
            self.around_steps.append(each)
        elif is_of_loss(each):
            self.of_losses.append(each)
        elif (_EVERYWHERE.match(each.name) or (each.cls and each.name in conventions.HOOKS)) and goes_on(each):
            self.entered.append(each)

    def take_what_asks(self, imports: Mapping[str, Imported]) -> None:
        """Have of files without torch, which files of torch import, the functions that would wait for tensors which those pass
        to them, and what they speak of outside of all functions, as `LOSSES = {"focal": focal}`."""
        for path in brought(self.sources.keys() - set(self.of_torch), imports, self.of_torch):
            functions, _, outside = outlined(path, self.sources[path])
            asking = [each for each in functions if asks_of_parameters(each)]
            self.add(asking)
            at = self._place(path, self.sources[path])
            if not at.beside:
                self.outside[path] = outside
                self.talking.append(path)
            for each in asking:
                self._take_function(each, at)

    def set_aside(self, imports: Mapping[str, Imported]) -> None:
        """Have no step begin in files in which nothing trains, and which nothing that trains imports."""
        steps = [*self.steps, *self.around_steps, *self.of_losses, *self.called_by_others]
        self.far = far_from_training(self, self.idle, steps, imports)
        self.steps = [each for each in self.steps if each.path not in self.far]
        self.entered = [each for each in self.entered if each.path not in self.far]
        self.around_steps = [each for each in self.around_steps if each.path not in self.far]
        self.talking = [path for path in self.talking if path not in self.far]

    def leave_out(self, trained: Trained) -> None:
        """Leave out what the training loops of the project neither build nor call: its steps are those of its own loops."""
        roles = trained.roles
        self.steps = _without(roles, self.steps)
        self.of_losses = _without(roles, self.of_losses)
        self.entered = _without(roles, self.entered)
        self.seldom = _without(roles, self.seldom)
        self.defined = defaultdict(list, {word: _without(roles, same) for word, same in self.defined.items()})
        self.talking = [path for path in self.talking if path in trained.files]
        filled = tables({path: self.sources[path] for path in self.talking}, self.defined).values()
        self.held = [statement for same in filled for _, statement in same]

    def said_outside(self) -> set[bytes]:
        """What files speak of outside of all functions; what stands in `__all__`, or as text in a table, is but named."""
        texts = (QUOTED.sub(b"", plain(without_imports(self.outside[path]))) for path in self.talking)
        found = {word for text in (*texts, *(self.held or self._filled_last())) for word in words(text)}
        for path in self.talking:
            found.update(name for alias, name in aliases(self.sources[path]).items() if alias in found)
        return found

    def _filled_last(self) -> Iterator[bytes]:
        """What fills tables behind the last function of a file, to whose text it is taken."""
        last: dict[str, int] = {}
        for each in self.functions():
            last[each.path] = max(each.begin, last.get(each.path, 0))
        ends = {path: self.sources[path][last[path] :] for path in self.talking if path in last}
        return (statement for same in tables(ends, self.defined).values() for _, statement in same)

    def kept(self) -> set[bytes]:
        """Words of what is called later."""
        return {word for path, words in self._kept.items() if path not in self.far for word in words}

    def switches(self) -> list[str]:
        """What files say of the whole project: that memory is pinned, that distributions check what they are given."""
        return [word.decode() for word, said in ((_PINS, self.pins), (_CHECKS, self.checks)) if said]


def _without(roles: Mapping[str, Role], functions: Iterable[FunctionText]) -> list[FunctionText]:
    """Those of these functions of which, and of whose classes, nothing is told."""
    return [each for each in functions if f"{each.path}:{each.cls or each.name}" not in roles]
