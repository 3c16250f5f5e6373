"""The words of a text, and what is said where one of them is wrong: its line, with a caret below."""

from __future__ import annotations

import re
from typing import NamedTuple

from syncscope.errors import UserError

_TOKEN = re.compile(
    r"\s+|#[^\n]*|(?P<number>(?:\d+\.?\d*|(?<![\w)])\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<op><=>|->|(?:(?:min|max)(?==!?(?!=))|[+*])=!?(?!=)|\|\||&&|[=!<>]=|//|[-+*/%()?:,={}<>!.])|(?P<name>[A-Za-z_]\w*)"
)
# What other languages write, and what is written here.
FOREIGN = {
    "[": "an element is read as A(i, j)", "]": "an element is read as A(i, j)",
    ";": "a statement ends where the next begins", "^": "write pow(x, 2)", "**": "write pow(x, 2)",
    "and": "write &&", "or": "write ||", "not": "write !x", "if": "write condition ? this : that",
    **dict.fromkeys("$<", "a number that is given at the call is a parameter: int s"),
    "@": "a product is a sum: C(i,j) +=! A(i,k) * B(k,j)", "range": "write i in 0:N",
    "sum": "a sum is a statement with +=!: what is on the right only is summed over",
    "mean": "a mean is a sum, by +=!, and a division by its length", "softmax": "write its maximum, its exp and its sum",
    "abs": "write fabs", "sigmoid": "write 1 / (1 + exp(-x))", "relu": "write max(x, 0)", "log_softmax": "write x - M - log(Z)",
}  # fmt: skip


class NotationError(UserError):
    """What is wrong with a comprehension: the words, its line with a caret below, and what to write."""

    def __init__(self, text: str, at: int, message: str, hint: str = "") -> None:
        begin = text.rfind("\n", 0, at) + 1
        line = text[begin:].partition("\n")[0]
        margin = len(line) - len(line.lstrip())
        super().__init__(f"{message}\n  {line.strip()}\n  {' ' * (at - begin - margin)}^", hint)
        self.words = message


class Token(NamedTuple):
    """A word of the text; kind is "number", "name", "op" or "end"."""

    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        """Where the text goes on behind it."""
        return self.at + len(self.text)


def tokens(text: str) -> list[Token]:
    """The words, without blanks and comments."""
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotationError(text, at, f"{text[at]!r} is no part of the notation", FOREIGN.get(text[at], ""))
        if match.lastgroup:
            found.append(Token(match.lastgroup, match[0], at))
        at = match.end()
    return [*found, Token("end", "the end", len(text.rstrip()))]
