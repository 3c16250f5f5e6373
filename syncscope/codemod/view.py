"""A file as its rules see it: its text, its sites, and the function around each."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property

from syncscope.codemod.function import Function, nothing_known
from syncscope.codemod.text import ALONE, OfProject, Text
from syncscope.model.fact import Site
from syncscope.project.modules import ProjectFunction
from syncscope.tensors.interpret import Facts, waits_of


class View(Text):
    """One file, and all sites that were found in it: those hold the nodes of `tree`."""

    def __init__(
        self,
        code: bytes,
        sites: Sequence[Site] = (),
        tree: ast.Module | None = None,
        width: int = 0,
        project: OfProject = ALONE,
        facts_of: Callable[[ast.AST], Facts] = nothing_known,
    ) -> None:
        super().__init__(code, tree, width, project)
        self._facts_of = facts_of
        self.sites = tuple(sites)
        self._functions: dict[int, Function] = {}
        self._others: dict[str, Text] = {}  # the files of called functions

    def function(self, site: Site) -> Function:
        """The function around a site, or the module where there is none."""
        return self.of(site.function if site.function is not None else self.tree)

    def of(self, scope: ast.AST) -> Function:
        """What is known of a function of this file, or of its module."""
        found = self._functions.get(id(scope))
        if found is None:
            sites = self._sites_by_scope.get(scope, ())
            found = self._functions[id(scope)] = Function(self, scope, sites, facts_of=self._facts_of)
        return found

    @cached_property
    def _sites_by_scope(self) -> dict[ast.AST, list[Site]]:
        found: dict[ast.AST, list[Site]] = defaultdict(list)
        for site in self.sites:
            found[site.function if site.function is not None else self.tree].append(site)
        return found

    def elsewhere(self, known: ProjectFunction) -> Function:
        """What is known of a function of another file of the project."""
        found = self._functions.get(id(known.node))
        if found is None:
            path, module = known.module.path, known.module
            text = self._others.setdefault(path, Text(module.source, module.tree))
            found = Function(text, known.node, waits_of(known), elsewhere=True)
            self._functions[id(known.node)] = found
        return found

    def release(self) -> None:
        """Let go of the functions, which point back: then memory is free at once, without the garbage collector."""
        self._functions.clear()
