"""Finds the dispatch tables of the OpenCL vendors in this process, and puts our functions into them and takes them out.

Every object of a vendor begins with the address of the vendor's table, and every loader calls through it: one store into
the table is seen by all users of the process, whichever loader they came with. With `cl_khr_icd` 2.0 the loader keeps a
table of its own, which the object's second word points to.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes as c
import re
import threading
from collections.abc import Iterator, Mapping

from syncscope.tracers.opencl import compiled
from syncscope.tracers.opencl.abi import SLOTS, table_of

PAGE = 4096

_libc = c.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [c.c_void_p, c.c_size_t, c.c_int]


def maps() -> Iterator[tuple[int, int, str, str]]:
    """The mappings of this process: first address, end, permissions, file."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            part = line.split(None, 5)
            low, high = (int(x, 16) for x in part[0].split("-"))
            yield low, high, part[1], part[5].strip() if len(part) > 5 else ""


def loaders() -> list[str]:
    """Every ICD loader mapped into this process (wheels bring their own), in order."""
    return sorted({path for *_, path in maps() if re.search(r"/libOpenCL[^/]*\.so[^/]*$", path)})


def platforms(loader: str) -> list[int]:
    """The platform handles that a loader offers."""
    library = c.CDLL(loader)
    count = c.c_uint32()
    library.clGetPlatformIDs(0, None, c.byref(count))
    found = (c.c_void_p * max(1, count.value))()
    library.clGetPlatformIDs(count.value, found, None)
    return [handle for handle in found[: count.value] if handle]


def poke(values: Mapping[int, int]) -> None:
    """Stores eight aligned bytes at once at each address, so that a concurrent caller sees the old function or the new; opens
    the pages for it where the vendor protects its table.

    All in one go: each kernel that PoCL has built adds mappings to those that are gone through.
    """
    pages = {address & -PAGE for address in values}
    closed = [page for low, high, perm, _ in maps() for page in pages if low <= page < high and "w" not in perm]
    for page in closed:
        if _libc.mprotect(page, PAGE, 3):
            raise OSError(c.get_errno(), "the driver's dispatch table cannot be written")
    for address, value in values.items():
        c.c_uint64.from_address(address).value = value
    for page in closed:
        _libc.mprotect(page, PAGE, 1)


class Tables:
    """The hooks in the tables of this process: one object for all traces, counted, out again with the last of them."""

    def __init__(self) -> None:
        self.users = 0
        self.tables: dict[int, str] = {}  # address -> the loader that led to it
        self._before: dict[int, tuple[int, int]] = {}  # slot's address -> vendor's function, ours
        self._buried: dict[int, int] = {}  # slots where somebody has hooked over us -> vendor's function
        self._lock = threading.RLock()
        self._loads = -1

    def install(self) -> None:
        """Hooks every vendor that is there; `rescan` takes in those that come later."""
        with self._lock:
            self.users += 1
            if self.users == 1:
                atexit.register(self.restore)  # a hook that outlives the interpreter is a crash
                self._loads = -1
            self.rescan()

    def uninstall(self) -> None:
        """Gives the tables back when the last user has gone."""
        with self._lock:
            self.users -= 1
            if self.users == 0:
                self.restore()

    def rescan(self) -> bool:
        """Hooks vendors that were loaded since; True if there were any. Costs a microsecond where nothing was loaded."""
        library = compiled.library()
        if not self.users or library is None or library.loads() == self._loads:
            return False
        with self._lock:
            new = False
            for loader in loaders():
                for handle in platforms(loader):
                    table = table_of(handle)
                    new |= self.hook(table, loader)
            self._loads = library.loads()
            return new

    def hook(self, table: int, origin: str) -> bool:
        """Puts our functions into a table; whether it was a new one."""
        library = compiled.library()
        if library is None or table in self.tables:
            return False
        self.tables[table] = origin
        vendor = (c.c_void_p * SLOTS).from_address(table)
        # some are empty
        hooks = [hook for hook in library.hook_list()[: library.number_of_hooks()] if vendor[hook.slot]]
        originals = (c.c_void_p * SLOTS)(*vendor)
        for hook in hooks:  # what is there leads to us, perhaps, and we must not lead to it
            originals[hook.slot] = self._buried.get(table + 8 * hook.slot, vendor[hook.slot])
        if not library.add_table(table, originals):
            return False
        ours = {}
        for hook in hooks:
            address, original = table + 8 * hook.slot, originals[hook.slot]
            if vendor[hook.slot] not in (original, hook.address):
                continue  # still hooked over
            self._buried.pop(address, None)
            self._before[address] = (original or 0, hook.address)
            ours[address] = hook.address
        poke(ours)
        return True

    def restore(self) -> None:
        """Puts the vendors' own functions back, except where somebody hooked over us: there ours stay and pass on."""
        with self._lock:
            theirs = {}
            for address, (vendor, ours) in self._before.items():
                if c.c_uint64.from_address(address).value == ours:
                    theirs[address] = vendor
                else:
                    self._buried[address] = vendor
            poke(theirs)
            self._before.clear()
            self.tables.clear()
            self._loads = -1
            atexit.unregister(self.restore)


tables = Tables()


@contextlib.contextmanager
def armed() -> Iterator[None]:
    """Inside, the drivers are hooked and their new queues get profiling, although nothing may be recorded yet."""
    library = compiled.library()
    if library is None:
        yield
        return
    library.arm(1)
    tables.install()
    try:
        yield
    finally:
        tables.uninstall()
        library.arm(int(tables.users > 0))
