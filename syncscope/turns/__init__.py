"""Versions of a program in turns inside of one process, and when enough is known of them.

```text
    weaving     versions of a file as one tree: where they differ, what stands there asks which one it is
    widening    functions that have more parameters in one version than in another
    statements  lists of statements side by side, as weaving compares them
    selector    which one it is, and whether what differs was reached at all
    loops       loops that may make the steps, woven so that they can be led: leading is what leads them
    turns       what steps took, turn by turn, and how far off is too far
    sequential  the interval of a ratio that may be looked at after every turn
```

Nothing here starts a process or knows of a fix: `verify` does.
"""
