"""What is computed on the host alone, as far as its names tell: there nothing is waited for.

It is told in a line all the same, as who else calls it may have a device.
"""

from __future__ import annotations

import re

from syncscope.linter.worth import cooled
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import Reason
from syncscope.rules import View

_OF_HOST = re.compile(r"(^|_)cpu(_|$)", re.IGNORECASE)


def on_host(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where its function says that it is for the host, or its project knows no device."""
    if site is None or finding.fix is None or not finding.heat.whole or finding.heat.reason is Reason.OWN:
        return finding
    name = next((each for each in finding.function.split(".") if _OF_HOST.search(each)), "")
    if name:
        return cooled(finding, Reason.OF_HOST(name))
    return cooled(finding, Reason.NO_DEVICE()) if view.function(site).file.project.on_host() else finding
