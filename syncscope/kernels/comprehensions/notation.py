"""The notation's sentences: text to a `Function`, or an error with a caret.

    function  := def name ( [type name],* ) -> ( name,* ) { statement* }
    type      := bool | uint8 | int8 | ... | float16 | float | double | int, and ( size,* ) for a tensor
    statement := name [( name,* )] op expression [<=> name( expression,* )] [where clause,+]
    op        := = | += | *= | min= | max= | +=! | *=! | min=! | max=!
    clause    := name in expression : expression  |  name = expression  |  exists expression

An expression is C's, with `A(i, j)` for an element, `A.0` for a size, `A(i - 1) else 0` for what is read outside, and
casts such as `float(x)`. A name that nothing else bears is an index variable of its statement.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from syncscope.kernels.comprehensions.expressions import (
    Apply,
    Name,
    Node,
    Number,
    Poly,
    Read,
    names,
    poly,
    reads,
    rewrite,
    walk,
)
from syncscope.kernels.comprehensions.functions import FUNCTIONS
from syncscope.kernels.comprehensions.ranges import ranged
from syncscope.kernels.comprehensions.statements import (
    STRENGTH,
    Function,
    Parameter,
    Range,
    Statement,
    renamed,
    written_over,
)  # fmt: skip
from syncscope.kernels.comprehensions.words import FOREIGN, NotationError, Token, tokens

FLOATS = ("float", "float16", "half", "bfloat16", "float32", "float64", "double")
INTEGERS = ("int", "int8", "int16", "int32", "int64", "uint8")
TYPES = (*FLOATS, *INTEGERS, "bool")
_REFUSED_TYPES = ("uint16", "uint32", "uint64")
_CONSTANTS = {"true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
_RESERVED = {"def", "where", "in", "exists", "else", *_CONSTANTS, *TYPES}
_OPS = {"=": ("=", True)} | {f"{op}={sets}": (op, bool(sets)) for op in ("+", "*", "min", "max") for sets in ("", "!")}
Item = TypeVar("Item")


def parse(text: str) -> Function:
    """The one function of a text.

    Raises:
        NotationError: it is not well formed, a name is not known, a range cannot be told, or a result is never written.
    """
    return _Parser(text).function()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.i = text, tokens(text), 0
        self.sizes: dict[str, tuple[Poly, ...]] = {}  # of tensors: parameters, then what was written
        self.numbers: set[str] = set()  # sizes and integer parameters
        self.inputs: set[str] = set()
        self.statements: list[Statement] = []
        self.target, self.left = "", tuple[str, ...]()  # what the statement at hand writes, and by which variables

    @property
    def now(self) -> Token:
        return self.tokens[self.i]

    def fail(self, message: str, hint: str = "", at: int | None = None) -> NotationError:
        return NotationError(self.text, self.now.at if at is None else at, message, hint)

    def refuse(self, wrong: object, message: str, hint: str = "", at: int | None = None) -> None:
        if wrong:
            raise self.fail(message, hint, at)

    def next_if(self, *texts: str) -> Token | None:
        token = self.now
        if token.kind in ("op", "name") and token.text in texts:
            self.i += 1
            return token
        return None

    def expect(self, text: str, where: str) -> Token:
        token = self.next_if(text)
        if token is None:
            raise self.fail(f"expected {text!r} {where}, not {self.now.text!r}", FOREIGN.get(self.now.text, ""))
        return token

    def name(self, what: str) -> Token:
        token = self.now
        self.refuse(token.kind != "name", f"expected {what}, not {token.text!r}", FOREIGN.get(token.text, ""))
        self.refuse(token.text in _RESERVED, f"{token.text!r} is a word of the notation, and cannot be {what}")
        self.i += 1
        return token

    def listed(self, item: Callable[[], Item], where: str = "") -> list[Item]:
        """What stands in parentheses, separated by commas."""
        self.expect("(", where)
        found: list[Item] = []
        while not self.next_if(")"):
            if found:
                self.expect(",", "or ')' in a list")
            found.append(item())
        return found

    def function(self) -> Function:
        hint = "as in def f(float(N) A) -> (C) { C(i) = 2 * A(i) }"
        self.refuse(self.now.text != "def", "a comprehension begins with def", hint)
        at = self.expect("def", "").at
        name = self.name("the function's name").text
        parameters = tuple(self.listed(self.parameter, "after the function's name"))
        self.expect("->", "after the parameters")
        results = self.listed(self.result) if self.now.text == "(" else [self.result()]
        self.refuse(not results, "there is no result", "name what is made, as in `-> (O)`")
        self.expect("{", "before the statements")
        while not self.next_if("}"):
            self.refuse(self.now.kind == "end", "the function is not closed", "write '}' after the last statement")
            self.statements += self.statement()
        self.refuse(
            self.now.kind != "end", f"{self.now.text!r} stands after the function", "one comprehension is one function"
        )
        written = {s.target for s in self.statements}
        for i, x in enumerate(results):
            self.refuse(x.text in [y.text for y in results[:i]], f"there are two results called {x.text}", at=x.at)
            hint = f"add a statement `{x.text}(...) = ...`"
            self.refuse(x.text not in written, f"the result {x.text} is never written", hint, x.at)
        made, fixed = tuple(x.text for x in results), frozenset(self.numbers)
        return Function(name, parameters, made, tuple(self.statements), self.sizes, fixed, self.text, at)

    def parameter(self) -> Parameter:
        kind = self.now.text
        self.refuse(kind in _REFUSED_TYPES, f"torch computes nothing in {kind}", "use a signed type, or uint8")
        hint = f"as in float(N, M) A; there are {', '.join(TYPES)}"
        self.refuse(kind not in TYPES, f"expected a type, not {kind!r}", hint)
        self.i += 1
        dims = tuple(self.listed(self.size)) if self.now.text == "(" else None
        token = self.name("a parameter's name")
        self.refuse(
            token.text in self.inputs | self.numbers, f"there are two parameters called {token.text}", at=token.at
        )
        if dims is None and kind in INTEGERS:
            self.numbers.add(token.text)
        else:
            self.sizes[token.text] = dims or ()
        self.inputs.add(token.text)
        return Parameter(kind, token.text, dims, token.at)

    def size(self) -> Poly:
        """A size of a parameter. A name alone is defined by the first that has it, and all others must agree."""
        at = self.now.at
        if self.now.kind == "name" and self.tokens[self.i + 1].text in (",", ")"):
            name = self.name("a size").text
            self.refuse(name in self.sizes, f"{name} is a tensor, and here a size", at=at)
            self.numbers.add(name)
            return Poly(Poly.of(name).terms, at=at)
        return Poly(poly(self.expression()).terms, at=at)

    def index(self) -> Token:
        """A variable on the left."""
        called = self.now.kind == "name" and self.tokens[self.i + 1].text == "("
        message = f"{self.now.text}(...) is no index variable, and only these are on the left"
        self.refuse(called, message, "where to write must not depend on data: use torch's index_add and the like")
        return self.name("an index variable")

    def result(self) -> Token:
        """A name behind the arrow."""
        hint = "both follow from the statements: -> (C)"
        self.refuse(self.now.text in TYPES, "results are named without type or sizes", hint)
        return self.name("a result's name")

    def statement(self) -> list[Statement]:
        target = self.name("the name of what is written")
        left = self.listed(self.index) if self.now.text == "(" else []
        op = self.now
        hint = FOREIGN.get(target.text) or f"there are {', '.join(_OPS)}"
        message = f"expected an assignment after {target.text}, not {op.text!r}"
        self.refuse(op.text not in _OPS, message, hint, target.at)
        self.i += 1
        self.target, self.left = target.text, tuple(x.text for x in left)
        value = self.expression()
        if self.next_if("<=>"):  # the library's function for the same: parsed, as in the original, and not needed
            self.name("a function's name")
            self.listed(self.expression, "after it")
        ranges, exists, lets = self.clauses()
        value = _given(value, lets)
        kind, sets = _OPS[op.text]
        self.check_target(target, left, op, sets)
        out = self.left
        for x in sorted((x for x in walk(value) if isinstance(x, Name)), key=lambda x: x.at):
            gone = kind == "=" and x.name not in self.numbers and x.name not in out
            hint = f"write +=!, *=!, min=! or max=! instead of =, or put {x.name} on the left"
            self.refuse(
                gone, f"{x.name} is on the right only: that is a reduction, and = is no operator of one", hint, x.at
            )
        written = " ".join(self.text[target.at : self.tokens[self.i - 1].end].split())
        if there := target.text in self.sizes:
            exists = (*exists, Read(target.text, tuple(map(Poly.of, out)), at=target.at))
        s = Statement(target.text, out, kind, value, ranges, exists, written=written, at=target.at)
        s = ranged(s, self.sizes, self.numbers, self.text)
        made = self.over(s, sets, op) if there else [s]
        self.sizes |= {x.target: tuple(x.ranges[n][1] for n in out) for x in made}
        return made

    def over(self, s: Statement, sets: bool, op: Token) -> list[Statement]:
        """A statement that goes on with a tensor, which has another name until then."""
        old, part = self.fresh(s.target), self.fresh(f"{s.target}_part")
        earlier = [renamed(x, s.target, old) for x in self.statements]
        s = replace(renamed(s, s.target, old), target=s.target)
        message, hint = f"{s.target} is written again, and what it was is never read", "give it another name"
        lost = sets and not any(x.tensor == old for one in (*earlier, s) for x in reads(one.value))
        self.refuse(lost, message, hint, s.at)
        self.statements[:] = earlier
        self.sizes[old] = self.sizes[s.target]
        return written_over(s, self.sizes[old], old, part, sets)

    def fresh(self, wish: str) -> str:
        """A name like this that nothing in the text has."""
        taken = self.sizes.keys() | {token.text for token in self.tokens}
        return next(name for i in itertools.count(1) if (name := f"{wish}_{i}") not in taken)

    def check_target(self, target: Token, left: list[Token], op: Token, sets: bool) -> None:
        """Whether this may be written so."""
        name, at = target.text, target.at
        message = f"{name} is an input, and inputs are never written"
        self.refuse(name in self.inputs, message, "give the result a name of its own", at)
        self.refuse(name in self.numbers, f"{name} is a size or a number already", "give the result another name", at)
        for i, x in enumerate(left):
            twice = x.text in [y.text for y in left[:i]]
            self.refuse(twice, f"{x.text} stands twice on the left", "give each dimension its own variable", x.at)
            known = x.text in self.numbers or x.text in self.sizes
            self.refuse(known, f"{x.text} is no index variable: it is known already", "choose a free name", x.at)
        if name not in self.sizes:
            message = f"{name} has no value that {op.text} could go on from"
            return self.refuse(
                not sets, message, f"write {op.text}! to begin with nothing, or {name}(...) = ... before", op.at
            )
        sizes = self.sizes[name]
        message = f"{name} has {_dimensions(sizes)}, and is written with {len(left)}"
        return self.refuse(len(sizes) != len(left), message, at=at)

    def clauses(self) -> tuple[dict[str, Range], tuple[Node, ...], dict[str, Node]]:
        """What follows `where`: ranges, reads that must exist, and names for expressions."""
        ranges: dict[str, tuple[Node, Node]] = {}
        exists: list[Node] = []
        lets: dict[str, Node] = {}
        more = self.next_if("where")
        while more:
            if self.next_if("exists"):
                exists.append(self.expression())
            elif (name := self.name("a variable").text) and self.next_if("in"):
                low = self.expression()
                self.expect(":", "between the ends of a range")
                ranges[name] = low, self.expression()
            else:
                hint = "as in `where i in 0:n, j = i + 1`"
                self.refuse(not self.next_if("="), f"expected 'in' or '=' after {name}", hint)
                lets[name] = _given(self.expression(), lets)
            more = self.next_if(",")
        ends = {
            n: (self.end(n, _given(low, lets)), self.end(n, _given(high, lets))) for n, (low, high) in ranges.items()
        }
        return ends, tuple(_given(x, lets) for x in exists), lets

    def end(self, name: str, node: Node) -> Poly:
        """An end of a range."""
        found = poly(node)
        on = "data" if found.data else min(names(found) - self.numbers, default="")
        self.refuse(on, f"the range of {name} depends on {on}", "ranges are made of sizes", node.at)
        return found

    def expression(self, above: int = 0) -> Node:
        """One whose operators bind more tightly than `above`; a choice binds least."""
        left = self.unary()
        while True:
            token = self.now
            level = STRENGTH.get(token.text) if token.kind == "op" else None
            if level is not None and level > above:
                self.i += 1
                left = Apply(token.text, (left, self.expression(level)), at=left.at)
            elif above == 0 and self.next_if("?"):
                yes = self.expression()
                self.expect(":", "after what is chosen")
                left = Apply("?", (left, yes, self.expression()), at=left.at)
            else:
                return left

    def unary(self) -> Node:
        at = self.now.at
        if self.next_if("-"):
            value = self.unary()
            return Number(-value.value, at=at) if isinstance(value, Number) else Apply("neg", (value,), at=at)
        if self.next_if("!"):
            return Apply("not", (self.unary(),), at=at)
        return self.primary()

    def primary(self) -> Node:
        token, before = self.now, self.tokens[self.i - 1]
        self.refuse(token.kind == "end", "an expression is missing")
        power, swapped = token.text == before.text == "*", before.text == "=" and token.text in ("+", "*")
        self.refuse(power, "'**' is no operator of the notation", FOREIGN["**"], before.at)
        self.refuse(swapped, f"'={token.text}' is no assignment", f"write {token.text}= or {token.text}=!", before.at)
        if token.kind == "number":
            self.i += 1
            return Number(int(token.text) if token.text.isdigit() else float(token.text), at=token.at)
        if self.next_if(*_CONSTANTS):
            return Number(_CONSTANTS[token.text], at=token.at)
        cast = self.next_if(*TYPES)
        if cast or token.text == "(":
            self.expect("(", f"after the cast to {token.text}")
            inner = self.expression()
            self.expect(")", "to close the parenthesis")
            return Apply(f"cast {token.text}", (inner,), at=token.at) if cast else inner
        self.name("an expression")
        if token.text in self.sizes or token.text == self.target:
            return self.tensor(token)
        return self.called(token) if self.now.text == "(" else Name(token.text, at=token.at)

    def called(self, token: Token) -> Node:
        name, function = token.text, FUNCTIONS.get(token.text)
        if function is None:
            near = [x for x in self.sizes if x.lower() == name.lower()]
            near = near or difflib.get_close_matches(name, [*self.sizes, *FUNCTIONS, *FOREIGN], 1, 0.75)
            hint = (
                FOREIGN.get(near[0], f"do you mean {near[0]}?")
                if near
                else "a tensor must be written before it is read"
            )
            raise self.fail(f"no tensor and no function is called {name}", hint, token.at)
        args, arity = self.listed(self.expression), function.arity
        wanted = f"{arity} argument{'s' if arity > 1 else ''}"
        hint = f"the {name} of several elements is a statement with {name}=!" if name in ("min", "max") else ""
        self.refuse(len(args) != arity, f"{name} takes {wanted}, not {len(args)}", hint, token.at)
        return Apply(name, tuple(args), at=token.at)

    def tensor(self, token: Token) -> Node:
        """An element of a tensor, or the size of one of its dimensions."""
        name, at, sizes = token.text, token.at, self.sizes.get(token.text, ())
        if name in self.sizes and self.next_if("."):
            dim = self.now.text
            there = dim.isdigit() and int(dim) < len(sizes)
            hint = f"as {name}.0; it has {_dimensions(sizes)}"
            self.refuse(not there, f"expected the number of a dimension of {name}, not {dim!r}", hint)
            self.i += 1
            return replace(sizes[int(dim)].node(), at=at)
        indexes = self.listed(self.expression) if self.now.text == "(" else []
        if name == self.target:
            message = f"{name} is an input, and inputs are never written"
            self.refuse(name in self.inputs, message, "give the result its own name", at)
            hint = "running sums and other scans are no comprehensions: use torch.cumsum and the like"
            again = name in self.sizes and indexes == [Name(x) for x in self.left]
            self.refuse(not again, f"{name} is read by the statement that writes it", hint, at)
        for x in (x for index in indexes for x in walk(index) if isinstance(x, Number) and isinstance(x.value, float)):
            raise self.fail(f"{x.value} is no integer, and indexes {name}", "write int(...)", x.at)
        message = f"{name} has {_dimensions(sizes)}, and is read with {len(indexes)}"
        self.refuse(len(sizes) != len(indexes), message, at=at)
        return Read(name, tuple(map(poly, indexes)), self.unary() if self.next_if("else") else None, at=at)


def _given(node: Node, lets: Mapping[str, Node]) -> Node:
    return rewrite(node, lambda x: lets.get(x.name, x) if isinstance(x, Name) else x) if lets else node


def _dimensions(sizes: tuple[Poly, ...]) -> str:
    return f"{len(sizes)} dimension{'' if len(sizes) == 1 else 's'}"
