"""Loggers, experiment trackers and progress bars: a tensor that they are given is read where it is written down."""

from __future__ import annotations

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.syntax import name_of
from syncscope.tensors.call import Call
from syncscope.tensors.facts import BATCH, SOMEWHERE, TENSOR, Items, Tag, holds_tensor, items

# Methods of loggers; their first argument is a text into which the others are formatted.
_MESSAGES = frozenset("debug info warning error critical exception warn warn_once warning_once info_once".split())
# Methods of tensorboard's writer, of mlflow and of tqdm's bars.
_TRACKED = frozenset(
    """log_metrics add_scalar add_scalars add_histogram set_postfix set_postfix_str set_description log_metric""".split()
)
TELLING = _MESSAGES | _TRACKED
_TRACKERS = ("wandb", "mlflow", "swanlab", "comet_ml")
# What only Lightning's `log` is asked, on whatever object: it keeps the tensor as it is.
_KEPT = frozenset("on_step on_epoch prog_bar sync_dist rank_zero_only add_dataloader_idx".split())


def method(call: Call) -> None:
    """A method that tells by its name alone, of whatever object; Lightning's `self.log` keeps the tensor as it is."""
    if call.word == "log" and (name_of(call.at) == "self" or not _KEPT.isdisjoint(call.keywords)):
        return
    if call.word in _MESSAGES and call.first.ref is Tag.TEXT:
        for at, fact in zip(call.nodes[1:], call.args[1:], strict=False):
            if fact.kind is TENSOR:
                call.emit(Op.FORMAT, at, fact)
    elif call.word in _TRACKED:
        _tracked(call)


def anywhere(call: Call) -> Fact | None:
    """A function that is called like such a method, and `wandb.log`; `tqdm(x)` goes over x."""
    if call.word in _TRACKED or (call.word == "log" and call.name.partition(".")[0] in _TRACKERS):
        _tracked(call)
    if call.word not in conventions.BARS or not call.args:
        return None
    word = name_of(call.nodes[0])
    if call.first.kind is UNKNOWN.kind and conventions.is_loader(word):
        return items(Fact(BATCH, device=SOMEWHERE, confidence=1, why=f"a batch of `{word}`"))
    return call.first


def _tracked(call: Call) -> None:
    for at, fact in zip(call.nodes, call.args, strict=False):
        held = holds_tensor(fact)
        if held is None and isinstance(fact.ref, Items) and fact.ref.keys:
            held = next((f for f in fact.ref.keys.values() if f.kind is TENSOR), None)
        if held is not None:
            call.emit(Op.FORMAT, at, held, 2)
            return
    for keyword in call.node.keywords:
        fact = call.keywords[keyword.arg]
        if fact.kind is TENSOR:
            call.emit(Op.FORMAT, keyword.value, fact, 2)
            return
