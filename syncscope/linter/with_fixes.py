"""What is shown of a file, with what mends it: fixes beside what stands around them, joined, with what they gain.

Each step needs what the one before it has said of all findings: a wait that another fix clears has none of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from syncscope.linter.config import Config
from syncscope.linter.identity import identified
from syncscope.linter.joined import joined
from syncscope.linter.joined_in_pass import joined_in_pass
from syncscope.linter.offered import freed, mended_or_idle
from syncscope.linter.overlaps import Overlaps
from syncscope.linter.source import SourceFile
from syncscope.linter.worth.beside import beside_others
from syncscope.linter.worth.by_comment import sparing
from syncscope.linter.worth.by_hand import by_hand
from syncscope.linter.worth.edits import goes_along, replaced
from syncscope.linter.worth.gains import with_gains
from syncscope.linter.worth.in_a_line import in_a_line
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.rules import View


def with_fixes(
    source: SourceFile,
    shown: Sequence[Finding],
    said: Sequence[Finding],
    silent: Collection[Finding],
    site_of: Mapping[int, Site],
    view: View,
    config: Config,
    apart: bool,
) -> list[Finding]:
    """Those that are `shown`, of all that is `said` of a file, of which comments make some `silent`; lines `apart` for whoever
    tries each fix by itself. `site_of` has the site of a finding by the finding's `id`.
    """
    sites = [site_of.get(id(f)) for f in shown]
    let_stand = [site_of[id(f)] for f in silent if id(f) in site_of]

    found = [mended_or_idle(source, f, site, view, config) for f, site in zip(shown, sites, strict=True)]
    allowed = Overlaps((site.span, site) for site in let_stand)
    spared = [sparing(f, site, allowed, view) for f, site in zip(found, sites, strict=True)]
    # What would take an allowed wait with it is no reason to tell a wait whole.
    found = [f if f.fix == was.fix else replace(f, fix=None) for f, was in zip(spared, found, strict=True)]

    states = {id(site_of[id(f)]): f for f in said if id(f) in site_of}
    states |= {id(site): f for site, f in zip(sites, found, strict=True) if site is not None}
    found = beside_others(found, sites, states, view)
    found = [f if f.short else replace(f, fix=was.fix) for f, was in zip(found, spared, strict=True)]

    unheard = {id(site) for site in let_stand}  # a wait that somebody lets stand holds up no fix
    heard = {at: f for at, f in states.items() if at not in unheard}
    found = [freed(source, f, site, heard, view, config) for f, site in zip(found, sites, strict=True)]

    if not (apart or config.measured):
        found = [in_a_line(f, site, view) for f, site in zip(found, sites, strict=True)]
    found = with_gains(joined(found, sites, view, apart), sites, view)
    if not (apart or config.measured):
        told = states | {id(site): f for site, f in zip(sites, found, strict=True) if site is not None}
        found = by_hand(found, sites, told, view, config.all)
    if not apart:
        found = joined_in_pass(found, sites, view)
    found = [f if site is None else identified(f, site, view) for f, site in zip(found, sites, strict=True)]
    gone = replaced(states)
    return [f for f, s in zip(found, sites, strict=True) if s is None or not goes_along(s, states, gone)]
