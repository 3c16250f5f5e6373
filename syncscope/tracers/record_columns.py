"""Records by columns that have a type.

A field of a structured array is an array of anything to a type checker, which then tries each of numpy's overloads for each
operator: half of the time that it takes for all of the package went into two files.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Which = NDArray[np.bool_] | NDArray[np.integer[Any]]


class RecordRows:
    """Records of a file: `rows["t0"]` is a column, `rows[mask]` are some of them."""

    def __init__(self, records: NDArray[Any]) -> None:
        self.records = records  # as numpy has them

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, which: str) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, which: Which) -> RecordRows: ...

    def __getitem__(self, which: str | Which) -> NDArray[np.int64] | RecordRows:
        if isinstance(which, str):
            column: NDArray[np.int64] = self.records[which].astype(np.int64, copy=False)
            return column
        return RecordRows(self.records[which])

    def of(self, *kinds: int) -> RecordRows:
        """Those of these types."""
        return self[np.isin(self.records["type"], kinds)]
