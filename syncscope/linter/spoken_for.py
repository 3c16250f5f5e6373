"""What nothing in its project names: it is dead, or for somebody who is not seen. It is told in a line, for it may run in every
step of theirs; but who looks after the project gains nothing by a change of it.
"""

from __future__ import annotations

import ast

from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import cooled
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import IN_TRAINING, Reason
from syncscope.project import conventions
from syncscope.project.syntax import name_of
from syncscope.rules import Function, View

_SAID = frozenset((Reason.OWN, Reason.CONFIGURED, Reason.MEASURED))  # somebody knows that it runs
_PLAIN = frozenset(("Module", "object", "ABC", "Function"))  # bases that call no methods but their own hooks
_CALLED = frozenset((*conventions.HOT, *conventions.HOOKS, "forward", "update", "compute", "reset"))
"""Methods that are called by who holds an object, whatever it is."""


def spoken_for(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where nothing in the project names what it stands in."""
    if site is None or finding.fix is None or not finding.heat.whole or finding.heat.reason in _SAID:
        return finding
    function = view.function(site)
    if function.depth > DEEPEST or not finding.function:
        return finding
    owner, *within = finding.function.split(".")
    within = [] if finding.heat.reason in IN_TRAINING else within  # whoever uses its class starts a training
    speaks = function.file.project.speaks_of
    name = next((each for each in (owner, *_method(function, owner, within)) if not speaks(each)), None)
    return finding if name is None else cooled(finding, Reason.UNSPOKEN(name))


def _method(function: Function, owner: str, within: list[str]) -> list[str]:
    """The method that a wait stands in, as `Class.method`, where nothing calls it but who names it."""
    cls = next((each for each in function.file.classes if each.name == owner), None)
    if cls is None or not within or cls not in function.file.tree.body:
        return []
    node = next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == within[0]), None)
    if node is None or node.decorator_list or node.name in _CALLED or (node.name[:2] == node.name[-2:] == "__"):
        return []
    return [f"{owner}.{node.name}"] if all(name_of(base) in _PLAIN for base in cls.bases) else []
