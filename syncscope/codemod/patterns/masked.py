"""A number made of what a mask selects, `F.l1_loss(x[m], y[m])` over several lines, as statements of index notation.

`n` runs over the mask's elements, `c` over what is selected as a row of each. What is selected is read in place, and what the
mask leaves out counts for nothing.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import TorchCall
from syncscope.codemod.pattern import seen
from syncscope.codemod.proofs import is_number
from syncscope.codemod.text import CannotRewrite
from syncscope.model.fact import Dtype, Site

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTIONS = {"abs": "fabs"} | {name: name for name in "log log1p exp sqrt tanh rsqrt pow erf sin cos".split()}
_FORMULAS = {
    "square": "pow({0}, 2)", "sigmoid": "(1 / (1 + exp(-{0})))", "relu": "max({0}, 0)", "neg": "-{0}", "float": "{0}",
    "sub": "({0} - {1})", "add": "({0} + {1})", "mul": "({0} * {1})", "div": "({0} / {1})",
}  # fmt: skip
_LOSSES = {  # of a guess and the truth, each for one element
    "mse_loss": "pow({0} - {1}, 2)", "l1_loss": "fabs({0} - {1})",
    "smooth_l1_loss": "(fabs({0} - {1}) < 1 ? 0.5 * pow({0} - {1}, 2) : fabs({0} - {1}) - 0.5)",
    "binary_cross_entropy_with_logits": "max({0}, 0) - {0} * {1} + log1p(exp(-fabs({0})))",
}  # fmt: skip
_WORDS = {
    "def",
    "where",
    "in",
    "exists",
    "else",
    "inf",
    "nan",
    "float",
    "int",
    "bool",
    "half",
    "double",
    "N",
    "C",
    "n",
    "c",
}
_Part = Callable[[ast.expr], tuple[str, str]]
_FLAT, _COLUMN = "(n)", "(n, 0)"  # the shapes of what is selected: a vector, or a column of as many rows


class Masked:
    """The statements, and what they read: by parameter, its type, its sizes, and the expression of the user's."""

    def __init__(self, site: Site, function: Function, mask: ast.expr) -> None:
        self.site, self.function, self.mask = site, function, mask
        self.statements: dict[str, str] = {}  # what is computed, by the name that it has
        self.inputs: dict[str, tuple[str, str, ast.expr]] = {}
        self.gone: list[ast.AST] = []  # assignments that are seen through
        self.selections: list[ast.expr] = []
        self.keeps = self.read(mask, "bool")

    def scalar(self, node: ast.expr) -> str:
        """A value without dimensions.

        Raises:
            CannotRewrite: it is made otherwise.
        """
        node = self.seen_through(node)
        if (value := self.function.constant(node)) is not None:
            return repr(value)
        if isinstance(node, ast.BinOp):
            return self.of_two(node, self.scalar(node.left), self.scalar(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{self.scalar(node.operand)}"
        if (loss := self.loss(node)) is not None:
            return loss
        op = self.function.op(node)
        if op is None:
            if isinstance(node, (ast.Name, ast.Attribute)) and is_number(self.function, node):
                return self.read(node, "float", "")
            raise CannotRewrite("no number that index notation has")
        if not op.args and not op.keywords and op.name in ("sum", "mean"):
            if op.name == "sum" and self.function.same(op.base, self.mask):
                return self.count()
            return self.reduced(op.name, self.element(op.base)[0])
        if op.name in ("clamp", "clamp_min") and (least := op.argument(0, "min")) is not None and len(op.keywords) < 2:
            return f"max({bare(self.scalar(op.base))}, {self.scalar(least)})"
        if op.name in (*_FUNCTIONS, *_FORMULAS) and not op.keywords:
            return _called(op.name, list(map(self.scalar, (op.base, *op.args))))
        raise CannotRewrite(f"{op.name} is not known")

    def loss(self, node: ast.expr) -> str | None:
        """A loss of what is selected; None where it is none."""
        name = (self.function.dotted(node.func) or "") if isinstance(node, ast.Call) else ""
        last = name.rpartition(".")[2]
        if not isinstance(node, ast.Call) or name != f"torch.nn.functional.{last}" or len(node.args) != 2:
            return None
        reduction = "mean"
        for given in node.keywords:
            value = given.value.value if isinstance(given.value, ast.Constant) else None
            if given.arg != "reduction" or value not in ("mean", "sum"):
                return None
            reduction = str(value)
        if last in _LOSSES:
            (x, one), (y, other) = map(self.element, node.args)
            if one != other:
                raise CannotRewrite("a column meets a vector")
            return self.reduced(reduction, _LOSSES[last].format(x, y))
        if last in ("nll_loss", "cross_entropy"):
            row = self.row(node.args[0]) if last == "nll_loss" else self.log_softmax(self.row(node.args[0]))
            return self.reduced(reduction, f"-{self.picked(row, self.element(node.args[1])[0])}")
        return None

    def element(self, node: ast.expr) -> tuple[str, str]:
        """What stands for one element of the mask, and in which shape all of them stand."""
        node = self.seen_through(node)
        if self.function.constant(node) is not None:
            return self.scalar(node), _FLAT
        if self.selects(node):
            assert isinstance(node, ast.Subscript)
            return self.dense(node.value), _FLAT
        one = seen(self.function, node, "{x}.squeeze(1)", "{x}.squeeze(-1)", "{x}.squeeze()", "{x}[:, 0]")
        if one is not None:
            return self.column(one["x"]), _FLAT
        op = self.function.op(node)
        if op is not None and op.name == "gather":
            return self.column(node), _COLUMN
        if op is not None and op.name == "logsumexp" and self.last(op, 0):
            return self.log_sum(self.row(op.base)), _FLAT
        return self.pointwise(node, self.element)

    def dense(self, node: ast.expr) -> str:
        """An element of what the mask selects from."""
        node = self.function.value(node) if isinstance(node, ast.Name) and not self.tensor(node) else node
        if self.function.constant(node) is not None:
            return self.scalar(node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) or (
            (op := self.function.op(node)) and op.name in (*_FUNCTIONS, *_FORMULAS)
        ):
            return self.pointwise(node, lambda x: (self.dense(x), _FLAT))[0]
        if is_number(self.function, node):
            return self.read(node, "float", "")
        kind = {Dtype.BOOL: "bool", Dtype.INT: "int"}.get(self.site.fact_of(node).dtype, "float")
        return self.read(node, kind)

    def pointwise(self, node: ast.expr, part: _Part) -> tuple[str, str]:
        """What is made element by element."""
        if isinstance(node, ast.BinOp):
            (x, one), (y, other) = part(node.left), part(node.right)
            numbers = [self.function.constant(p) is not None for p in (node.left, node.right)]
            if one != other and not any(numbers):
                raise CannotRewrite("a column meets a vector")
            return self.of_two(node, x, y), other if numbers[0] else one
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
            if self.apart_in_kind(node.left, node.comparators[0]):
                raise CannotRewrite("one side holds whole numbers, and nothing says that the other does")
            (x, one), (y, _) = part(node.left), part(node.comparators[0])
            return f"({x} {_OPERATORS[type(node.ops[0])]} {y})", one
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            x, one = part(node.operand)
            return f"-{x}", one
        op = self.function.op(node)
        if op is not None and op.name in (*_FUNCTIONS, *_FORMULAS) and not op.keywords:
            made = [part(x) for x in (op.base, *op.args)]
            return _called(op.name, [x for x, _ in made]), made[0][1]
        raise CannotRewrite("nothing that index notation has")

    def apart_in_kind(self, *sides: ast.expr) -> bool:
        """Whether one side is known to hold whole numbers or truth values, and of the other nothing is known: `best == label`.

        A parameter has a type, and one of `float` takes no labels.
        """
        kinds = [self.site.fact_of(side).dtype for side in sides if self.function.constant(side) is None]
        return Dtype.UNKNOWN in kinds and not {Dtype.INT, Dtype.BOOL}.isdisjoint(kinds)

    def row(self, node: ast.expr) -> str:
        """The element `c` of the row that is selected."""
        node = self.seen_through(node)
        if self.selects(node):
            assert isinstance(node, ast.Subscript)
            base = self.function.value(node.value)
            op = self.function.op(base)
            if op is not None and op.name == "log_softmax" and self.last(op, 0):
                self.gone.append(base)
                return self.log_softmax(self.read(op.base, "float", "N, C"))
            return self.read(node.value, "float", "N, C")
        op = self.function.op(node)
        if op is not None and op.name == "log_softmax" and self.last(op, 0):
            return self.log_softmax(self.row(op.base))
        raise CannotRewrite("no row that is selected")

    def column(self, node: ast.expr) -> str:
        """What `gather` takes from each row."""
        op = self.function.op(self.seen_through(node))
        if op is None or op.name != "gather" or len(op.args) != 2 or not self.last(op, 0):
            raise CannotRewrite("no column")
        places = seen(
            self.function, op.args[1], "{t}.unsqueeze(1)", "{t}.unsqueeze(-1)", "{t}[:, None]", "{t}.view(-1, 1)"
        )
        if places is None:
            raise CannotRewrite("no column of places")
        return self.picked(self.row(op.base), self.element(places["t"])[0])

    def log_softmax(self, row: str) -> str:
        return f"({row} - {self.log_sum(row)})"

    def log_sum(self, row: str) -> str:
        most = self.named("most", f"max=! {bare(row)}", True)
        parts = self.named("parts", f"+=! exp({row} - {most})", True)
        return f"({most} + log({parts}))"

    def picked(self, row: str, place: str) -> str:
        """The one element of each row at a place that data decides."""
        given = next((name for name, (_, _, expr) in self.inputs.items() if place == f"{name}(n)"), None)
        if given is not None:
            self.inputs[given] = ("int", *self.inputs[given][1:])
        return self.named("own", f"+=! c == {place} ? {bare(row)} : 0", True)

    def reduced(self, name: str, element: str) -> str:
        total = self.named("total", f"+=! {self.keeps} ? {element if '?' in element else bare(element)} : 0", False)
        return f"{total} / {self.count()}" if name == "mean" else total

    def count(self) -> str:
        """How many elements the mask keeps."""
        return self.named("kept", f"+=! {self.keeps}", False)

    def named(self, wish: str, value: str, each: bool) -> str:
        """A statement's result; what is computed already is not computed again."""
        known = next((name for name, own in self.statements.items() if own == value), None)
        name = known or self.fresh(wish) + ("(n)" if each else "")
        self.statements.setdefault(name, value)
        return name

    def fresh(self, wish: str) -> str:
        """A name that nothing has yet."""
        taken = _WORDS | set(self.inputs) | {name.removesuffix("(n)") for name in self.statements}
        return next(w for w in itertools.chain([wish], (f"{wish}{i}" for i in itertools.count(2))) if w not in taken)

    def read(self, expr: ast.expr, kind: str, sizes: str = "N") -> str:
        """An element of a parameter, or a number."""
        known = next((n for n, (_, _, e) in self.inputs.items() if self.function.same(e, expr)), None)
        if known is None:
            if not self.function.pure(expr):
                raise CannotRewrite("it cannot be evaluated at another time")
            wish = expr.attr if isinstance(expr, ast.Attribute) else expr.id if isinstance(expr, ast.Name) else "x"
            known = self.fresh(wish)
            self.inputs[known] = kind, sizes, expr
        return {"": known, "N": f"{known}(n)"}.get(self.inputs[known][1], f"{known}(n, c)")

    def of_two(self, node: ast.BinOp, x: str, y: str) -> str:
        if isinstance(node.op, ast.Pow):
            return f"pow({bare(x)}, {bare(y)})"
        if type(node.op) not in _OPERATORS:
            raise CannotRewrite("no operator of index notation")
        return f"({x} {_OPERATORS[type(node.op)]} {y})"

    def selects(self, node: ast.expr) -> bool:
        """Whether it is a selection by the mask."""
        if not isinstance(node, ast.Subscript) or not self.function.same(node.slice, self.mask):
            return False
        self.selections.append(node)
        return True

    def tensor(self, name: ast.Name) -> bool:
        """Whether a name is best taken as the tensor that it is, not as how that was made."""
        return len(self.function.reads(name.id)) > 1 or self.function.value(name) is name

    def seen_through(self, node: ast.expr) -> ast.expr:
        """What a name stands for, where that is made of what is selected."""
        defined = self.function.reaching_definition(node) if isinstance(node, ast.Name) else None
        if defined is None:
            return node
        if not any(self.function.same(n, self.mask) or self.made_of(n) for n in ast.walk(defined.value)):
            return node
        self.gone.append(defined)
        return self.seen_through(defined.value)

    def made_of(self, node: ast.AST) -> bool:
        """Whether a name in an assigned value is made of what is selected itself."""
        return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and self.seen_through(node) is not node

    def last(self, op: TorchCall, position: int) -> bool:
        """Whether an operation is along the second of two dimensions."""
        dim = op.argument(position, "dim")
        return dim is not None and self.function.constant(dim) in (1, -1) and set(op.keywords) <= {"dim", "index"}

    def text(self, name: str, result: str) -> Iterator[str]:
        """The comprehension, line by line."""
        given = ", ".join(
            f"{kind}({sizes}) {n}" if sizes else f"{kind} {n}" for n, (kind, sizes, _) in self.inputs.items()
        )
        yield f"def {name}({given}) -> (result) {{"
        for target, value in self.statements.items():
            yield f"    {target} {value}"
        yield f"    result = {bare(result)}"
        yield "}"


def _called(name: str, parts: list[str]) -> str:
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({', '.join(map(bare, parts))})"
    return _FORMULAS[name].format(*parts)


def bare(text: str) -> str:
    """Without the parentheses around all of it, if there are any."""
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text
