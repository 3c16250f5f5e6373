"""The function around a site, as a rewrite sees it: its names and calls, what is known of them, what can be moved."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import cached_property

from syncscope.codemod.attributes import PLAIN_CALLS, RANDOM, alike_again
from syncscope.codemod.names_and_calls import Made, NamesAndCalls
from syncscope.codemod.text import Text
from syncscope.model.fact import UNKNOWN, Fact, Site
from syncscope.model.finding import Edit
from syncscope.project.syntax import walk
from syncscope.tensors.interpret import Facts

FREE_OF_EFFECTS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List,
    ast.Compare, ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Starred,
    ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def nothing_known(scope: ast.AST) -> Facts:
    """Of a function of which nobody was asked."""
    return lambda _: UNKNOWN


class Function(NamesAndCalls):
    """A function of the user, or a module where code stands in none, with the sites in it and what is known of its values."""

    def __init__(
        self,
        file: Text,
        scope: ast.AST,
        sites: Sequence[Site],
        elsewhere: bool = False,
        facts_of: Callable[[ast.AST], Facts] = nothing_known,
    ) -> None:
        super().__init__(file, scope)
        self._facts_of = facts_of
        self.elsewhere = elsewhere  # in another file than the one that is linted
        self.sites = tuple(sorted(sites, key=lambda s: s.span))  # all of this function
        self.drafted: dict[tuple[Edit, ...], tuple[tuple[Edit, ...], tuple[Edit, ...]]] = {}
        """By the edits of a fix what was drafted for it before it was laid out, and its imports."""
        self._why_not: dict[int, str] = {}  # by the id of a node

    @cached_property
    def _sites_by_statement(self) -> dict[int, list[Site]]:
        found: dict[int, list[Site]] = {}
        for site in self.sites:
            found.setdefault(id(self.statement(site.node)), []).append(site)
        return found

    def declines(self, node: ast.AST, why: str) -> Made | None:
        """Nothing, and why what waits at a node is not rewritten, for who asks: of several reasons the first, which is that of
        the rewrite that would do most. What is no form that a rewrite knows needs no reason."""
        self._why_not.setdefault(id(node), why)
        return None

    def why_not(self, node: ast.AST) -> str:
        """Why what waits at a node was not rewritten, so far; "" where nobody said."""
        return self._why_not.get(id(node), "")

    def sites_in(self, statement: ast.stmt) -> list[Site]:
        """The sites of one statement, without those of the statements in it, in order."""
        return self._sites_by_statement.get(id(statement), [])

    def fact(self, node: ast.expr) -> Fact:
        """What is known of an expression of this function."""
        return self._known(node)

    def fact_given(self, call: ast.Call, given: ast.expr) -> Fact:
        """What is known of what a call passes, in whichever function of the file it stands."""
        caller: ast.AST = self.file.callers.get(call, self.file.tree)
        return self.file.once(f"facts of {id(caller)}", lambda: self._facts_of(caller))(given)

    @cached_property
    def _known(self) -> Facts:
        return self.sites[0].fact_of if self.sites else self._facts_of(self.scope)

    def pure(self, node: ast.AST) -> bool:
        """Whether an expression can be evaluated twice, later or not at all without anybody noticing."""
        return all(
            isinstance(n, FREE_OF_EFFECTS)
            and (not isinstance(n, ast.Call) or self.pure_call(n))
            and (not isinstance(n, ast.Attribute) or alike_again(self.fact(n.value), n.attr) is not False)
            for n in walk(node)
        )

    def read_alike(self, node: ast.Attribute) -> bool:
        """Whether an attribute surely gives the same however often it is read: one that is unknown may be a property."""
        if self.dotted(node) is not None or alike_again(self.fact(node.value), node.attr):
            return True
        return any(not isinstance(n.ctx, ast.Load) and self.same_attribute(n, node) for n in self.every(ast.Attribute))

    def pure_call(self, call: ast.Call) -> bool:
        """Whether a call does nothing but give a value, whatever its arguments are."""
        if self.dotted(call.func) in PLAIN_CALLS:
            return True
        op = self.op(call)
        if op is None or op.name.endswith("_") or op.name in RANDOM or "out" in op.keywords:
            return False
        return self.dotted(call.func) is not None or self.fact(op.base).is_tensor
