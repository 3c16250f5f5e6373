"""Which functions steps reach since a change that they did not reach before, whatever file those are in."""

from __future__ import annotations

import re

from syncscope.heat.reach import Reach

_DEFINED = re.compile(rb"^[ \t]*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_LAST = re.compile(r"\w+$")


def reached_anew(now: Reach | None, then: Reach | None) -> frozenset[bytes]:
    """The names of the functions and classes that may run in steps, and did not; the files of both are relative to the
    project. None where one of both knows no step: nothing is said of what runs in those, or all that may be hot was so."""
    if now is None or then is None or now.alone or then.alone:
        return frozenset()
    keys = {
        *(now.names - then.names),
        *(now.shared - then.shared),
        *(now.called - then.called),
        *(then.offered - now.offered),
        *(key for key, role in then.roles.items() if now.roles.get(key) is not role),
    }
    return frozenset(found[0].encode() for key in keys if (found := _LAST.search(key)))


def defines(source: bytes, names: frozenset[bytes]) -> bool:
    """Whether a file has a function or a class of one of these names."""
    return not names.isdisjoint(_DEFINED.findall(source))
