"""Files that say that they are generated: a change of one is lost when it is made anew, it belongs into its source."""

import re

from syncscope.linter.source import SourceFile

WHY_BY_HAND = "this file is generated, as it says: what it is made from is to be changed"
_HEAD = 2000  # bytes: it is said first, below the licence
_SAYS = re.compile(rb"\bauto(?:matically)?[- ]?generated\b|@generated\b|\bdo not (?:manually )?edit\b", re.IGNORECASE)
_NOTEBOOK = b".ipynb"  # what is exported from one is written back to it: `nbdev_update`


def is_generated(source: SourceFile) -> bool:
    """Whether a file says so at its head, and names no notebook that takes changes of it."""
    head = source.code[:_HEAD]
    return _SAYS.search(head) is not None and _NOTEBOOK not in head
