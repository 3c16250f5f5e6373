"""What no fix of waits can pass: the part of a step that is left whatever the waits did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# by this part the device's or the host's own work may be shorter than the chain, and still be what is named
NEARLY = 0.01

SPOKEN = 0.1  # the part of a device's time that others had, from which it is spoken of


class Left(StrEnum):
    """What is left of a step without any wait, and takes longest."""

    DEVICE = "device"  # a queue's own work
    HOST = "host"  # what the host does without waiting
    CHAIN = "chain"  # the one now waits for the other, and neither for a read


@dataclass(frozen=True, slots=True)
class SavingBound:
    """The least that a step of `step` ns can be without its waits, ns.

    `device` is the work of its busiest queue without what the reads themselves enqueued, `host` what the host does without
    waiting, `chain` the longest way through both, 0 where the recording does not tell who waited for whom. A host that shares
    its processor with the device may be `quicker` by this part of what it does, once it does not wait. `others` is the part of
    the device's time that other programs had, and that `device` is without: what it takes where they leave its processors. A
    step is `longest` where few were timed without the recorder; 0 where it is as long as it is.
    """

    step: float
    device: float
    host: float
    chain: float = 0.0
    quicker: float = 0.0
    others: float = 0.0
    longest: float = 0.0

    @property
    def left(self) -> Left:
        """Which of them it is."""
        if self.device >= (1 - NEARLY) * self.least:
            return Left.DEVICE
        return Left.HOST if self.host >= (1 - NEARLY) * max(self.host, self.chain) else Left.CHAIN

    @property
    def least(self) -> float:
        """ns that a step takes at least."""
        return min(self.step, max(self.device, (1 - self.quicker) * max(self.host, self.chain)))

    @property
    def usual(self) -> float:
        """The part of a step that can be saved, at most, if the host is as quick as it was: 0 to 1."""
        return 1 - min(1.0, max(self.device, self.host, self.chain) / self.step) if self.step > 0 else 0.0

    @property
    def saving(self) -> float:
        """ns by which a step can be shorter, at most."""
        return self.share * self.step

    @property
    def share(self) -> float:
        """The part of a step that can be saved, at most: 0 to 1."""
        return 1 - self.least / max(self.step, self.longest) if self.step > 0 else 0.0

    @property
    def _pace(self) -> str:
        if not self.quicker:
            return ""
        return f", {self.quicker:.0%} quicker, as a host was seen to become that does not wait for its own processors"

    def beyond(self, busy: float | None) -> str:
        """What else would go where more is saved than a device that is `busy` for this part of a step leaves; "" if not."""
        if busy is None or self.share <= 1 - busy + NEARLY / 10:
            return ""
        if self.others > SPOKEN:
            return f"if other programs, which had the processors for {self.others:.0%} of the device's time, leave them"
        return "if what the device does for the waits goes, too"

    @property
    def crowd(self) -> str:
        """That other programs had the processors that are the device, for how much of its time; "" where they hardly had."""
        return (
            f"other programs had the processors for {self.others:.0%} of the device's time"
            if self.others > SPOKEN
            else ""
        )

    def words(self, per: str = "step", busy: float | None = None) -> str:
        """The sentence that a report begins with; `per` is what figures are of: a step, or a recording without any. The device
        was `busy` for this part of it."""
        beyond = self.beyond(busy)
        if busy and beyond and self.others > SPOKEN:
            return (
                f"Fixing all waits saves at most {self.share:.1%} of a {per}, and more than the {1 - busy:.1%} in which the "
                f"device is idle only {beyond}."
            )
        why = {
            Left.DEVICE: f"the device works for {1 - self.share:.1%} of it",
            Left.HOST: (
                f"at least {1 - self.share:.1%} of it is the host's own work, once no wait, recorder or other program is in "
                f"its way{self._pace}; the lines have it as it was"
            ),
            Left.CHAIN: f"the longest chain of the host's and the device's work is {1 - self.share:.1%} of it{self._pace}",
        }[self.left]
        idle = f" The device is idle for {1 - busy:.1%}: more" if busy else ""
        more = f"{idle} only {beyond}." if idle and beyond else ""
        return f"Fixing all waits saves at most {self.share:.1%} of a {per}: {why}.{more}"
