"""What waits beside the training, as far as names tell: numbers that a function reads of which nothing says that a step calls
it, and all in one whose own name says that it runs seldom, though a step calls it: `beam_decode`.

What computes with numbers of the host runs for somebody there: it decodes, draws a picture, analyses. It may run in every step
of others, and is told in a line; but who looks after it waits for those numbers anyway.
"""

from __future__ import annotations

import ast

from syncscope.heat.by_name import by_name
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import cooled
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Stays
from syncscope.model.heat import Heat, Reason
from syncscope.model.ops import VALUES
from syncscope.project import conventions
from syncscope.project.syntax import name_of
from syncscope.rules import View


def read_aside(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where it waits so, or for a text that shows numbers in each call of a network."""
    fix = finding.fix
    if site is None or fix is None or not finding.heat.whole:
        return finding
    if finding.heat.reason is Reason.CALLED and not _own_name(finding.function).hot:
        return cooled(finding, Reason.CALLED_ASIDE(finding.function))
    if site.op not in VALUES or fix.redraws:  # nobody asks the device for what is drawn
        return finding
    alone = not view.function(site).file.project.has_others()  # then nothing can say who calls it
    if finding.heat.reason is Reason.MAYBE and not alone and not _is_called_in_steps(finding.heat):
        return cooled(finding, Reason.READ_ASIDE(finding.function))
    if fix.stays is not Stays.NONE and finding.heat.reason is Reason.NAMED and _is_printed(site, view):
        return cooled(finding, Reason.PRINTED())
    return finding


def _own_name(function: str) -> Heat:
    """What a function is by its own name, and that of its class."""
    owner, _, name = function.rpartition(".")
    return by_name(name, owner.rpartition(".")[2], ())


def _is_called_in_steps(heat: Heat) -> bool:
    """Whether the function that calls it is known to run in steps, by its name."""
    said = _own_name(heat.caller) if heat.caller else None
    return said is not None and said.hot and said.reason not in conventions.PARTLY


def _is_printed(site: Site, view: View) -> bool:
    """Whether a number is read for a line on the screen alone."""
    function = view.function(site)
    statement = function.statement(site.node) if function.depth <= DEEPEST else None
    match statement:
        case ast.Expr(value=ast.Call(func=func)):
            return name_of(func) == "print"
    return False
