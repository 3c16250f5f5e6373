"""Many ranks: the part of each rank is a map over any executor, tables lie between, SQL and the joint replay come after.

A rank's trace of tens of megabytes becomes three small Parquet tables (its collectives, its reads, its folded graph), so
that thousands of ranks can be mapped where their traces lie, and one machine does the rest.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscope import files
from syncscope.analysis.collectives import Collective
from syncscope.analysis.coverage import refuse
from syncscope.analysis.entries import Hold, HostOrder, Launch, Run
from syncscope.analysis.graph import Graph
from syncscope.analysis.groups import with_groups
from syncscope.analysis.host_operators import OwnTime
from syncscope.analysis.lines_between import AtLine, SpentAt
from syncscope.analysis.matched import NEAR
from syncscope.analysis.meeting_key import MeetingKey
from syncscope.analysis.rank import Rank, rank_of
from syncscope.analysis.rank_times import RankTimes
from syncscope.errors import UserError
from syncscope.interpreters import safe_path
from syncscope.model.report import Read, Step
from syncscope.model.source import Place

if TYPE_CHECKING:
    from syncscope.model.trace import Trace

INLINE = 4  # so few ranks are not worth a pool of processes
SPENT = ("work", "lines", "device")  # of collectives, kept as JSON
TABLES = ("collectives", "reads", "graph")
ENTRIES = {Run: 0, Launch: 1, Hold: 2}
OF_GRAPH = ("queues", "holds", "end", "ends", "depth", "free", "together", "ops", "origin", "begin")
TIMES = """
create temp table c as  -- a double holds no nanoseconds since 1970, so times are since the first rank
    select rank, key, origin - min(origin) over () + start as began, origin - min(origin) over () + "end" as ended
    from collectives;
create temp table clock as select min(rank) as rank, 0::double as shift from c
"""
CLOCKS = """
insert into clock  -- of the ranks that meet one whose clock is known, for a collective ends at one moment everywhere
    select c.rank, median(known.ended - c.ended) from c join (
        select key, arg_min(c.ended + clock.shift, c.rank) as ended from c join clock using (rank) group by key
    ) as known using (key) where c.rank not in (select rank from clock) group by c.rank
"""
STRAGGLERS = """
with arrival as (
    select c.rank, c.key, c.began + clock.shift as moment, c.ended + clock.shift as over_, c.ended - c.began as lasted
    from c join clock using (rank)
), meet as (  -- what does not end together is not one collective: an event was lost
    select key, max(moment) - min(moment) as skew, arg_max(rank, moment) as late, sum(least(latest - moment, lasted)) as imposed
    from (select *, max(moment) over (partition by key) as latest from arrival)
    group by key having count(*) > 1 and max(over_) - min(over_) <= $near
)
select late as rank, count(*) as times, sum(imposed) as imposed, max(skew) as skew
from meet group by late order by imposed desc
"""
UNTOLD = "select count(*) as untold from collectives where not told"
LINES = """
select op, path, line, "function", count(*) as reads, count(distinct rank) as ranks, sum(blocked) as blocked
from reads group by all order by blocked desc
"""


def one(read: Callable[[str], Trace], path: str, folder: str | Path | None = None) -> Rank | str:
    """The part of one rank: read its trace and cut it down; with `folder`, store it there and return only its name."""
    trace = read(path)
    refuse(trace, path)
    rank = rank_of(trace, name=os.path.basename(path))
    if folder is None:
        return rank
    store(rank, folder)
    return rank.name


def mapped(
    read: Callable[[str], Trace],
    paths: Iterable[str],
    executor: Executor | None = None,
    folder: str | Path | None = None,
) -> Iterator[Rank | str | UserError]:
    """What `one` gives for each path, in their order, by an executor (a pool of processes, unless there are few).

    A rank that cannot be read comes back as its error, so that it does not cost the others.
    """
    paths = list(paths)
    with contextlib.ExitStack() as stack:
        if executor is None and len(paths) > INLINE:
            stack.enter_context(safe_path())
            executor = stack.enter_context(ProcessPoolExecutor(os.cpu_count()))
        if executor is None:
            for path in paths:
                try:
                    yield one(read, path, folder)
                except UserError as error:
                    yield error
            return
        futures = [executor.submit(one, read, path, folder) for path in paths]
        for future in futures:
            try:
                yield future.result()
            except UserError as error:
                yield error


def store(rank: Rank, folder: str | Path) -> None:
    """Write a rank's tables: one Parquet file in each of `collectives/`, `reads/` and `graph/`."""
    folder = Path(folder)
    arrow, parquet = _arrow()
    collectives = [{"rank": rank.number, "origin": rank.origin} | asdict(c) for c in rank.collectives]
    for row in collectives:
        row |= {"key": str(row["key"]), "start": round(row["start"]), "end": round(row["end"])}
        row |= {name: json.dumps(row[name]) for name in SPENT}
    reads = [{"rank": rank.number, **_read_row(read)} for read in rank.graph.reads]
    kept = {"collectives": collectives, "reads": reads, "graph": _entry_rows(rank.graph)}
    graph = rank.graph
    rest = {
        "number": rank.number,
        "origin": rank.origin,
        "error": rank.error,
        "name": rank.name,
        "world": rank.world,
        "graph": {name: getattr(graph, name) for name in OF_GRAPH},
        "unforeseen": sorted(rank.unforeseen),
        "devices": rank.devices,
        "times": [asdict(each) for each in rank.times],
        "host": rank.host,
        "machine": rank.machine,
        "files": sorted(rank.files),
        "steps": [asdict(step) for step in graph.steps],
    }
    for table, rows in kept.items():
        schema = _schemas(arrow)[table].with_metadata({"syncscope": json.dumps(rest)})
        path = folder / table / f"rank-{rank.number:06}.parquet"
        with files.whole(path) as file:
            parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), file, compression="zstd")


