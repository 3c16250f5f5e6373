"""torchmetrics: metrics of classification look through what they are given for values that are none, unless they are told
not to; means, sums and extremes for what is not a number.

As its `_tensor_validation` functions and `BaseAggregator` have it, version 1.9.
"""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import NONE, OTHER, THING, Items, holds_tensor, items, tensor

_KINDS = r"(?:binary|multiclass|multilabel)?_?"
_CLASSIFICATION = re.compile(
    rf"{_KINDS}(?:accuracy|f1_?score|fbeta_?score|precision|recall|specificity|stat_?scores|hamming_?distance|exact_?match|"
    r"jaccard_?index|confusion_?matrix|cohen_?kappa|matthews_?corr_?coef|auroc|roc|average_?precision|"
    r"precision_?recall_?curve|calibration_?error|hinge_?loss)$",
    re.IGNORECASE,
)
_AGGREGATORS = frozenset("MeanMetric SumMetric MaxMetric MinMetric CatMetric RunningMean RunningSum".split())
_ITSELF = frozenset("to cuda cpu clone eval train requires_grad_ set_dtype".split())
_TAKING = frozenset(("update", "forward", ""))  # "": it is called itself
_COLLECTION = "torchmetrics.MetricCollection"


def call(call: Call) -> Fact | None:
    """A call of torchmetrics: a metric is made, asked or moved, or a function; None: nothing is known of it."""
    metric, made, method = call.name.partition("()")
    if made:
        return _asked(call, metric, method.removeprefix("."))
    word = metric.rpartition(".")[2]
    if word == "MetricCollection":
        return _collected(call)
    checks = _CLASSIFICATION.match(word) is not None and not _is(call, "validate_args", False)
    if ".functional" in metric:
        if checks:
            _reads(call)
        return tensor(confidence=2, why=call.node) if _CLASSIFICATION.match(word) else None
    if word in _AGGREGATORS:
        checks = not _is(call, "nan_strategy", "disable")
    elif not _CLASSIFICATION.match(word):
        return None
    return _metric(metric) if checks else THING


def _metric(name: str) -> Fact:
    """A metric that looks at the values that it is given."""
    return Fact(OTHER, confidence=3, ref=f"{name}()")


def _reads(call: Call) -> None:
    if call.args or call.keywords:
        held = holds_tensor(call.first) or tensor(confidence=2, why=call.node)
        call.emit(Op.LIBRARY_READ, call.first_node, held, 2)


def _is(call: Call, name: str, value: object) -> bool:
    """Whether a keyword is given with this very value."""
    given = next((k.value for k in call.node.keywords if k.arg == name), None)
    return isinstance(given, ast.Constant) and given.value == value


def _collected(call: Call) -> Fact:
    """Metrics that are asked together: they look at values where one of them does."""
    first = call.first
    named = first.ref.keys if isinstance(first.ref, Items) else None
    each = (*first.elements, *(named or {}).values(), *call.args)
    checks = any(isinstance(fact.ref, str) and fact.ref.startswith("torchmetrics.") for fact in each)
    return _metric(_COLLECTION) if checks else THING


def _asked(call: Call, metric: str, method: str) -> Fact | None:
    """`self.accuracy(predicted, target)`, `self.accuracy.update(...)`, `self.accuracy.to(device)`."""
    if method in _ITSELF:
        return _metric(metric)
    if method in _TAKING:
        _reads(call)
    if method == "update":
        return NONE
    if method in _TAKING or method == "compute":
        found = tensor(confidence=2, why=call.node)
        return items(found, {}) if metric == _COLLECTION else found
    return None
