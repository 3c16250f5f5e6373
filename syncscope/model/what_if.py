"""What would be if something of a step were otherwise: what that saves, and what to write for it."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.model.source import Place


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change of the recording that was replayed; times are ns per step.

    `saving` is what a step is likely shorter, between `low` and `high`, and by no more than `bound`, whatever takes its place.
    `lines` are those that it is about, the dearest first; `advice` is what to write, `rule` the linter's that offers it.
    `loops` is of how many loops, changed for real, the interval was learned; 0 where it comes from elsewhere. What is `bought`
    needs another machine, and is no advice on what to do first.
    """

    name: str
    saving: float
    low: float
    high: float
    bound: float
    lines: tuple[Place, ...] = ()
    advice: str = ""
    rule: str = ""
    loops: int = 0
    bought: bool = False
