"""What a function does, as its tree tells: whether it holds the training loop, makes weights, keeps what it makes."""

from __future__ import annotations

import ast
import re

from syncscope.heat.backward import speaks_of_backward
from syncscope.heat.by_name import by_name
from syncscope.heat.loops import LOOPS, of_loop, over_loader, runs_backward, trains
from syncscope.model.heat import Reason
from syncscope.model.source import line_starts
from syncscope.project import conventions, environments
from syncscope.project.beside_training import PREDICTIONS, TARGETS
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import ancestry, bases
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import dotted, name_of, statements, walk

_READS_WEIGHTS = tuple(  # apart, for each is then looked for as a word
    re.compile(rb"%b(?<!\w%b)\(" % (word, word)) for word in (rb"torch\.load", b"load_file", b"safe_open")
)


_ASE = re.compile(rb"^[ \t]*(?:from|import) ase\b", re.MULTILINE)


@kept(8)
def _text_of(function: ProjectFunction) -> bytes:
    node, source = function.node, function.module.source
    starts = line_starts(source)
    return source[starts[node.lineno - 1] : starts[min(node.end_lineno or node.lineno, len(starts) - 1)]]


@kept(MANY)
def holds_its_loop(function: ProjectFunction) -> bool:
    """Whether one of its loops is known to train; else all of it may be what does, and so is what runs a backward pass
    beside its loops: the update of an agent whose critic takes several steps of its own.
    """
    return not _runs_backward_pass(function) and any(
        isinstance(each, LOOPS) and trains(each, function.name, function.module.source)
        for each in statements(function.node)
    )


@kept(MANY)
def goes_through_loader(function: ProjectFunction) -> bool:
    """Whether one of its loops trains on each batch of a loader: an epoch, whatever it is called."""
    source = function.module.source
    if not speaks_of_backward(function.node, source) or _runs_backward_pass(function):
        return False
    loops = [each for each in statements(function.node) if isinstance(each, ast.For)]
    return any(over_loader(each.iter) and runs_backward(each, source) for each in loops)


_EVALUATES = re.compile(r"_*(eval|valid|test)")


@kept(MANY)
def only_measures_batches(function: ProjectFunction) -> bool:
    """Whether one of its loops goes over a loader, and it trains on none of the batches: it is called once an epoch, if it is
    called like an evaluation; what predicts or generates may be asked for in a step, and make a loader of its batch.
    """
    if not _EVALUATES.match(function.name):
        return False
    loops = (each for each in statements(function.node) if isinstance(each, ast.For))
    return any(over_loader(each.iter) for each in loops) and not speaks_of_backward(
        function.node, function.module.source
    )


@kept(MANY)
def shows_its_passes(function: ProjectFunction) -> bool:
    """Whether somebody watches it: it trains nothing, and shows a bar that grows with the passes of a loop over no batches."""
    node, source = function.node, function.module.source
    if speaks_of_backward(node, source):
        return False
    bars = [each for each in walk(node) if isinstance(each, ast.Call) and name_of(each.func) in ("tqdm", "trange")]
    return any(not over_loader(each) for each in bars) and not any(
        isinstance(each, LOOPS) and trains(each, function.name, source) for each in statements(node)
    )


