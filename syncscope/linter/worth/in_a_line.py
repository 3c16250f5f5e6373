"""Why a fix of hot code is told in a line: the judges are asked one by one, and the first that knows a reason decides.

It may run in every step of others, so it is told; but who looks after the project gains nothing by a change of it.
"""

from __future__ import annotations

from collections.abc import Callable

from syncscope.linter.worth import by_default, by_names
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import Reason
from syncscope.rules import Function, View


def in_a_line(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where a judge knows why."""
    if site is None or finding.fix is None or not finding.heat.whole or finding.heat.reason is Reason.OWN:
        return finding
    function = view.function(site)
    for reason, judge in JUDGES:
        if about := judge(finding, site, function):
            return finding.cooled(reason(about) if isinstance(about, str) else reason())
    return finding


JUDGES: tuple[tuple[Reason, Callable[[Finding, Site, Function], bool | str]], ...] = (
    (Reason.CONVERTED, by_default.converted),
    (Reason.RARE, by_default.of_few_rows),
    (Reason.RARE, by_default.of_nothing),
    (Reason.NO_LOSS, by_default.in_place_of_loss),
    (Reason.FOR_TOKENS, by_default.for_tokens),
    (Reason.UNGIVEN, by_default.not_asked_for),
    (Reason.OF_HOST, by_names.of_host),
    (Reason.NO_DEVICE, by_names.trained_on_host),
    (Reason.UNSPOKEN, by_names.unspoken),
    (Reason.CALLED_ASIDE, by_names.called_aside),
    (Reason.READ_ASIDE, by_names.read_aside),
    (Reason.PRINTED, by_names.printed),
)
"""In the order in which they are asked. A text that one gives is what the reason is about."""
