"""What the macros of a program stand for, as far as their own text says it: an expression, or statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from syncscope.opencl_c.text import DEFINED, Node, parse, part, qualified, uncommented

LONGEST = 400  # bytes of a macro that is taken for an expression
WORD = re.compile(rb"[A-Za-z_]\w*")


@dataclass(eq=False)
class Macros:
    """The macros of a text; of a name that is defined twice, both."""

    texts: dict[str, list[bytes]] = field(default_factory=dict)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)  # those of the first definition

    def mentioning(self, pattern: re.Pattern[bytes]) -> frozenset[str]:
        """Those in whose text this is found, and those that mention such."""
        found = {name for name, texts in self.texts.items() if any(map(pattern.search, texts))}
        words = {name: {w.decode() for t in texts for w in WORD.findall(t)} for name, texts in self.texts.items()}
        while more := {name for name, used in words.items() if used & found} - found:
            found |= more
        return frozenset(found)

    def meanings(self, name: str) -> list[Node]:
        """What a macro stands for, where that is an expression: its parameters are names in it."""
        short = (text for text in self.texts.get(name, ()) if len(text) <= LONGEST)
        return [meaning for text in short if (meaning := expression(text)) is not None]


def macros_in(code: bytes) -> Macros:
    """The macros that a text defines."""
    made = Macros()
    for found in DEFINED.finditer(code):
        name = found["name"].decode()
        listed = found[1].partition(b"(")[2].rstrip(b") \t")
        made.texts.setdefault(name, []).append(uncommented(found["text"]).strip())
        made.parameters.setdefault(name, tuple(p.strip().decode("latin-1") for p in listed.split(b",") if p.strip()))
    return made


@cache
def expression(text: bytes) -> Node | None:
    """A text as an expression of C; None where it is none."""
    root = parse(b"_ = " + qualified(text) + b";")
    statement = root.named_children[0] if not root.has_error and root.named_child_count == 1 else None
    whole = statement.named_children[0] if statement is not None and statement.named_children else None
    return part(whole, "right") if whole is not None and whole.type == "assignment_expression" else None
