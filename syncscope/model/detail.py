"""What is known of an event beside its columns, as a value; in a trace and in its file it is a JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

KEYS = {  # Kineto's words, where they are no Python names
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "concrete_inputs": "Concrete Inputs",
    "output_dims": "Output Dims",
    "output_types": "Output type",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "occupancy": "est. achieved occupancy %",
}


@dataclass(frozen=True, slots=True)
class Detail:
    """Further facts of an event; empty where they are not known.

    Of a wait: the `nn.Module` in whose forward it happened, the library's line that reads beside the user's, the operator
    that fell back to the CPU, what it is `about` in words; where rows were selected, how many were `kept` of how many `rows`,
    and 1 as `gradient` if one comes back to them. Of an operator: shapes and types as Kineto writes them (a tensor's
    is a list of numbers, that of a list of tensors a list of lists), what was made of them, or the operations and bytes
    themselves. Of a collective: which, in which group, of how many elements; `group_ranks` as Kineto writes
    them, a list of which there are 30 at most. Of a driver's record of a wait
    (`Kind.SYNC`): which queue it waited for (a number or a name) and the correlation of the call that recorded the event.
    Of a launch: its grid and block.
    """

    module: str = ""
    library: str = ""
    operator: str = ""
    about: str = ""
    kept: int | None = None
    rows: int | None = None
    gradient: int | None = None
    input_dims: tuple[Any, ...] = ()
    input_types: tuple[Any, ...] = ()
    concrete_inputs: tuple[Any, ...] = ()
    output_dims: tuple[Any, ...] | None = None
    output_types: tuple[Any, ...] = ()
    flops: float | None = None
    bytes: float | None = None
    collective: str = ""
    process_group: str = ""
    group_size: int | None = None
    group_ranks: str = ""
    elements: int | None = None
    sync_kind: str = ""
    stream: int | str | None = None
    wait_on_stream: int | str | None = None
    wait_on_record: int | None = None
    grid: tuple[Any, ...] = ()
    block: tuple[Any, ...] = ()
    registers: float = 0
    shared_memory: float = 0
    occupancy: float = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    """Facts for which there is no field, or whose value is not of its type."""

    @staticmethod
    @lru_cache(1 << 14)  # thousands of events share a text
    def of(text: str) -> Detail:
        """What a text says; nothing where it is no JSON object, for files of others hold anything."""
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            found = {}
        known: dict[str, Any] = {}
        more = dict(found) if isinstance(found, dict) else {}
        for name, (key, types) in _FIELDS.items():
            value = more.get(key)
            if isinstance(value, types):
                del more[key]
                known[name] = tuple(value) if isinstance(value, list) else value
        return Detail(**known, more=more)

    def text(self) -> str:
        """The JSON object; "" where nothing is known."""
        said = ((key, getattr(self, name), getattr(_EMPTY, name)) for name, (key, _) in _FIELDS.items())
        known = {key: value for key, value, empty in said if value != empty}
        known |= self.more
        return json.dumps(known, separators=(",", ":")) if known else ""


_TEXTS = ["module", "library", "operator", "about", "collective", "process_group", "group_ranks", "sync_kind"]
_LISTS = ["input_dims", "input_types", "concrete_inputs", "output_dims", "output_types", "grid", "block"]
_NUMBERS = tuple(f.name for f in fields(Detail) if f.name not in {*_TEXTS, *_LISTS, "more"})
_FIELDS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    **{name: (KEYS.get(name, name), str) for name in _TEXTS},
    **{name: (KEYS.get(name, name), list) for name in _LISTS},
    **{name: (KEYS.get(name, name), (int, float)) for name in _NUMBERS},
    "stream": ("stream", (int, str)),
    "wait_on_stream": ("wait_on_stream", (int, str)),
}
_EMPTY = Detail()
