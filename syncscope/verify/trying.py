"""From the moment at which the steps of a running program are rehearsed to the one at which they are its own again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from syncscope.verify.aside import Aside
from syncscope.verify.offers import Offers
from syncscope.verify.results import Verification
from syncscope.verify.trial import device_of
from syncscope.verify.tried import Tried

NAMED = 4  # places of fixes
COMPILED = "torch.compile has compiled some of the program; `syncscope verify` tries it"


class Trying:
    """What is said of it, and what is put aside meanwhile. `tried` is there while steps are rehearsed.

    `pause` is told whether steps are none of the program's own for the time being, `tell` prints a line.
    """

    def __init__(
        self, found: Verification, offers: Offers, pause: Callable[[bool], None], tell: Callable[[str], None]
    ) -> None:
        self.tried: Tried | None = None
        self._found, self._offers, self._pause, self._tell = found, offers, pause, tell
        self._aside: Aside | None = None

    def begin(self, tried: Tried, optimizers: Mapping[int, Any], what: str) -> None:
        """What the program prints and writes from now on goes aside; `what` is to be tried."""
        count = len(self._offers.tried)
        places = dict.fromkeys(f"{os.path.basename(one.fix.path)}:{one.fix.line}" for one in self._offers.tried)
        named = ", ".join([*places][:NAMED]) + (f" and {len(places) - NAMED} more" if len(places) > NAMED else "")
        self._pause(True)
        self._tell(f"trying {count} fix{'es' * (count > 1)} ({named}) {what}; then the run goes on as written")
        self._found.device = device_of(optimizers)
        self._aside, self.tried = Aside(), tried
        tried.begin(self._aside.folder)
        self._aside.begin()

    def end(self) -> Tried | None:
        """All is the program's own again; what was tried."""
        tried, self.tried = self.tried, None
        if self._aside is not None:
            self._aside.end()
            self._found.remains |= self._aside.remains
            self._aside = None
            self._pause(False)
        return tried

    def conclude(self, tried: Tried | None, why: str) -> None:
        """Nothing more is tried; `why` not, if it is not because all is known."""
        if tried is not None:
            tried.end()
            self._tell(f"{tried.said()}; the run goes on as written")
        if why:
            self._found.notes.append(f"{'not all' if self._found.ratio else 'nothing'} was tried: {why}")
            self._tell(self._found.notes[-1])
        for offer in self._offers.tried:
            offer.fix.why = offer.fix.why or "it was not tried"

    def leave(self, why: str) -> None:
        """Nothing will be tried, which is known before the program runs."""
        self._found.notes.append(f"nothing was tried: {why}")
        self._tell(f"nothing will be tried: {why}; the program runs as it is")

    def finish(self) -> None:
        """All fixes are listed."""
        self._found.fixes = [offer.fix for offer in self._offers.found]
        self._found.notes += [note for note in self._offers.notes if note not in self._found.notes]


def is_compiled() -> bool:
    """Whether torch's compiler has made code of its own of the program's: it would make it anew for each version."""
    utils = sys.modules.get("torch._dynamo.utils")
    return bool(utils and utils.counters["frames"].get("ok"))
