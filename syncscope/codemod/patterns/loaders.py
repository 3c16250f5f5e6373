"""What a loader gives, as it gave it: on the host, if nothing moved it."""

from __future__ import annotations

import ast

from syncscope.codemod.view import View
from syncscope.model.fact import Site


def as_loaded(site: Site, view: View) -> bool:
    """Whether a site's operand is a name that the loop around it binds, and nothing is surely known to have moved it."""
    name, function = site.operand, view.function(site)
    if not isinstance(name, ast.Name) or site.confidence >= 2 or function.reaching_definition(name) is not None:
        return False
    loop = function.loop(site.node)
    return loop is not None and any(loop in function.around(n) for n in function.binds(name.id))
