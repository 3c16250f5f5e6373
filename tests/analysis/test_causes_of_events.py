"""What held each event up, on drawn recordings."""

from drawn import timeline

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.held_up import held_up
from syncscope.model.held_up import Why


def reasons(picture: str) -> dict[str, tuple[str, str]]:
    """By the name of an event (a launch by its small letter, a wait as `item`) why and by which it was held up."""
    trace = timeline(picture)
    event_graph = event_graph_of(trace)
    found = held_up(trace, event_graph)
    assert len(found.why) == len(found.by) == len(trace) + len(event_graph.reads)

    def name(row: int) -> str:
        if row < 0:
            return "-"
        if row >= len(trace):
            return event_graph.reads[row - len(trace)].op
        event = trace[row]
        return chr(event.correlation) if event.correlation >= 0 and not event.name.isupper() else event.name

    said = {}
    for row, (why, by) in enumerate(zip(found.why.tolist(), found.by.tolist(), strict=True)):
        if why:
            said[name(row)] = list(Why)[why], name(by)
    return said


def test_work_is_held_up_by_its_launch_its_queue_or_another_queue():
    found = reasons("""
        host   abc.d...........
        gpu    .AAABBBB...DDDD
        gpu2   ........CCC
    """)
    assert found["A"] == (Why.LAUNCH, "a")
    assert found["B"] == (Why.QUEUE, "A")
    assert found["C"] == (Why.INFERRED, "B")
    assert found["D"] == (Why.INFERRED, "C")


def test_a_wait_is_held_up_by_its_work_and_the_next_launch_by_the_wait():
    found = reasons("""
        host   a.<item  >...b......
        gpu    .AAAAAAA......BB....
    """)
    assert found["item"] == (Why.RETURN, "A")
    assert found["b"] == (Why.HOST, "item")
    assert found["B"] == (Why.LAUNCH, "b")
    assert "a" not in found


def test_what_nothing_explains_is_said_to_be_so():
    found = reasons("""
        host   ab..<item       >...c
        gpu    .AAA.......BBB.......C
    """)
    assert found["B"] == (Why.NOTHING, "-")
