"""transformers: tokenizers and processors, which work on the host, and the outputs of models."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions
from syncscope.tensors.facts import BATCH, FLOAT, HOST, tensor


def prepared(node: ast.Call) -> Fact | None:
    """`tokenizer(text, return_tensors="pt")`: a batch on the host; None: it is no such call."""
    for keyword in node.keywords:
        if keyword.arg == "return_tensors":
            value = keyword.value
            if not isinstance(value, ast.Constant) or value.value == "pt":
                return Fact(BATCH, device=HOST, confidence=2, why=node)
    return None


def output(owner: Fact, node: ast.Attribute) -> Fact:
    """`model(...).logits`, where it is but likely that the model gave a tensor."""
    if owner.confidence == 3 or node.attr not in conventions.MODEL_OUTPUTS:
        return UNKNOWN
    return tensor(FLOAT, confidence=owner.confidence, why=node, ndim=0 if node.attr == "loss" else None)
