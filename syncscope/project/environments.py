"""How people call environments, and agents that learn in them."""

import re
from collections.abc import Collection
from functools import lru_cache

# `env.step(`, `_vec_envs.reset(`: it begins with what it is looked for by, and what stands before that is asked afterwards.
_ENVIRONMENT = re.compile(
    rb"env(?:(?<!\wenv)|(?<=\b_env)|(?<=\bvec_env)|(?<=\b_vec_env))(?:ironment)?s?\.(?:step|reset)\("
)


def asks_environment(code: bytes) -> bool:
    """Whether code asks an environment for its next state."""
    return _ENVIRONMENT.search(code) is not None


# What stepping gives: what is seen next, a reward, whether it is over, and more; actors give values beside their actions.
_STEPPED = re.compile(
    rb"^[ \t]*\(?[\w.*]+(?:,\s*[\w.*]+){3,5},?\s*\)?[ \t]*=[ \t]*(?:await )?[\w.]+\.step\(", re.MULTILINE
)


def drives(code: bytes) -> bool:
    """Whether code asks an environment, or for what one gives when it is stepped, whatever that is called: `self.step(act)`."""
    return asks_environment(code) or (b".step(" in code and _STEPPED.search(code) is not None)


_NAME = re.compile(r"(^|_)(vec_)?env(ironment)?s?$")


def is_called(name: str) -> bool:
    """Whether people call so an environment."""
    return _NAME.search(name) is not None


def is_one(name: str, methods: Collection[str]) -> bool:
    """Whether a class is an environment, by its name or since it can be shown."""
    return {"step", "reset"} <= {*methods} and (re.search("Env(?!elope)", name) is not None or "render" in methods)


_LEARNS = re.compile(r"^_?(update|learn|train|optimi[sz]e)(_(model|policy|parameters|agents?|networks?|weights))?$")
_LEARNER = re.compile(r"^_?(self|algo?|algorithm|agents?|policy|policies|learner|trainer|model)$")


def is_learner(name: str) -> bool:
    """Whether people call so what acts in an environment, and learns there: `agent.observe(state, reward)` may update it."""
    return _LEARNER.match(name) is not None and name != "self"


_ACTS = re.compile(r"^_?(batch_)?(act|observe)(_|$)")


def acts(name: str) -> bool:
    """Whether people call so the method by which what learns in an environment acts there, or sees what comes of it."""
    return _ACTS.match(name) is not None


_CHOOSES = re.compile(r"^_?(select|choose|get|sample|take|predict)_actions?(_|$)")


def chooses(methods: Collection[str]) -> bool:
    """Whether a class acts in an environment, by what its methods are called."""
    return any(map(_is_choice, methods))


@lru_cache(maxsize=10_000)  # asked for each method of a class, by each of them
def _is_choice(name: str) -> bool:
    return acts(name) or _CHOOSES.match(name) is not None


def learns(owner: str, name: str) -> bool:
    """Whether people call so what updates an agent: `self.alg.update()`; a progress bar and a dict are updated, too."""
    return bool(_LEARNS.match(name) and _LEARNER.match(owner))


_REMEMBERS = re.compile(r"^_?(store|add|remember|memori[sz]e|cache|record)(_(transitions?|experiences?|steps?))?$")
_KEEPS = re.compile(r"^_?(store|add|push|append|insert|remember|record|put|save)(_\w+)?$")
_MEMORY = re.compile(
    r"(^|_)(buf|buffers?|memory|replay|rpm|storage|rollouts?|experiences?|transitions?|trajector(y|ies))$"
)


def keeps(owner: str, name: str) -> bool:
    """Whether people call so what notes a step to be learned from: `self.buffer.store(obs, action)`, `agent.remember(obs)`,
    `store_data_func(obs)`.
    """
    if not owner:
        return name.lstrip("_").startswith(("store_", "remember_", "add_transition", "add_experience"))
    if is_learner(owner):
        return _REMEMBERS.match(name) is not None
    return bool(_KEEPS.match(name) and _MEMORY.search(owner.lower()))


def is_action(name: str) -> bool:
    """Whether people call so what an environment is told to do."""
    return "action" in name.lower()
