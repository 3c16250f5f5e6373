"""A fix, what it mends, and what is said of the waits around that: all that judges of it are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from syncscope.linter.config import LEAST
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.heat import FOLLOWS, Heat, Reason
from syncscope.model.ops import Op
from syncscope.rules import Function, View

_ON_HOST = (Reason.ENVIRONMENT, Reason.GENERATION, Reason.BUFFER, Reason.SOLVER, Reason.ACTION, Reason.SCORE)
NOTHING_IN_FLIGHT = frozenset((*_ON_HOST, Reason.ONE_NUMBER))
"""What waits in a step, and where the host waits as long when it is mended."""
_OFFERED = frozenset((Reason.UNASKED, Reason.OFFERED, Reason.FOR_OTHERS))
"""Of what no step of the project calls; who calls it may do so in every step."""


class FixAmongWaits(NamedTuple):
    """One fix; `states` has what is said of each site of the file, by its `id`, and `idle` why steps gain little by others."""

    fix: Fix
    findings: Sequence[Finding]
    sites: Sequence[Site]  # of each finding; none in OpenCL
    states: Mapping[int, Finding]
    idle: Mapping[Fix, str]
    view: View

    @property
    def function(self) -> Function:
        """The function of the first of its waits."""
        return self.view.function(self.sites[0])

    @property
    def heat(self) -> Heat:
        """When the first of its waits comes by."""
        return self.findings[0].heat

    @property
    def gains_nothing(self) -> bool:
        """Whether no step waits less, once it is made."""
        return not any(_may_gain(finding, self.fix) for finding in self.findings)

    def mends_only(self, op: Op) -> bool:
        """Whether all of its waits are of a kind."""
        return bool(self.sites) and all(site.op is op for site in self.sites)

    @property
    def repeats(self) -> bool:
        """Whether one of its waits comes by many times in a step."""
        return any(finding.repeats for finding in self.findings)

    def told(self, sites: Iterable[Site]) -> Iterable[tuple[Site, Finding]]:
        """Those sites of which something is said, and that."""
        return ((site, said) for site in sites if (said := self.states.get(id(site))) is not None)

    def next_to(self, sites: Iterable[Site]) -> tuple[Site, Finding] | None:
        """The first of these sites that surely waits, and that this fix does not mend."""
        return next(((s, said) for s, said in self.told(sites) if counts(said) and said.fix != self.fix), None)


def _may_gain(finding: Finding, fix: Fix) -> bool:
    reason = finding.heat.reason
    if reason in _OFFERED:
        return fix.safety is Safety.SAFE
    return finding.hot and reason not in NOTHING_IN_FLIGHT and (reason not in FOLLOWS or finding.repeats)


def counts(wait: Finding | Site) -> bool:
    """Whether a wait can be told in place of another: it is sure enough, and runs in every step, as far as is known."""
    return wait.heat.hot and wait.confidence >= LEAST["medium"]


def is_left(said: Finding) -> bool:
    """Whether nothing mends a wait without more ado."""
    return said.fix is None or said.fix.safety is Safety.SUGGEST