def _runs_backward_pass(function: ProjectFunction) -> bool:
    """Whether it holds a backward pass in no loop of its own."""
    todo: list[ast.AST] = [*function.node.body] if speaks_of_backward(function.node, function.module.source) else []
    for node in todo:
        if isinstance(node, ast.Call) and name_of(node.func) == "backward":
            return True
        if not isinstance(node, (*LOOPS, ast.FunctionDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False


@kept(MANY)
def holds_all_steps(function: ProjectFunction) -> bool:
    """Whether one of its loops goes over many steps, each with a backward pass and an optimizer's step: an update of a whole
    rollout, not a step that adds up gradients or goes over its networks.
    """
    source = function.module.source
    node = function.node
    if not speaks_of_backward(node, source) or _runs_backward_pass(function):
        return False
    return any(
        isinstance(each, (ast.For, ast.AsyncFor))
        and any(_are_many(name_of(part)) for part in walk(ast.Tuple([each.target, each.iter])))
        and trains(each, function.name, source)
        and any(isinstance(part, ast.Call) and "step" in name_of(part.func).split("_") for part in walk(each))
        for each in statements(node)
    )


def is_an_update(function: ProjectFunction) -> bool:
    """Whether a function is called so, and goes over the epochs of one update: a training loop calls it in each pass."""
    source, learns = function.module.source, _learns_from_rollout(function)
    return (learns or _UPDATE.match(function.name) is not None) and any(
        isinstance(each, (ast.For, ast.AsyncFor))
        and (
            of_loop(each, function.name, source) == Reason.AROUND() or (learns and trains(each, function.name, source))
        )
        for each in function.node.body
    )


_UPDATE = re.compile(r"^_?(\w+_)?(update|optimi[sz]e)(_|$)")


def _learns_from_rollout(function: ProjectFunction) -> bool:
    """Whether an agent learns in it from what it has done: others drive the environment, and call it behind each rollout."""
    cls = function.cls
    if cls is None or _LEARNS.match(function.name) is None or not environments.chooses(cls.methods):
        return False
    return not any(environments.drives(_text_of(each)) for each in cls.methods.values())


_LEARNS = re.compile(r"^_?(learn|train|update|optimi[sz]e)(_(model|policy|agent|networks?))?$")


def _are_many(name: str) -> bool:
    """Whether a loop goes over many steps by what is called so in its head."""
    return conventions.MANY.search(name) is not None or conventions.is_loader(name)


def makes_weights(function: ProjectFunction) -> bool:
    """Whether it makes parameters of a module: `self.weight = nn.Parameter(...)`."""
    node = function.node
    return b"Parameter(" in _text_of(function) and any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and name_of(each.value.func) == "Parameter"
        and any(isinstance(target, ast.Attribute) for target in each.targets)
        for each in statements(node)
    )


def kept_by_hand(function: ProjectFunction) -> tuple[ast.expr, str] | None:
    """The key, and what keeps: where a function gives what it has kept under a key, before it makes anything,
    `if key in self.kept: return self.kept[key]`. What runs a backward pass for each key makes nothing that is the same again.
    """
    for each in function.node.body:
        match each:
            case ast.If(
                test=ast.Compare(left=key, ops=[ast.In()], comparators=[kept]),
                body=[*_, ast.Return(value=ast.Subscript(value=given))],
            ) if name_of(given) == name_of(kept):
                trains = speaks_of_backward(function.node, function.module.source)
                return None if trains else (key, dotted(kept))
    return None


def is_given(function: ProjectFunction, node: ast.expr) -> bool:
    """Whether something is made of what a function is given: of its parameters, or of names that it makes of them."""
    of = {*function.names} - {"self", "cls"}
    for each in statements(function.node):  # in the order in which they are written, nearly
        if isinstance(each, ast.Assign) and _names(each.value) & of:
            of |= {name for target in each.targets for name in _names(target)} - {"self", "cls"}
    return not of.isdisjoint(_names(node))


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in walk(node) if isinstance(each, ast.Name)}


def uses_pipeline(function: ProjectFunction) -> bool:
    """Whether the first that it is given is called a pipeline, or atoms of ASE, which use a model and do not train it."""
    first = [name for name in function.names if name != "self"][:1]
    return first in (["pipe"], ["pipeline"]) or (first == ["atoms"] and _ASE.search(function.module.source) is not None)


def evaluates(function: ProjectFunction) -> bool:
    """Whether it switches a model to evaluation, and not back: `self.model.eval()`, at its own level."""
    if function.name in conventions.LOOPS or b".eval()" not in function.module.source:
        return False
    switched = False
    for each in function.node.body:
        match each:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=model, attr="eval"), args=[], keywords=[])):
                switched = switched or name_of(model) in _EVALUATED
    text = _text_of(function) if switched else b""
    return switched and not any(word in text for word in (b".train(", b"backward(", b".step("))


_EVALUATED = conventions.MODELS | {"self"}


def sends_objects(function: ProjectFunction) -> bool:
    """Whether it sends objects of Python to other ranks, as bytes: of results, once for many steps."""
    return b"pickle.dumps(" in function.module.source and b"pickle.dumps(" in _text_of(function)


