"""Calls under `torch.`: sent to who knows what they give."""

from __future__ import annotations

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors.call import Call
from syncscope.tensors.facts import TENSOR, TYPES_ON_DEVICE
from syncscope.tensors.torch.factories import factory
from syncscope.tensors.torch.functions import SPECIAL, by_schema
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.objects import made
from syncscope.tensors.torch.signatures import FACTORIES, function

_FUNCTIONS = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft", "torch.functional")


def torch_call(call: Call) -> Fact:
    """A call of a dotted name under `torch.`."""
    head, _, word = call.name.rpartition(".")
    if head == "torch.Tensor":
        if call.first.kind is not TENSOR:
            return UNKNOWN
        method = Call(call.frame, call.node, word, call.args[1:], call.keywords, call.first, call.first_node)
        method.nodes = call.nodes[1:]
        return tensor_method(method)
    if head not in _FUNCTIONS:
        of_type = word.endswith("Tensor") and call.name.startswith(TYPES_ON_DEVICE)
        return factory(call) if of_type else made(call)
    special = SPECIAL.get(word)
    if special is not None:
        found = special(call)
        if found is not None:
            return found
    if head == "torch.functional":
        call.name = f"torch.{word}"
    if word in FACTORIES and head == "torch":
        return factory(call)
    signature = function(call.name)
    if signature is not None:
        return by_schema(call, signature)
    return factory(call) if word[:1].isupper() and word.endswith("Tensor") else UNKNOWN
