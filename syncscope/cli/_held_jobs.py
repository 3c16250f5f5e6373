"""Jobs below a folder that are held to limits while what is shown is of each of their ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncscope.cli._console import echo
from syncscope.errors import UserError
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.cli._job import KnownJob
    from syncscope.cli._parts import Steps


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job in a folder with what is `known` of it: its limits, or why none of its ranks can be read. `name` is what a file
    about it is called, in that folder."""

    where: str
    paths: tuple[str, ...]
    known: KnownJob | UserError

    @property
    def name(self) -> str:
        return os.path.join(self.where, f"job-{os.path.basename(os.path.abspath(self.where))}")


def held_jobs(
    jobs: Mapping[str, list[str]], most: int, steps: Steps, most_of: Mapping[str, float | None], several: bool
) -> list[HeldJob]:
    """These jobs, by their folders, each held to limits; `several` says that others stand beside it. Recordings that cannot be
    one job are left, which is said: they are held to limits each alone."""
    from syncscope.analysis.one_job import NotOneJobError
    from syncscope.cli._job import JobView, known_job

    view, found = JobView("", most_of=most_of), list[HeldJob]()
    for where, own in jobs.items():
        known: KnownJob | UserError
        try:
            known = known_job(own, where, most, view, steps)
        except NotOneJobError as error:
            echo(f"each alone, for {error.message}", err=True)
            continue
        except UserError as error:
            known = error
        else:
            if several:
                known = replace(known, limits=[replace(one, of=f"{visible(where)}: ") for one in known.limits])
        found.append(HeldJob(where, tuple(own), known))
    return found
