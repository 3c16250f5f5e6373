"""accelerate and fabric: an accelerator's `gather` gives tensors."""

from __future__ import annotations

from syncscope.model.fact import Fact
from syncscope.project import conventions
from syncscope.project.syntax import last_word
from syncscope.tensors.call import Call
from syncscope.tensors.facts import SEQUENCE, TENSOR, tensor

GATHERING = frozenset("gather gather_for_metrics all_gather reduce pad_across_processes".split())


def method(call: Call) -> Fact | None:
    """A method of what people call an accelerator; None: it is none of these."""
    if call.word not in GATHERING or not call.args or not last_word(call.at).endswith(conventions.LAUNCHERS):
        return None
    return call.first if call.first.kind in (TENSOR, SEQUENCE) else tensor(confidence=2, why=call.node)
