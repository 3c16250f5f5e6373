"""What `syncscope verify -o result.json` wrote, read back for a page: a file that somebody may have sent, or cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syncscope import files
from syncscope.errors import UserError
from syncscope.kineto.verified import verified


def measured(path: Path) -> dict[str, Any]:
    """The whole result, as JSON values.

    Raises:
        UserError: it is something else, or damaged.
    """
    try:
        text = files.regular(path)
        return verified(text)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "name a file that it wrote") from None
    except (ValueError, RecursionError) as error:  # of msgspec, too
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        hint = "write one with syncscope verify -o result.json"
        raise UserError(f"{path} is no result of syncscope verify: {why}", hint) from None
