"""What is computed on the host alone, as far as its names tell: there nothing is waited for.

It is told in a line all the same, as who else calls it may have a device.
"""

from __future__ import annotations

import ast
import re

from syncscope.linter.worth import cooled
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import Reason
from syncscope.project.on_host import trains_on_host
from syncscope.project.syntax import name_of
from syncscope.rules import Function, View

_OF_HOST = re.compile(r"(^|_)cpu(_|$)", re.IGNORECASE)
_PLAIN = frozenset(("Module", "object", "ABC"))  # bases that move nothing to a device


def on_host(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where its function says that it is for the host, or what trains there knows no device."""
    if site is None or finding.fix is None or not finding.heat.whole or finding.heat.reason is Reason.OWN:
        return finding
    name = next((each for each in finding.function.split(".") if _OF_HOST.search(each)), "")
    if name:
        return cooled(finding, Reason.OF_HOST(name))
    function = view.function(site)
    if function.file.project.on_host() or _trains_on_host(function, site.node):
        return cooled(finding, Reason.NO_DEVICE())
    return finding


def _trains_on_host(function: Function, node: ast.AST) -> bool:
    """Whether the class or function at the top of the file around a node trains what it makes there, on the host."""
    file = function.file
    around = file.on_top(node.lineno) if isinstance(node, ast.expr | ast.stmt) else None
    if not isinstance(around, ast.FunctionDef | ast.ClassDef):
        return False
    if isinstance(around, ast.ClassDef) and not all(name_of(base) in _PLAIN for base in around.bases):
        return False
    text = file.text(around)
    return file.once(f"trains on the host: {text}", lambda: trains_on_host(text.encode())) and not (
        file.project.switches_default()
    )