def load(folder: str | Path) -> list[Rank]:
    """The ranks stored below a folder.

    Raises:
        UserError: there are none.
    """
    (_, parquet), folder = _arrow(), Path(folder)
    files = sorted((folder / "graph").glob("rank-*.parquet"))
    if not files:
        raise UserError(f"{folder} holds no tables of ranks", "make them with `syncscope ranks TRACES --tables FOLDER`")
    return [_loaded(parquet, folder, file.name) for file in files]


def _loaded(parquet: Any, folder: Path, name: str) -> Rank:
    tables = {table: parquet.read_table(folder / table / name) for table in TABLES}
    rest = json.loads(tables["graph"].schema.metadata[b"syncscope"])
    graph = rest["graph"]
    reads = tuple(_read(row) for row in tables["reads"].to_pylist())
    collectives = tuple(
        Collective(
            **{k: v for k, v in row.items() if k not in ("rank", "origin")}
            | {"key": MeetingKey.of(row["key"])}
            | {name: _spent(row.get(name)) for name in SPENT}
        )
        for row in tables["collectives"].to_pylist()
    )
    return Rank(
        number=rest["number"],
        origin=rest["origin"],
        error=rest["error"],
        name=rest["name"],
        world=rest["world"],
        unforeseen=frozenset(rest["unforeseen"]),
        devices=tuple(rest.get("devices", ())),
        times=tuple(map(_times, rest["times"])) if isinstance(rest.get("times"), list) else (),
        machine=rest.get("machine", ""),
        files=frozenset(rest.get("files", ())),
        host=tuple(OwnTime(*each) for each in rest.get("host", ())),
        collectives=collectives,
        graph=Graph(
            stream=_entries(tables["graph"].to_pylist()),
            queues=graph["queues"],
            reads=reads,
            holds=tuple(tuple(h) for h in graph["holds"]),
            steps=tuple(Step(**step) for step in rest["steps"]),
            end=graph["end"],
            ends=tuple(graph["ends"]),
            depth=graph["depth"],
            free=tuple(graph["free"]),
            together=tuple(tuple(reads) for reads in graph["together"]),
            ops=graph["ops"],
            origin=graph["origin"],
            begin=graph.get("begin", 0.0),  # of tables that were written before it was known
        ),
    )


def stragglers(folder: str | Path) -> list[dict[str, Any]]:
    """Which ranks came last how often, and what the others waited for them, ns: by DuckDB over the tables.

    The n-th collective of a step, group and kind is taken for the same on all ranks; where these do not end together it is left
    out. Of those that name no group it is found (`groups`), as the joint replay does, which also matches them (`matched`).

    What the others waited is more here than in `job`: there a delay that one rank passes on to others counts once and is the
    first one's, and a wait only as far as the device that waits computes nothing else.
    """
    pattern = str(Path(folder) / "collectives" / "*.parquet")
    with _connected(collectives=pattern) as connection:
        untold = connection.execute(UNTOLD).fetchone()
    with _connected(collectives=_with_groups(folder) if untold[0] else pattern) as connection:
        connection.execute(TIMES)
        while connection.execute(CLOCKS).fetchone()[0]:  # groups need not all meet one rank
            pass
        return _rows(connection.execute(STRAGGLERS, {"near": NEAR}))


def _with_groups(folder: str | Path) -> Any:
    """The collectives of all ranks as a table, with the groups that were found in their keys."""
    ranks, _ = with_groups(load(folder))
    kept = ("rank", "origin", "key", "start", "end")
    rows = [
        (rank.number, rank.origin, str(each.key), round(each.start), round(each.end))
        for rank in ranks
        for each in rank.collectives
    ]
    return _arrow()[0].table(dict(zip(kept, map(list, zip(*rows, strict=True)), strict=True)))


