"""Methods of something unknown: what their names alone say of it, and of what they give."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions, devices, environments
from syncscope.project.syntax import dotted, last_word, name_of
from syncscope.tensors import handed_in
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    BATCH,
    FLOAT,
    HOST,
    NO_TENSOR,
    NOTHING_KNOWN,
    OF_ENVIRONMENT,
    PICKED,
    SOMEWHERE,
    TENSOR,
    items,
    sequence,
    tensor,
)
from syncscope.tensors.joins import element
from syncscope.tensors.libraries import accelerate, logging
from syncscope.tensors.loaders import loader_of
from syncscope.tensors.parameters import given_as_loaded
from syncscope.tensors.rows_sent import sends_rows
from syncscope.tensors.sent_parts import entry_named, handed_over, replaces_itself, sends_a_part
from syncscope.tensors.torch.distributions import checks_are_off
from syncscope.tensors.torch.host_indices import picked_from_host
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.moves import asked_for
from syncscope.tensors.torch.objects import SCALE_READ_BY
from syncscope.tensors.torch.signatures import SHARED, TORCH_ONLY


def tells_by_name(call: Call) -> None:
    """A method of something unknown that tells by its name alone what it does."""
    logging.method(call)
    if call.word in ("backward", "step"):
        call.frame.work = True
    if call.word not in ("step", *SCALE_READ_BY) or dotted(call.at).rpartition(".")[2] not in conventions.GRAD_SCALERS:
        return
    if call.word != "step":
        call.emit(Op.LOSS_SCALE, call.at, tensor(confidence=2, why=call.node))
    elif len(call.args) == 1:
        call.emit(Op.GRAD_SCALER, call.at, tensor(confidence=2, why=call.node))


_ARITHMETIC = frozenset("mul div sub pow matmul true_divide eq ne lt le gt ge maximum minimum fmod".split())
# Modules, optimizers and containers have these, too.
_OF_OTHERS = frozenset("cuda half bfloat16 requires_grad_ backward register_hook exp log add_ copy_".split())


# Of what is no name, whose uses would say it: `norm(x / scale).abs()`. Containers of the project have none of these.
_OF_ARRAYS = frozenset("abs argmax argmin cumsum squeeze flatten mean std var lt le gt ge eq ne".split())
_OF_DISTRIBUTIONS = frozenset("log_prob rsample".split())
OF_ARRAYS_ALONE = frozenset("item nonzero any all".split())  # methods that nothing but an array has


def _has_entropy(call: Call) -> bool:
    """Whether its file asks the same for an entropy, `pout.entropy()`: a flow has none."""
    path = dotted(call.at)
    return bool(path) and f"{path}.entropy(".encode() in call.frame.module.source


def _of_some_distribution(call: Call) -> Fact:
    """`dist.log_prob(x)` of a distribution that is not in sight: torch's check a value, where people call it so."""
    if (
        call.word == "log_prob"
        and (conventions.is_distribution(last_word(call.at)) or _has_entropy(call))
        and call.args
        and not checks_are_off(call)
    ):
        held = call.first_tensor() or tensor(confidence=2, why=call.node)
        call.emit(Op.DISTRIBUTION_VALIDATE, call.first_node, held, 2)
    return tensor(FLOAT, confidence=2, why=call.node)


# What a method of something unknown is called that says anything by its name alone.
TELLING = frozenset().union(
    TORCH_ONLY, SHARED, logging.TELLING, accelerate.GATHERING, accelerate.PREPARING, _ARITHMETIC, _OF_ARRAYS, _OF_DISTRIBUTIONS,
    ("backward", "step", "reset", "next", "__next__",
    "to", "cuda", "type_as", "clone", "copy", "clip_gradients"),
)  # fmt: skip


