"""Hot or cold by the loop, or the `with`, that a place stands in."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from syncscope.heat.backward import calls_one, speaks_of_backward
from syncscope.model.heat import IN_TRAINING, Heat, Reason
from syncscope.model.source import line_starts
from syncscope.project import conventions, environments
from syncscope.project.of_file import kept
from syncscope.project.syntax import name_of, statements, walk, without_gradients

LOOPS = (ast.For, ast.AsyncFor, ast.While)
TRAINING, AROUND, EPOCHS = Reason.TRAINING(), Reason.AROUND(), Reason.EPOCHS()
PACED = Reason.PACED()


@kept(64)  # asked for each call in a loop, and for each pass through it
def trains(node: ast.For | ast.AsyncFor | ast.While, name: str, source: bytes) -> bool:
    """Whether a loop is a training loop: it holds a backward pass, or stands in a function called so and calls its steps, or
    hands each batch to what trains on it, or asks an environment and updates an agent, or keeps what it is to learn from.
    A loop over the parts of one step is none by itself.
    """
    if _over_parts(node):
        return False
    if runs_backward(node, source) or _hands_batches_on(node):
        return True
    if name in conventions.LOOPS and any(
        isinstance(each, ast.Call) and conventions.STEP.search(name_of(each.func)) for each in walk(node)
    ):
        return True
    return _drives_environment(node, source) and any(
        isinstance(each, ast.Call) and _learns(each.func) for each in walk(node)
    )


def runs_backward(node: ast.For | ast.AsyncFor | ast.While, source: bytes) -> bool:
    """Whether a loop holds a backward pass, or calls what does."""
    return speaks_of_backward(node, source) and any(calls_one(each, source) for each in walk(node))


def _over_parts(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop goes over the parts of a batch, or of an update: `range(accumulation_steps)`, `range(n_critic)`."""
    match node:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[*counts])):
            return any(_PARTS.search(ast.unparse(each)) for each in counts)
    return False


_PARTS = re.compile(
    r"accum|micro_?batch|(^|\W|_)n?_?critics?($|\W|_(iters|steps|updates))|(^|\W|_)[dDgG]_(steps|iters|updates)"
)


