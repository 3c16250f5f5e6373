"""What a recording has of a program, what it lacks, and whether anything can be judged by it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was recorded (`has`, in words) and what was not (`lacks`: what, and how to record it).

    `refusal` says why neither the number of syncs nor any time can be judged; "" where they can. `hint` is what to do about
    it. `whole` is False where work of the device is known to be missing, so that not even how busy it was is known; `empty`
    says that there is no event of a program. `fits` is False where no replay comes near the recording, or
    explains it, so that nobody can say what a line saves.
    """

    has: tuple[str, ...] = ()
    lacks: tuple[tuple[str, str], ...] = ()
    refusal: str = ""
    hint: str = ""
    whole: bool = True
    empty: bool = False
    fits: bool = True

    @property
    def words(self) -> str:
        """In a sentence: whether it is enough, what there is, what is missing and how to record that."""
        return self._told(f": {self.refusal}; {self.hint}")

    @property
    def briefly(self) -> str:
        """The same where it is said already why it is not enough."""
        return self._told("")

    def _told(self, why: str) -> str:
        there = ", ".join(self.has) or "nothing"
        missing = ", ".join(f"{what} ({how})" for what, how in self.lacks)
        rest = f". Not in it: {missing}" if missing else ""
        if self.refusal:
            return f"not enough to judge syncs or savings by{why}. In it: {there}{rest}"
        enough = (
            "enough for syncs and savings"
            if self.fits
            else "enough for syncs, not for what lines save, as no replay fits"
        )
        return f"{enough}: {there}{rest}"
