"""syncscope diff: what became of a loop between two recordings."""

from __future__ import annotations

import json
import math
from functools import partial

import click

from syncscope.cli import _expected, _formats, _limits, _outputs
from syncscope.cli._traces import max_size, newest, refuse_unreadable_rank

FORMATS = ("terminal", "json", "html", "markdown", "github", "junit")


@click.command(short_help="What became of a loop between two recordings.")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@max_size
@_formats.options(
    FORMATS,
    "Write there: the page of AFTER with both, or of two jobs (.html), JSON (.json), Markdown (.md), or the limits as tests "
    "(.junit.xml).",
)
@_limits.share(
    "--max-slowdown",
    "most_slower",
    when="a step of AFTER is surely longer than one of BEFORE by more than that, in percent: 5%. Exit 2 when it "
    "may be 10 % of a step above that, for steps vary too much to judge, and not every step of AFTER is shorter, or only as a "
    "faster machine made them so",
    most=math.inf,
)
@_limits.number("--max-new-syncs", "most_new", when="a step of AFTER has more than N syncs that one of BEFORE has not")
@_expected.option(
    "Exit 2 when AFTER, a job, has fewer than N ranks. Default, with a limit: as many as the recordings of either say."
)
def command(
    before: str,
    after: str,
    most: int,
    format_: str | None,
    output: str | None,
    most_slower: float | None,
    most_new: float | None,
    expect: int | None,
) -> int:
    """What became of a loop between two recordings, line by line, and whether the prediction held.

    \b
    syncscope diff before.json.gz after.json.gz                  what became of each line
    syncscope diff before.json.gz after.json.gz -o both.html     the same as a page
    syncscope diff main/runs mine/runs                           the newest recording of each folder; of two jobs each rank
    syncscope diff main/runs mine/runs --max-slowdown 5% --max-new-syncs 0    a gate for CI: exits 1
    syncscope diff main/runs mine/runs --max-slowdown 5% --format markdown    a comment of the pull request

    The prediction is a replay of BEFORE without the syncs that AFTER no longer makes. Whatever else changed between the two
    recordings, as the batch size or the machine, shows as its error, and beside it in numbers. Steps that may differ by chance
    as much as they do are said to be within noise.

    Of two jobs there is a row for each rank; the median rank and the worst are shown in full. --max-slowdown is of the median
    rank, --max-new-syncs of the one that has most. Neither holds (2) where a rank is missing in one that the other
    has, or in AFTER that the recordings say there is; --expect says that so many are enough.

    Exit code: 0 all well, 1 a limit is broken, 2 a file could not be read, the two not be compared, or a limit not be judged.
    """
    from syncscope import kineto
    from syncscope.analysis.compare import compare
    from syncscope.cli import _diff_of_jobs, _gate_of_diff, _ranks_alone
    from syncscope.cli._console import complain
    from syncscope.cli._diff_words import unlike
    from syncscope.errors import UserError

    format_ = _formats.plain(format_, output, FORMATS)
    one, other = map(_diff_of_jobs.job_in, (before, after))
    if one is not None and other is not None:
        _outputs.spare([output], [*one.traces.values(), *other.traces.values()])
        return _diff_of_jobs.diff_jobs(one, other, most, format_, output, most_slower, most_new, expect)
    for name in (before, after):
        refuse_unreadable_rank(name, most)
    if expect is not None:
        raise UserError(
            f"{_expected.EXPECT} counts the ranks of a job, and these are not two jobs",
            "name the two folders that hold the ranks",
        )
    for job, name in ((one, after), (other, before)):
        if job is not None:
            _diff_of_jobs.refuse_one_rank(name, job)
    named = after
    before, after = newest(before), newest(after)
    _outputs.spare([output], [before, after])
    found = compare(kineto.read(before, most), kineto.read(after, most))
    gate = partial(_gate_of_diff.unjudged, why) if (why := unlike(found)) else partial(_gate_of_diff.limits, found)
    gone = _ranks_alone.not_all([after] if after != named else []).get(after)  # of a folder, which stands for its job
    limits = list(_expected.of_all_ranks(gate(most_slower, most_new), gone, None))
    if format_ == "html" and output is not None:
        from syncscope.cli._diff_files import keep

        keep(found, before, after, most, output)
    elif format_ == "json":
        from syncscope.cli._diff_files import as_object

        _formats.written(json.dumps(as_object(found), indent=2), output)
    elif format_ == "markdown":
        from syncscope.cli._diff_markdown import markdown

        _formats.written(markdown(found, before, after, limits), output)
    elif format_ == "github":
        from syncscope.cli import _diff_annotations

        _formats.written(_diff_annotations.commands(found, after, limits), output, commands=True)
    elif format_ == "junit":
        _formats.written(_gate_of_diff.as_junit(limits, after), output)
    else:
        from syncscope.cli._diff_shown import show

        show(found, before, after)
    if why:
        if limits:
            complain(UserError(f"no limit can be judged: {why}"))
        return 2
    return _limits.code(limits) or (2 if found.strangers else 0)