def _hands_batches_on(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop over batches gives each to a function called so: `for x, y in loader: losses = train(x, y)`."""
    if not isinstance(node, ast.For) or not (
        over_loader(node.iter) or conventions.OVER_BATCHES.search(_over(node.iter))
    ):
        return False
    parts = {each.id for each in walk(node.target) if isinstance(each, ast.Name)}
    if conventions.of_evaluation(_over(node.iter)):
        return False
    return any(
        isinstance(each, ast.Call)
        and _TRAINS.match(name_of(each.func))
        and any(isinstance(given, ast.Name) and given.id in parts for given in each.args)
        for each in walk(node)
    )


_TRAINS = re.compile(r"^_?(train|learn)(_on)?(_(one_)?(step|batch|iter|iteration|minibatch))?$")


def _over(node: ast.expr) -> str:
    """The name of what a loop goes over: `loader` of `enumerate(tqdm(loader))`."""
    while isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return name_of(node)


def _learns(called: ast.expr) -> bool:
    """Whether this updates an agent, or keeps what it is to learn from."""
    owner = name_of(called.value) if isinstance(called, ast.Attribute) else ""
    return environments.learns(owner, name_of(called)) or environments.keeps(owner, name_of(called))


def _drives_environment(node: ast.stmt, source: bytes) -> bool:
    if not _speaks_of_environment(source):
        return False
    starts = line_starts(source)
    first, last = node.lineno - 1, min(node.end_lineno or 0, len(starts) - 1)
    return environments.drives(source[starts[first] : starts[last]])


@lru_cache(maxsize=8)  # each holds a text
def _speaks_of_environment(source: bytes) -> bool:
    """Whether any line of a file asks an environment: most files do not, and their loops need no look."""
    return environments.drives(source)


def at_top(tree: ast.Module) -> ast.FunctionDef | None:
    """What stands at the top level of a file, as a function, where it trains there; else None."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    body = [each for each in tree.body if not isinstance(each, kinds)]
    backward = (
        isinstance(each, ast.Call)
        and (
            getattr(each.func, "attr", "") == "backward" or conventions.STEP_CALL.match(name_of(each.func)) is not None
        )
        for part in body
        for each in walk(part)
    )
    if not any(backward):
        return None
    (made,) = ast.parse("def nameless(): pass").body  # which fields it has is Python's to say
    assert isinstance(made, ast.FunctionDef)
    made.name, made.body, made.end_lineno, made.end_col_offset = "", body, body[-1].end_lineno, 0
    return made


def of_loop(node: ast.For | ast.AsyncFor | ast.While, name: str, source: bytes) -> Heat | None:
    """Hot in a loop that trains; cold in one over epochs that only holds the loop that does, and in one that somebody watches.

    Hot in a line, where the epochs are those of one update, as in PPO, and where such an update is made in each pass.
    """
    if not trains(node, name, source):
        if _holds_whole_parts(node):
            return EPOCHS
        paced = _speaks_of_pace(source) and any(map(_is_paced, node.body))
        return PACED if paced or (isinstance(node, ast.While) and _while_connected(node.test)) else None
    head = node.test if isinstance(node, ast.While) else ast.Tuple([node.target, node.iter])
    if not any(conventions.is_epoch(name_of(each)) for each in walk(head)):
        return AROUND if _holds_update(node, name, source) else TRAINING
    inner = [each for each in statements(node) if isinstance(each, LOOPS) and each is not node]
    direct = {id(each) for each in walk(node)}.difference(id(each) for loop in inner for each in walk(loop))
    calls = [each for each in walk(node) if isinstance(each, ast.Call) and id(each) in direct]
    if any(name_of(each.func).endswith("backward") or calls_one(each, source) for each in calls):
        return TRAINING
    epochs = any(conventions.is_epoch(name_of(each.func)) for each in calls)
    around = epochs or any(trains(each, name, source) for each in inner)
    return TRAINING if not around else AROUND if _of_an_update(node) else EPOCHS


@lru_cache(maxsize=8)  # each holds a text
def _speaks_of_pace(source: bytes) -> bool:
    """Whether a file has a word of those that `_is_paced` looks for: most have none, and their loops need no look."""
    return any(word in source for word in _PACE_WORDS)


_PACE_WORDS = (b"input(", b"sleep", b"waitKey", b"imshow", b"pause", b"render")


def _is_paced(statement: ast.stmt) -> bool:
    """Whether a statement of a loop waits in each pass for somebody or something else: `input()`, `time.sleep(0.1)`, a picture
    of an environment.
    """
    if isinstance(statement, (ast.If, ast.Try, *LOOPS)):  # perhaps, and perhaps seldom
        return False
    for each in walk(statement):
        match each:
            case ast.Call(func=ast.Name(id="input" | "sleep")):
                return True
            case ast.Call(func=ast.Attribute(value=of, attr="sleep" | "waitKey" | "imshow" | "pause" | "render")) if (
                conventions.PACES.search(name_of(of))
            ):
                return True
    return False


def _while_connected(test: ast.expr) -> bool:
    """Whether a loop goes on as long as somebody is connected, who mostly is not: `while viewer.conn is not None`."""
    match test:
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]):
            return conventions.CONNECTED.search(name_of(left)) is not None
    return False


def _holds_update(node: ast.For | ast.AsyncFor | ast.While, name: str, source: bytes) -> bool:
    """Whether a loop makes a whole update in each pass, epochs and their steps."""
    loops = (each for each in statements(node) if isinstance(each, (ast.For, ast.AsyncFor)) and each is not node)
    return any(_of_an_update(each) and of_loop(each, name, source) is AROUND for each in loops)