def reads_weights(function: ProjectFunction) -> bool:
    """Whether it reads weights from a file: `torch.load(path)`, `load_file(path)`."""
    text = _text_of(function)
    return any(each.search(text) for each in _READS_WEIGHTS)


def gives(function: ProjectFunction) -> bool:
    """Whether it gives anything back."""
    return any(isinstance(each, ast.Return) and each.value is not None for each in statements(function.node))


def changes_table(function: ProjectFunction) -> bool:
    """Whether it is given a table of pandas and gives one, as its annotations say: it prepares data."""
    node = function.node
    given = [each.annotation for each in node.args.args if each.annotation is not None]
    return node.returns is not None and name_of(node.returns) == "DataFrame" in map(name_of, given)


def is_made_by_set_up(function: ProjectFunction) -> bool:
    """Whether set-up gives it back, keeps it, or hands it to what it makes: it is called later, under another name."""
    around = getattr(function.closure, "function", None)
    if around is None or by_name(around.name, "", ()).reason is not Reason.SET_UP:
        return False
    every = walk(around.node)
    called = {id(each.func) for each in every if isinstance(each, ast.Call)}
    return any(
        isinstance(each, ast.Name)
        and each.id == function.name
        and isinstance(each.ctx, ast.Load)
        and id(each) not in called
        for each in every
    )


@kept(MANY)
def calls_steps(function: ProjectFunction) -> bool:
    """Whether it calls what may be a step, or may hold the loop over them; `model.train()` is neither."""
    called = (name_of(each.func) for each in walk(function.node) if isinstance(each, ast.Call))
    return any(conventions.STEP.search(name) and name != "train" for name in called)


_LEARNING = re.compile(
    "loss|backward|grad|optim|learn|update|step|criteri|fit|model|net|policy|actor|critic|agent|epoch|train"
)


def is_of_an_index(function: ProjectFunction) -> bool:
    """Whether this is a method of what holds vectors where neighbours are looked for, `add` beside `train`, and nothing in it
    speaks of what is trained by steps.
    """
    if function.cls is None or "add" not in function.cls.methods:
        return False
    words = (name_of(each) for each in walk(function.node) if isinstance(each, (ast.Name, ast.Attribute)))
    return not any(_LEARNING.search(word.lower()) for word in words)


_READS = frozenset("item tolist cpu numpy float int bool".split())


@kept(MANY)
def computes_as_a_loss(function: ProjectFunction) -> bool:
    """Whether it compares predictions with targets, and reads nothing of it: many measures are trained on, too."""
    given = {name.removesuffix("s") for name in function.names}.union(function.names)
    if TARGETS.isdisjoint(given) or PREDICTIONS.isdisjoint(given) or not gives(function):
        return False
    called = [each.func for each in walk(function.node) if isinstance(each, ast.Call)]
    return not any(_reads(each) for each in called)


def _reads(func: ast.expr) -> bool:
    """Whether a call of this reads values of the device: `x.item()`, `float(x)`, and not `x.float()`."""
    converts = name_of(func) in ("float", "int", "bool")
    return name_of(func) in _READS and converts is isinstance(func, ast.Name)


_A_DEVICE = rb"(?:\w+\.)*_?device\b"
_KEPT_THERE = re.compile(
    rb"self\.\w+ *= *(?:[^\n]*(?:\.to\((?:device *= *)?%b|\.cuda\()|torch\.[^\n]*\bdevice *= *%b)"
    % (_A_DEVICE, _A_DEVICE)
)


@kept(MANY)
def keeps_on_device(cls: Class) -> bool:
    """Whether what objects of a class keep is sent to a device, or made there: a data set that does lies on it as a whole."""
    return _KEPT_THERE.search(cls.text) is not None


def of_distributions(cls: Class) -> bool:
    """Whether a class is a distribution, or what distributions are transformed by, and no transform of data."""
    kin = ancestry(cls)
    named = (base.ref for each in kin for base in bases(each))
    return any("log_abs_det_jacobian" in each.methods for each in kin) or any(
        isinstance(ref, str) and ref.startswith("torch.distributions.") for ref in named
    )
