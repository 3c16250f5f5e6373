"""Hot or cold by what functions, classes and files are called, which can be read from the text of a file alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from syncscope.model.heat import Heat, Reason
from syncscope.project import beside_training, cold_names, conventions, hooks


def by_name(name: str, cls: str, methods: Collection[str]) -> Heat:
    """Of a function or, where `cls` is not "", a method of a class with these methods."""
    return _by_name(name, cls, _TELLING.intersection(methods))


_TELLING = frozenset(
    ("forward", "set_timesteps", "__iter__", "feed_train_data", "update")
)  # methods that say what their class is


@lru_cache(maxsize=20_000)  # most names are those of many functions
def _by_word(name: str) -> tuple[Heat | None, Heat | None]:
    """What is said by the name alone: before its class is asked whether it is that of a metric, and after."""
    after: Heat | None = None
    if cold_names.CHECK.match(name):
        after = Reason.CHECK(name)
    elif cold_names.TO_HOST.match(name):
        after = Reason.TO_HOST(name)
    elif beside_training.is_of_data(name):
        after = Reason.DATA(name)
    elif cold_names.EVALUATION.search(name) and not cold_names.TRAINS_TOO.match(name):
        after = Reason.EVALUATION(name)
    if cold_names.SET_UP.match(name) or cold_names.CALIBRATES.match(name) or hooks.around_steps(name):
        return Reason.SET_UP(name), after
    if cold_names.REPARAMETRIZATION.search(name):
        return Reason.NEW_WEIGHTS(name), after
    if cold_names.RESULT.search(name) and "loss" not in name:
        return Reason.RESULT(name), after
    return None, after


@lru_cache(maxsize=50_000)  # a project's functions are asked for again and again, as they are reached
def _by_name(name: str, cls: str, methods: frozenset[str]) -> Heat:
    aside = beside_training.is_aside(cls) and not hooks.of_callback(name)
    if aside and not (name == "update" and "Metric" in cls):
        return Reason.ASIDE(cls)
    if cls.endswith("Coder") and name.startswith("decode"):
        return Reason.DECODING(name, cls)
    if name == "feed_data" and "feed_train_data" in methods:
        return Reason.EVALUATION(name)
    sampler = "set_timesteps" in methods or conventions.DRAWS.match(cls) is not None
    if name == "forward" and cls.replace("_", "").lower().endswith("kvcache"):
        return Reason.INFERENCE(cls)
    if known_by_name(name, methods):
        return hot(name) or Reason.MAYBE(name)
    before, after = _by_word(name)
    # A metric computes of what its `update` kept; what is called itself, and keeps nothing so, computes of what it is given.
    alone = name.lstrip("_") == "compute" and "forward" in methods and "update" not in methods
    given = conventions.is_loss(cls) or alone
    if before is not None and not (before.reason is Reason.RESULT and given):
        return before
    if conventions.is_result_of(cls, name) and not conventions.is_loss(name):
        return Reason.METRIC(name)
    if after is not None:
        return after
    if conventions.is_inference(cls, name):
        return Reason.INFERENCE(cls or name)
    if conventions.is_loss(name):
        return Reason.LOSS(name)
    if conventions.is_loss(cls):
        return Reason.SET_UP(name) if name.startswith("reset_") else hot(name) or Reason.OF_LOSS(name)
    if sampler and name not in conventions.NOISING:
        return Reason.SAMPLES(cls)
    prepares = (
        cls.endswith(conventions.PREPARING_CLASSES) and "forward" not in methods
    )  # as a network, it is part of one
    if prepares or picks_rows(cls, methods):
        return Reason.DATA(cls)
    return hot(name) or Reason.MAYBE(name)


def forget() -> None:
    """Let go of what was said of names: a project has been gone through, and most of its names are not asked for again."""
    _by_name.cache_clear()
    _by_word.cache_clear()


def hot(name: str) -> Heat | None:
    """Why a function runs in every step, where its name alone says so."""
    return conventions.HOT.get(name) or (Reason.NAMED(name) if hooks.of_step(name) else None)


def known_by_name(name: str, methods: Collection[str]) -> bool:
    """Whether what it is called says that it runs in every step, wherever it stands."""
    return hot(name) is not None and name != "__call__" and "set_timesteps" not in methods


def changes_batch(package: Sequence[str], name: str, cls: str) -> bool:
    """Whether it is a hook of a step, or a transform of a batch, among what prepares data; a loader's own is none."""
    aside = beside_training.NO_STEPS.intersection(package)
    of_step = hooks.of_step(name) and bool(cls) and not cls.endswith(_LOADERS)
    return of_step and bool(aside) and aside <= beside_training.PREPARING


_LOADERS = ("Loader", "DL", *conventions.PREPARING_CLASSES[:1], "DataModule")


def by_place(package: Sequence[str], stem: str, name: str) -> Heat | None:
    """Why a function is cold by the file that it is in: the folders that are packages, the file's name without its suffix."""
    aside, metrics = _place(tuple(package), stem)
    if aside is not None:
        return aside
    if metrics and "update" not in name and name != "forward" and not conventions.is_loss(name):
        return Reason.METRIC(name)
    return None


@lru_cache(maxsize=64)
def _place(package: tuple[str, ...], stem: str) -> tuple[Heat | None, bool]:
    """Why all of a file is cold, and whether it is one of metrics."""
    aside = beside_training.ASIDE.intersection((*package, *{stem.strip("_")} - beside_training.HELPERS))
    if aside := aside or beside_training.TRANSFORMING.intersection(package):
        return Reason.ASIDE(min(aside)), False
    if beside_training.ASIDE_WORD.search(stem):
        return Reason.ASIDE(stem), False
    return None, any(map(beside_training.is_metric, (*package, stem)))


def place(package: Sequence[str], stem: str, source: bytes) -> tuple[tuple[str, ...], str]:
    """The folders around a file, and its name, without the words that do not say what it is for.

    Transforms of normalizing flows and those that are layers prepare no data. What infers or is evaluated is not beside the
    training where it is what is trained: among it stand trainers, or the file itself trains.
    """
    folders, words = tuple(package), beside_training.TRAINED
    if not beside_training.TRANSFORMING.isdisjoint(folders) and _are_layers(source):
        folders = tuple(each for each in folders if each not in beside_training.TRANSFORMING)
    if words.isdisjoint(folders):
        return folders, stem
    trainers = [at for at, each in enumerate((*folders, stem)) if beside_training.TRAINER.search(each)]
    end = len(folders) if beside_training.TRAINS.search(source) else max(trainers, default=0)
    trained = words.intersection(folders[:end]) - set(folders[end:])
    return tuple(each for each in folders if each not in trained), "_".join(
        each for each in stem.split("_") if each not in trained
    )


def _are_layers(transforms: bytes) -> bool:
    layers = beside_training.LAYER.search(transforms) and beside_training.DEVICE.search(transforms)
    return bool(beside_training.FLOWS.search(transforms) or (layers and not beside_training.OF_DATA.search(transforms)))


def picks_rows(cls: str, methods: Collection[str]) -> bool:
    """Whether it is a sampler of a data set, which gives indices one by one; others sample anchors or noise on the device, or
    are asked for points with `next`.
    """
    return cls.endswith("Sampler") and "__iter__" in methods and "__next__" not in methods