def _of_an_update(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop goes over the epochs of one update, on the same data: `range(args.update_epochs)`."""
    over = [] if isinstance(node, ast.While) else walk(node.iter)
    return any(conventions.INNER_EPOCHS.search(name_of(each)) for each in over)


def _holds_whole_parts(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop over epochs, with none in it, calls what runs for many steps: `self.update()`, `rollout(env)`."""
    if isinstance(node, ast.While) or not conventions.is_epoch(name_of(node.target)):
        return False
    if _of_an_update(node):
        return False
    parts = walk(node)
    calls = (name_of(each.func) for each in parts if isinstance(each, ast.Call))
    return any(map(conventions.WHOLE_PART.match, calls)) and sum(isinstance(each, LOOPS) for each in parts) == 1


def of_with(node: ast.With | ast.AsyncWith, name: str, around: Heat | None = None) -> Heat | None:
    """Cold in `with torch.no_grad()` where it holds a loop of its own that validates: over a loader, or in a training loop, one
    over epochs, or a function called so, any but a rollout and one over the parts of a model or an optimizer.

    By itself it says nothing: a teacher, a matcher and a moving average run in every step without gradients.
    """
    if not without_gradients(node):
        return None
    trains_around = name in conventions.LOOPS or (
        around is not None and (around.reason in IN_TRAINING or around.reason is Reason.EPOCHS)
    )
    of_weights: set[ast.AST] = set()  # what a loop over weights holds goes over parts of them
    for each in statements(node):
        if not isinstance(each, LOOPS) or each in of_weights:
            continue
        over = None if isinstance(each, ast.While) else each.iter
        if over is not None and over_loader(over):
            return Reason.NO_GRAD()
        if over is not None and _over_weights(over):
            of_weights.update(statements(each))
        elif trains_around and not _steps_environment(each):
            return Reason.NO_GRAD()
    return None


def _over_weights(node: ast.expr) -> bool:
    """Whether a loop goes over the parts of a model or an optimizer: `optimizer.param_groups`, `zip(a.parameters(), ...)`."""
    return any(conventions.WEIGHTS.search(name_of(each)) for each in walk(node))


def _steps_environment(node: ast.AST) -> bool:
    calls = (ast.unparse(each.func) for each in walk(node) if isinstance(each, ast.Call))
    return any(environments.asks_environment(f"{each}(".encode()) for each in calls)


def over_loader(node: ast.expr) -> bool:
    """Whether a loop goes over what people call a loader: `enumerate(val_loader)`, `tqdm(loader)`."""
    return conventions.is_loader(_over(node))


def inside(around: Heat | None) -> Heat | None:
    """What is said in a loop that says nothing itself: a rollout beside an update has as many passes as that has steps."""
    return TRAINING if around == AROUND else around


def within(around: Heat | None, said: Heat, node: ast.For | ast.AsyncFor | ast.While) -> Heat:
    """What a loop says, but where what it stands in says more: a validation every n steps trains nothing."""
    if around is not None and around.reason is Reason.MAIN and _on_random(node):
        return around
    if around is None or around.hot or around.reason is Reason.EPOCHS or _runs_backward(node):
        return said
    return around


def _on_random(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop over numbers makes what it trains on: `for step in range(10): x = torch.randn(...)`, a trial."""
    counts = isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and name_of(node.iter.func) == "range"
    drawn = (each for each in node.body if isinstance(each, ast.Assign))
    return counts and any(
        isinstance(part, ast.Call) and name_of(part.func) in ("rand", "randn") for each in drawn for part in walk(each)
    )


def _runs_backward(node: ast.AST) -> bool:
    called = (name_of(each.func) for each in walk(node) if isinstance(each, ast.Call))
    return any(name.endswith("backward") or conventions.STEP_CALL.match(name) for name in called)
