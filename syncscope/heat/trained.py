"""What no training loop of a program builds or calls: it runs in none of their steps.

A `forward` runs in steps, whatever class it is of, only where others may build that class: in a library. A program that holds
the loops which train it builds all of what it trains itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from syncscope.heat.built import Built
from syncscope.heat.by_text import is_frozen
from syncscope.heat.flags import off
from syncscope.heat.parsed_text import tree_of
from syncscope.heat.rollouts import rollouts
from syncscope.heat.spoken_in_steps import SpokenInSteps
from syncscope.heat.training_loops import PASS, around, trains, trains_at_top
from syncscope.heat.training_program import TrainingProgram, after_training, is_evaluation
from syncscope.model.heat import Role
from syncscope.project import beside_training, folders
from syncscope.project.outline import Spoken


class Trained(NamedTuple):
    """What the training loops of a program tell of it."""

    roles: dict[str, Role]  # of what they neither build nor call: "/path/of/file.py:name" of functions and classes
    files: Collection[str]  # in which that is what they do
    said: Spoken  # what functions speak of where they run in steps


def untrained(root: Path, sources: dict[str, bytes], aside: Collection[str]) -> Trained | None:
    """What the training loops of a program build and call; None of a library, of what trains nothing itself, and where objects
    are made of classes that a configuration names. `aside` are files beside the training.
    """
    if not any(beside_training.TRAINS.search(source) for source in sources.values()) or offers(root, sources):
        return None
    program = TrainingProgram(sources)
    built = _built(program, aside)
    if built is None or built.unknown:
        return None
    switched_off = _off(program, built)
    roles = _untrained(program, built) | dict.fromkeys(switched_off, Role.OFF)
    return Trained(roles, built.files, SpokenInSteps(program.spoken(), switched_off))


def offers(root: Path, sources: Mapping[str, bytes]) -> bool:
    """Whether this is a library: it is to be installed, or in no project, and the outermost of its packages, or those directly
    below one, offer what others may build: `pythae/__init__.py` is empty, `pythae/models/__init__.py` has all of its models."""
    if not (folders.is_library(root) or folders.stands_alone(root)):
        return False
    packages = {
        os.path.dirname(path): source for path, source in sources.items() if os.path.basename(path) == "__init__.py"
    }
    above = {folder: os.path.dirname(folder) for folder in packages}
    outermost = {folder for folder in packages if above[folder] not in packages}
    return any(
        folders.offers(os.path.basename(folder), source)
        for folder, source in packages.items()
        if folder in outermost or above[folder] in outermost
    )


def _built(program: TrainingProgram, aside: Collection[str]) -> Built | None:
    """What the training loops of a program build and call; None where it has none."""
    every = [each for each in program.functions() if not (each.path in aside or after_training(each.path))]
    driving = {each.key for each in rollouts(every)}
    roots = [each for each in every if each.key in driving or trains(each)]
    tops = {path for path, text in program.outside.items() if path not in aside and trains_at_top(text)}
    if not (tops or any(PASS.search(each.text()) for each in roots)):
        return None
    said = program.spoken()
    training, starting = around(program, said, roots, every)
    if not (tops or starting):
        return None
    built = Built(program, said)
    built.follow(training, tops | starting)
    return built


def _untrained(program: TrainingProgram, built: Built) -> dict[str, Role]:
    """The functions and the classes that are neither built nor called, in files of which it is known who uses them."""
    used = program.used()
    functions = (
        f"{each.path}:{each.name}"
        for each in program.functions()
        if not each.cls and each.key not in built.functions and each.path in used
        if not each.is_decorated() or is_frozen(each)
    )
    classes = (
        f"{cls.path}:{name}"
        for name, same in program.classes.items()
        if name not in built.classes and not any(cls.decorated for cls in same)
        for cls in same
        if cls.path in used
    )
    return dict.fromkeys((*functions, *classes), Role.UNTRAINED)


def _off(program: TrainingProgram, built: Built) -> set[str]:
    """The flags that nothing turns on that trains, of what is built and called."""
    functions = [each for each in program.functions() if each.key in built.functions and not is_evaluation(each)]
    known = {word.removeprefix(b".").decode() for word in program.defined} | program.classes.keys()
    derived = {name: program.derived(name) for name in built.classes}
    trees = ((path, tree) for path in built.files if (tree := tree_of(program.sources[path])) is not None)
    return off(functions, trees, known, derived)