def _detached(node: ast.expr | None) -> ast.expr | None:
    """`loss` of `loss.detach()` and `loss.data`."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="detach")) | ast.Attribute(value=value, attr="data"):
            return value
    return node


def _is_step(node: ast.expr | None) -> bool:
    """Whether it is what a step of the training gives: its loss."""
    return isinstance(node, ast.Call) and conventions.STEP_CALL.match(name_of(node.func)) is not None


def _sent(call: Call) -> Fact:
    """`x.to(device)` of something unknown: in a trainer's step an argument is what its loader made, on the host.

    So is what a helper is handed, and what it takes apart to send each of its parts.
    """
    if replaces_itself(call):
        call.receiver = element(_OF_A_STATE)
        return tensor_method(call)
    if sends_a_part(call) or sends_rows(call):
        call.receiver = tensor(confidence=2, why=call.node)
        return tensor_method(call)
    if handed_in.is_sent(call):
        call.receiver = element(handed_in.HANDED)
        return tensor_method(call)
    batch, at = given_as_loaded(call.frame.function), call.at
    if batch is None or not isinstance(at, ast.Name) or at.id not in call.frame.function.names:  # type: ignore[union-attr]
        return UNKNOWN
    if devices.is_model(at.id):
        return UNKNOWN
    call.receiver = element(batch)
    return tensor_method(call)


_OF_A_STATE = Fact(BATCH, confidence=1, why="what it replaces is most often a loader's")


def one_of_losses(node: ast.expr) -> Fact:
    """One of what people call losses, of which nothing else is known."""
    if node.__class__ is not ast.Name or not conventions.are_losses(node.id):
        return UNKNOWN
    return tensor(confidence=2, why=f"`{ast.unparse(node)}` is what people call losses", ndim=0)


def given_by_network(node: ast.Call) -> Fact:
    """What a network gives of which only its name is known: most often a tensor, and surely what is used as an array."""
    return tensor(confidence=1, why=node)


OF_DICTS = frozenset(("items", "values", "get", "pop"))


def in_its_place(word: str, args: list[Fact]) -> Fact:
    """What a dict gives where a tensor is to stand in its place, `info.get("reward", reward)`: most likely one, too."""
    if word not in ("get", "pop") or len(args) != 2 or args[1].kind is not TENSOR or args[1].device is HOST:
        return UNKNOWN
    return args[1].but(confidence=min(2, args[1].confidence))


def by_its_owner(word: str, node: ast.expr) -> Fact:
    """What a method gives by what its object is called: `losses.items()`, `self.replay_buffer.sample(n)`."""
    if word in OF_DICTS:
        each = one_of_losses(node)
        if each is UNKNOWN or word in ("get", "pop"):
            return each
        return items(sequence(UNKNOWN, each) if word == "items" else each)
    if word in conventions.GIVES_BATCHES and conventions.holds_batches(name := name_of(node)):
        return Fact(BATCH, device=SOMEWHERE, confidence=1, why=f"a batch of `{name}`")
    return UNKNOWN


def asked_as_a_dict(word: str, node: ast.expr, taken_for: Fact) -> Fact | None:
    """What a dict gives that was taken for a tensor, which has no such method: of one in a batch its parts."""
    batch = taken_for.source
    while batch is not None and batch.kind is TENSOR and batch.provenance == ():
        batch = batch.source  # one of a list of dicts: `[{k: v.to(device) for k, v in t.items()} for t in targets]`
    if batch is not None and batch.kind is BATCH:
        part = element(batch)
        return part if word in ("get", "pop") else items(sequence(UNKNOWN, part) if word == "items" else part)
    return by_its_owner(word, node) if taken_for.confidence == 1 else None


def assumed_method(call: Call) -> Fact:
    """A method of something unknown: one that only a tensor has says what it is."""
    gathered = accelerate.method(call)
    if gathered is not None:
        return gathered
    if call.receiver.kind is not NOTHING_KNOWN:
        return UNKNOWN
    found = (judge(call) for judge in _JUDGES)
    known = next((fact for fact in found if fact is not None), None)
    if known is not None:
        return known
    return tensor(confidence=1, why=call.node) if call.word in ("type_as", "clone") else UNKNOWN


def _of_tensors_alone(call: Call) -> Fact | None:
    """What only tensors have."""
    if call.word not in TORCH_ONLY or call.word in _OF_OTHERS or (call.word == "t" and call.args):
        return None  # `t` of a text translates it
    if call.receiver.ref is PICKED:
        picked_from_host(call.frame, call.receiver.provenance, True)
    return _of_tensor(call, 2, call.node)


def _shared(call: Call) -> Fact | None:
    """What tensors share with arrays, or with modules and containers: `x.item()`, `x.cpu()`."""
    word, at = call.word, call.at
    if word == "item" and (call.args or call.keywords):
        return UNKNOWN  # a tensor's takes nothing: an entry of a list view, of a dict
    if word not in SHARED or (word != "cpu" and isinstance(at, ast.Name) and at.id in ("self", "cls", "np")):
        return None
    confidence = 2 if word == "item" or (word in OF_ARRAYS_ALONE and call.frame.alone) else 1
    if word == "cpu":
        # no module or container can be calculated with
        computed = isinstance(at, (ast.BinOp, ast.UnaryOp, ast.Compare))
        of_loss = conventions.is_loss(last_word(_detached(at))) or _is_step(at)
        confidence = 2 if computed or of_loss or _is_no_model(call) else confidence
    return _of_tensor(call, confidence, f"`.{word}()` of something unknown")


def _is_no_model(call: Call) -> bool:
    """Whether what is copied to the host is a value, and no network: an entry of a dict, or what is handed on as an argument.

    Of others networks are copied so as well, `self.actor.cpu()`.
    """
    at, function = _detached(call.at), call.frame.function
    if isinstance(at, ast.Subscript):
        named = entry_named(at.slice).lower()
        other = not (devices.is_model(named) or devices.is_network(named))
        return bool(named) and (other or conventions.is_loss(named))
    if not isinstance(at, ast.Name) or function is None or devices.is_model(at.id) or devices.is_network(at.id):
        return False
    return id(call.node) in handed_over(function.node)


def _moved(call: Call) -> Fact | None:
    """`x.cuda()`, `x.to(device)`."""
    if call.word == "cuda" and call.receiver is UNKNOWN:
        return _sent(call)
    if call.word != "to" or not (call.args or call.keywords):
        return None
    if asked_for(call)[0] is not HOST:
        return _sent(call)
    return _of_tensor(call, 1, f"`.{call.word}()` of something unknown")


def _copied(call: Call) -> Fact | None:
    """`x.copy()` of an array, a list or a dict, which have this method, and tensors have not."""
    return NO_TENSOR if call.word == "copy" and not call.args and not call.keywords else None


def _drawn(call: Call) -> Fact | None:
    return _of_some_distribution(call) if call.word in _OF_DISTRIBUTIONS else None


def _given_next(call: Call) -> Fact | None:
    """`batches.next()` of an iterator over a loader, as older programs ask for it."""
    if call.word not in ("next", "__next__") or call.args or call.at is None:
        return None
    name = loader_of(call.frame, call.at)
    return Fact(BATCH, confidence=1, why=f"a batch of `{name}`") if conventions.is_loader(name) else None


def _of_environment(call: Call) -> Fact | None:
    """`env.step(action)`: what an environment gives is there as arrays, where it is made tensors of."""
    return OF_ENVIRONMENT if call.word in ("step", "reset") and environments.is_called(name_of(call.at)) else None


def _of_arrays(call: Call) -> Fact | None:
    """What arrays have, of what is no name, where there are no arrays but tensors."""
    if call.word not in _OF_ARRAYS or isinstance(call.at, (ast.Name, ast.Attribute)) or not call.frame.alone:
        return None
    return _of_tensor(call, 2, f"`.{call.word}()` of something unknown, where no other arrays are")


def _with_tensor(call: Call) -> Fact | None:
    """`x.mul(y)` with a tensor: the other is one, too."""
    first = call.first
    if call.word not in _ARITHMETIC or first.kind is not TENSOR or first.confidence < 2:
        return None
    call.receiver = tensor(device=first.device, confidence=2, why=f"`.{call.word}()` of a tensor")
    return tensor_method(call)


_JUDGES = (_of_tensors_alone, _shared, _moved, _copied, _given_next, _of_environment, _drawn, _of_arrays, _with_tensor)


def _of_tensor(call: Call, confidence: int, why: ast.AST | str) -> Fact:
    """What the method gives of a tensor."""
    call.receiver = tensor(confidence=confidence, why=why)
    return tensor_method(call)
