"""Which functions steps reach since a change that they did not reach before, whatever file those are in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from syncscope.heat.reach import Reach

_DEFINED = re.compile(rb"^[ \t]*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_LAST = re.compile(r"\w+$")


@dataclass(frozen=True)
class Anew:
    """What may run in steps, and did not: functions and classes by name, in any file or with the file that is meant."""

    names: frozenset[bytes]
    in_files: frozenset[tuple[str, bytes]]

    def is_in(self, path: str, source: bytes) -> bool:
        """Whether a file, by its path in the project, has one of them."""
        defined = _DEFINED.findall(source)
        return not self.names.isdisjoint(defined) or not self.in_files.isdisjoint((path, name) for name in defined)


def reached_anew(now: Reach, then: Reach) -> Anew | None:
    """What may run in steps, and did not; the files of both are relative to the project. None where nothing may, and where
    one of both knows no step: then all that may be hot is."""
    if now.alone or then.alone:
        return None
    keys = {
        *(now.names - then.names),
        *(now.shared - then.shared),
        *(now.called.keys() - then.called.keys()),
        *(then.offered - now.offered),
        *(key for key, role in then.roles.items() if now.roles.get(key) is not role),
    }
    names, in_files = set[bytes](), set[tuple[str, bytes]]()
    for path, colon, own in (key.rpartition(":") for key in keys):
        if word := _LAST.search(own):
            name = word[0].encode()
            in_files.add((path, name)) if colon else names.add(name)
    return Anew(frozenset(names), frozenset(in_files)) if keys else None
