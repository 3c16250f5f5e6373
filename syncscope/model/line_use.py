"""What a line of the program takes of a step: of the host's time and of the device's."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.model.source import Place


@dataclass(frozen=True, slots=True)
class LineUse:
    """What one line takes of a step; times are ns, everything is per step. `place` None is all whose line is not known.

    `place` is the innermost line outside of torch, `caller` the user's line that led there where that is a `library`'s.
    The host's time is what it was in calls of the `driver`, `between` the call before and these (most of it after the line
    `since`, where that is another, and `runs` says in words what runs then), `waiting` for the device, and `loading` data.
    `device` is the time of the device in what the line launched, `backward` in what the backward pass launched for its
    operators; where queues overlap, each moment is that of the work that began first. `idle` is the device's idle time because
    the host had waited there, or was there. `kernels` are the names of what the device did for it, both ways, longest first.
    """

    place: Place | None
    function: str = ""
    library: bool = False
    caller: Place | None = None
    launches: float = 0.0
    driver: float = 0.0
    between: float = 0.0
    waiting: float = 0.0
    loading: float = 0.0
    device: float = 0.0
    backward: float = 0.0
    bytes: float = 0.0
    waits: float = 0.0
    idle: float = 0.0
    since: Place | None = None
    runs: str = ""
    kernels: tuple[tuple[str, float], ...] = ()

    @property
    def host(self) -> float:
        """The host's time up to these calls and in them, ns."""
        return self.driver + self.between + self.waiting + self.loading

    @property
    def of_step(self) -> float:
        """Its part of the step, ns: the device works for it, or stands still for it."""
        return self.device + self.backward + self.idle

    @property
    def users(self) -> Place | None:
        """The user's own line: of a library's, the one that led there."""
        return self.caller or self.place


@dataclass(frozen=True, slots=True)
class LineUses:
    """Every line of the counted steps, that with the largest part of the step first.

    `of_step` of all adds up to `step`, `host` of all to `host`, ns: the host's own step, which is shorter if it runs ahead.
    """

    step: float
    host: float
    lines: tuple[LineUse, ...]

    @property
    def host_known(self) -> float:
        """The share of the host's time whose line is known."""
        return _share(sum(one.host for one in self.lines if one.place), self.host)

    @property
    def device_known(self) -> float:
        """The share of the device's time whose line is known."""
        worked = sum(one.device + one.backward for one in self.lines)
        return _share(sum(one.device + one.backward for one in self.lines if one.place), worked)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
