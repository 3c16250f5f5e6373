"""Hot or cold by what functions, classes and files are called, which can be read from the text of a file alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from syncscope.tensors import conventions

MAYBE = "may run in every step"  # how the reason ends where there is none


def by_name(name: str, cls: str, methods: Collection[str]) -> tuple[bool, str]:
    """Of a function or, where `cls` is not "", a method of a class with these methods."""
    if conventions.ASIDE_CLASS.search(cls):
        return False, f"in `{cls}`: beside the training"
    if cls.endswith("Coder") and name.startswith("decode"):
        return False, f"in `{name}` of `{cls}`: evaluation"
    sampler = "set_timesteps" in methods
    if known_by_name(name, methods):
        return True, conventions.HOT[name]
    if conventions.COLD.match(name):
        return False, f"in `{name}`: set-up"
    if conventions.REPARAMETRIZATION.search(name):
        return False, f"in `{name}`: weights are made anew, once"
    if conventions.RESULT.search(name) and "loss" not in name:
        return False, f"in `{name}`: a result, once an epoch"
    if conventions.is_result_of(cls, name):
        return False, f"in `{name}` of a metric: a result, once an epoch"
    if conventions.CHECK.match(name):
        return False, f"in `{name}`: a check that is meant"
    if conventions.TO_HOST.match(name):
        return False, f"in `{name}`: it is asked for what the host needs"
    if conventions.DATA.match(name):
        return False, f"in `{name}`: data is prepared on the host"
    if conventions.EVALUATION.search(name):
        return False, f"in `{name}`: evaluation"
    if conventions.is_inference(cls, name):
        return False, f"in `{cls}`: inference"
    if conventions.is_loss(name) or conventions.is_loss(cls):
        return True, f"in the loss `{name}`"
    if sampler and name not in conventions.NOISING:
        return False, f"in `{cls}`: it samples, when training is over"
    if cls.endswith(conventions.PREPARING_CLASSES) or picks_rows(cls, methods):
        return False, f"in `{cls}`: data is prepared on the host"
    return True, conventions.HOT.get(name, f"`{name}` {MAYBE}")


def known_by_name(name: str, methods: Collection[str]) -> bool:
    """Whether what it is called says that it runs in every step, wherever it stands."""
    return name in conventions.HOT and name != "__call__" and "set_timesteps" not in methods


def by_place(package: Sequence[str], stem: str, name: str) -> str:
    """Why a function is cold by the file that it is in: the folders that are packages, the file's name without its suffix."""
    if aside := conventions.ASIDE.intersection((*package, stem.strip("_"))):
        return f"in `{min(aside)}`: beside the training"
    if conventions.ASIDE_WORD.search(stem):
        return f"in `{stem}`: beside the training"
    if "update" not in name and name != "forward" and any(p.endswith(("metric", "metrics")) for p in (*package, stem)):
        return f"in `{name}` of a metric: a result, once an epoch"
    return ""


def picks_rows(cls: str, methods: Collection[str]) -> bool:
    """Whether it is a sampler of a data set, which gives indices one by one; others sample anchors or noise on the device."""
    return cls.endswith("Sampler") and "__iter__" in methods
