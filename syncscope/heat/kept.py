"""Functions that a file keeps, so that others call them later: as attributes, in `partial` and lambdas, as hooks, by type."""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.project.outline import names_imported

_ASSIGNED = re.compile(rb"\.\w++ = (?:\w++\.)*+(\w++)[ \t]*+[,)\n]")
_STORED = re.compile(rb"self\.\w+ = self\.(\w+)(?:[ \t]*\n| if [^\n]* else self\.(\w+)[ \t]*\n)")
_CHOSEN = re.compile(rb"\.\w++ = (?:\w++\.)*+(\w++) if [^\n]* else (?:\w+\.)*(\w+)[ \t]*\n")
_TABLE = re.compile(rb"\.\w+ = \{([^{}]*)\}")
_VALUE = re.compile(rb":\s*(?:\w+\.)*(\w+)\s*(?:,|\Z)")
_LISTED = re.compile(rb"self\.\w+ = [\[({]([^\])}]*)[\])}]")
_METHOD = re.compile(rb"(?<![\w.])self\.(\w+)(?![\w.(\[])")
_PARTIAL = re.compile(rb"partial\(\s*(?:\w+\.)*(\w+)[ \t]*[,)\n]")
_LAMBDA = re.compile(rb"lambda[ \t\w,=.*]*:\s*(?:\w+\.)*(\w+)\(")
_HOOKED = re.compile(rb"\.(?:register_(?!\w*state_dict)\w*hook|queue_callback)\(\s*(?:\w+\.)*(\w+)\s*[,)(]")
_NAMED_CALL = re.compile(rb"(\w+)\(")
_REGISTERED = re.compile(rb"@(\w+)\.register\b[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*(?:async )?def (\w+)")


def kept(source: bytes) -> set[bytes]:
    """The words of functions that are kept to be called later: `self.prepare = prepare`, `self.ask = self.ask_all`,
    `self.scaled = by_mean if robust else by_norm`, `self.metrics = {"error": error}`,
    `self.ways = [self.one, self.all]`, `partial(prepare, cutoff=5)`, `lambda x: prepare(x, 5)`; what is hooked,
    `p.register_hook(scaled)`, or queued behind a backward pass, `engine.queue_callback(self.reduce)`; and what makes
    what is hooked: `self.hook = self.made(scale)`
    """
    hooked = set(_HOOKED.findall(source)) if b"hook(" in source or b"queue_callback(" in source else set()
    hooked |= {called for name in hooked for line in _made_as(name, source) for called in _NAMED_CALL.findall(line)}
    stored = {name for names in _STORED.findall(source) for name in names if name}
    stored |= {name for listed in _LISTED.findall(source) for name in _METHOD.findall(listed)}
    methods = (b"." + name for name in hooked | stored)
    wrapped = _LAMBDA.findall(source) if b"lambda" in source else ()
    chosen = (name for names in _CHOSEN.findall(source) for name in names)
    return {
        *_PARTIAL.findall(source),
        *wrapped,
        *_ASSIGNED.findall(source),
        *chosen,
        *_in_tables(source),
        *hooked,
        *methods,
    }


def _in_tables(source: bytes) -> Iterator[bytes]:
    """What the tables of objects hold, of the functions that a file defines or imports: most tables hold numbers."""
    tables = _TABLE.findall(source) if b" = {" in source else ()
    imported = frozenset(names_imported(source)) if tables else ()
    for table in tables:
        for name in _VALUE.findall(table):
            if b"def %b(" % name in source or name.decode("utf-8", "replace") in imported:
                yield name


def registered(source: bytes) -> list[tuple[bytes, bytes]]:
    """Functions, each with what is registered with it for another type: `@permuted.register def of_tensor(x)`."""
    return _REGISTERED.findall(source) if b".register" in source else []


def _made_as(name: bytes, source: bytes) -> list[bytes]:
    """What a file assigns to a name, or an attribute of this name, each to the end of its line, or of the next in a bracket."""
    return re.findall(rb"\b%b(?:: ?[^\n=]*)? = ((?:\(\n)?[^\n]*)" % name, source)
