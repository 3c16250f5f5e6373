"""Versions of a program: sets of candidates of a plan, or the one other program."""

Set = frozenset[int]
AS_WRITTEN: Set = frozenset()
AGAIN: Set = frozenset({-1})  # as written, too: what equal versions differ by
THIRD: Set = frozenset({-2})
