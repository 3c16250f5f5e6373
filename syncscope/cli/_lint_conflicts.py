"""Options of `syncscope lint` that make no sense together."""

from __future__ import annotations

from typing import Any

from syncscope.errors import UserError

TEXT = (None, "text", "terminal")  # what `--format` calls it; `report` says terminal


def conflicts(said: dict[str, Any]) -> None:
    """Say which options make no sense together.

    Raises:
        UserError: these do not; the hint says what to do instead.
    """
    if said["form"] not in TEXT and (said["diff"] or said["statistics"]):
        first = "--diff" if said["diff"] else "--statistics"
        raise UserError(f"{first} and --format {said['form']} do not go together", "choose one")
    if said["watch"] and (said["interactive"] or "-" in said["paths"]):
        raise UserError("--watch lints files again and again", "it goes neither with - nor with --interactive")
    strangers = (("diff", "interactive"), ("fix", "interactive"), ("fix", "add_allow"), ("diff", "add_allow"))
    for one, other in (*strangers, ("fix", "trace")):
        if said[one] and said[other]:
            first, second = (f"--{name.replace('_', '-')}" for name in (one, other))
            raise UserError(f"{first} and {second} do not go together", "choose one")
    writes = [name for name in ("fix", "interactive", "add_allow", "watch", "diff", "trace") if said[name]]
    if said["from_trace"] and (said["paths"] or writes):
        raise UserError(
            "--from-trace reads programs from a recording, and nothing else", "lint files in a command of their own"
        )
    if said["unsafe_fixes"] and not (said["fix"] or said["diff"]):
        raise UserError("--unsafe-fixes says which fixes --fix may make", "pass --fix too, or --diff to look first")
    if said["reason"] and not said["add_allow"]:
        raise UserError(
            "--reason belongs to --add-allow", "syncscope lint --add-allow --reason 'logged once an epoch' src/"
        )
    if said["stdin_filename"] and "-" not in said["paths"]:
        raise UserError("--stdin-filename names the source on standard input", "pass - as the path")
    if said["add_allow"] and "-" in said["paths"]:
        raise UserError("--add-allow writes into files", "name the file itself")
    if said["interactive"] and "-" in said["paths"]:
        raise UserError("--interactive asks on standard input, which holds the source", "lint the file itself")
    if said["since"] is not None:
        both = next(
            (f"--{n.replace('_', '-')}" for n in ("write_baseline", "prune_baseline", "from_trace") if said[n]), None
        )
        if both or "-" in said["paths"]:
            raise UserError(
                f"--since and {both or 'standard input'} do not go together", "it compares files of a repository"
            )
    narrow = next((f"--{n.replace('_', '-')}" for n in ("select", "ignore", "min_confidence", "diff") if said[n]), None)
    if said["prune_baseline"] and (narrow or said["write_baseline"]):
        raise UserError(f"--prune-baseline and {narrow or '--write-baseline'} do not go together", "choose one")
