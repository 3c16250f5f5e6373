"""What is best done about a line, beside its price."""

from dataclasses import fields, replace

from drawn import Device

from syncscope.analysis.summary import summarize
from syncscope.model.report import Advice
from syncscope.model.trace import Event, Kind, Trace

US = 1_000


def copied(step):
    """The one line of a loop of such steps, whose reads are copies to the host."""
    trace, _ = Device().run([step] * 8)
    events = (Event(**{f.name: getattr(e, f.name) for f in fields(Event)}) for e in trace)
    (line,) = summarize(Trace.of(replace(e, name="cpu") if e.kind is Kind.READ else e for e in events)).lines
    return line


def test_what_the_host_does_with_a_copy_may_be_worth_more_than_its_wait():
    """Hard examples are picked from lists, say: 2 ms of a step of 2.6, which the host needs without the wait, too."""
    mined = copied([("launch", 0, 300 * US), ("read", 5, 0), ("work", 2_000 * US), ("launch", 0, 300 * US)])
    assert mined.advice is Advice.REWRITE
    assert mined.why.startswith("the host then works for 1.4 ms while the device idles")


def test_a_copy_that_is_only_kept_has_no_such_word():
    kept = copied([("launch", 0, 1_000 * US), ("read", 5, 0), ("work", 20 * US), ("launch", 0, 1_000 * US)])
    assert "works for" not in kept.why