def lines(folder: str | Path) -> list[dict[str, Any]]:
    """The lines that read, over all ranks, by the time they blocked, ns: by DuckDB over the tables."""
    with _connected(reads=str(Path(folder) / "reads" / "*.parquet")) as connection:
        return _rows(connection.execute(LINES))


@contextlib.contextmanager
def _connected(**tables: Any) -> Iterator[Any]:
    """DuckDB over tables by their names: Arrow's, or the files of a pattern."""
    try:
        import duckdb
    except ImportError:
        raise UserError("queries over tables need DuckDB", "pip install 'syncscope[fleet]'") from None
    with duckdb.connect() as connection:
        for name, table in tables.items():
            if isinstance(table, str):
                if not glob.glob(table):
                    raise UserError(
                        f"no table matches {table}", "make them with `syncscope ranks TRACES --tables FOLDER`"
                    )
                table = connection.read_parquet(table)
            connection.register(name, table)
        yield connection


def _rows(found: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UserError("tables need pyarrow", "pip install 'syncscope[fleet]'") from None
    return pa, parquet


def _schemas(arrow: Any) -> dict[str, Any]:
    number, time, text, whole = arrow.int64(), arrow.float64(), arrow.string(), arrow.int32()
    spent = [(name, time) for name in ("blocked", "launching", "hosting", "queued")]
    places = [("op", text), ("path", text), ("line", whole), ("function", text), ("module", text)]
    times = [(name, number) for name in ("start", "end", "blocked", "bytes", "idle_after")]
    return {
        "collectives": arrow.schema(
            [
                ("rank", whole),
                ("origin", number),
                ("key", text),
                ("start", number),
                ("end", number),
                *spent,
                *[(name, text) for name in SPENT],
                ("elements", number),
                ("busy", time),
                ("idle", time),
                ("told", arrow.bool_()),
                ("queue", number),
                ("group_size", number),
            ]
        ),
        "reads": arrow.schema([("rank", whole), *places, *times, ("step", number), ("fallback", arrow.bool_())]),
        "graph": arrow.schema(
            [("kind", whole), ("numbers", arrow.list_(time)), ("moves", arrow.list_(arrow.list_(time)))]
        ),
    }


def _read_row(read: Read) -> dict[str, Any]:
    place = {"path": read.place.path if read.place else None, "line": read.place.line if read.place else None}
    kept = ("op", "function", "module", "start", "end", "blocked", "bytes", "idle_after", "step", "fallback")
    return place | {name: getattr(read, name) for name in kept}


def _read(row: dict[str, Any]) -> Read:
    place = Place(row.pop("path"), row.pop("line")) if row["path"] is not None else None
    return Read(thread=0, place=place, **{k: v for k, v in row.items() if k not in ("rank", "path", "line")})


def _spent(told: str | None) -> SpentAt:
    """What a rank did, as it was stored; nothing where the tables are older than that."""
    known = json.loads(told or "[]")
    return tuple((AtLine(*name) if isinstance(name, list) else str(name), float(time)) for name, time in known)


def _times(told: dict[str, Any]) -> RankTimes:
    """Where a step of a rank goes, as it was stored."""
    return RankTimes(**told | {"why": tuple((use, ns) for use, ns in told["why"])})


def _entry_rows(graph: Graph) -> list[dict[str, Any]]:
    rows = []
    for entry in graph.stream:
        moves: list[list[float]] = []
        if isinstance(entry, Run):
            numbers, moves = [entry.advance, entry.upto, entry.last, entry.lasting], [list(m) for m in entry.moves]
        elif isinstance(entry, Hold):
            numbers, moves = [v for k, v in entry._asdict().items() if k != "targets"], [list(entry.targets)]
        else:
            numbers = list(entry)
        rows.append({"kind": ENTRIES[type(entry)], "numbers": [float(n) for n in numbers], "moves": moves})
    return rows


def _entries(rows: list[dict[str, Any]]) -> HostOrder:
    found = list[Run | Hold | Launch]()
    for row in rows:
        n, moves = row["numbers"], row["moves"]
        if row["kind"] == ENTRIES[Run]:
            folded = tuple((int(q), alpha, beta, int(number)) for q, alpha, beta, number in moves)
            found.append(Run(n[0], folded, int(n[1]), int(n[2]), n[3]))
        elif row["kind"] == ENTRIES[Hold]:
            targets = tuple(int(t) for t in moves[0])
            found.append(Hold(n[0], targets, n[1], n[2], int(n[3]), int(n[4]), int(n[5])))
        else:
            numbers = [int(x) for x in n[7:]]
            found.append(Launch(n[0], n[1], int(n[2]), n[3], n[4], int(n[5]), n[6], *numbers))
    return HostOrder.of(found)
