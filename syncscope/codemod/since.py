"""What came to torch later than a project asks for: no fix writes it there."""

from __future__ import annotations

import re
from functools import cache

from syncscope.model.finding import Fix
from syncscope.model.source import Span

Version = tuple[int, ...]
SINCE: dict[str, Version] = {
    r"\bas_tuple=": (1, 2),
    r"\.square\(|torch\.logical_(?:and|or|not)\(": (1, 5),
    r"\bpersistent=": (1, 6),
    r"torch\.hstack\(|\bcount_nonzero\(|torch\.(?:maximum|minimum)\(|\.a(?:max|min)\(": (1, 7),
    r"\b_assert_async\(|\.nan_to_num\(|\.diff\(": (1, 8),
    r"\.(?:inv|cholesky)_ex\(|\.take_along_dim\(|\.clamp\((?:min=|max=)?torch\.": (1, 9),
    r"\boutput_size=|\.aminmax\(|\.isin\(": (1, 10),
    # a number of another dtype as a choice was an error
    r"torch\.where\((?:[^,]*,)?[^,]*,\s*-?\d[\w.]*\s*[,)]|\.scatter_reduce_?\(": (1, 12),
    r"\.(?:solve|lu_factor|ldl_factor)_ex\(": (1, 13),
    r"\bfused=True": (2, 0),
    r"\bnonzero_static\(": (2, 1),
}
"""Of what fixes write, as a pattern, the version that has it."""


def too_new(fix: Fix, code: bytes, oldest: Version) -> tuple[str, Version] | None:
    """What a fix writes that the oldest torch does not have, and that what it replaces did not say, and since when there is
    such; None where it has all."""
    for edit in fix.edits if oldest else ():
        for pattern, since in _patterns():
            written = pattern.search(edit.text)
            if oldest < since and written and not pattern.search(_before(edit.span, code)):
                return written[0].strip(".("), since
    return None


def _before(span: Span, code: bytes) -> str:
    return code[span.start : span.end].decode(errors="replace")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Version], ...]:
    return tuple((re.compile(pattern), since) for pattern, since in SINCE.items())
