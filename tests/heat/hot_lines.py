"""Which lines are hot, as marked code says it."""

from syncscope.tensors.interpret import sites


def heat(source: bytes, path: str) -> dict[int, str]:
    """By line, of those that read a number with `item`."""
    found = sites(source, path)
    return {site.place.line: "hot" if site.whole else "cold" for site in found if site.op == "item"}
