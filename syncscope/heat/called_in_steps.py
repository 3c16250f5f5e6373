"""What a step calls though its name, its folder or `no_grad` says that it runs seldom: `build_targets`, a matcher, an average.

A name says what most functions that are called so are for. Where a function that runs in steps calls one, in no arm that is
seldom gone into, the call says more. Only functions that hold such a call are parsed.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import product
from typing import Any

from syncscope.heat import blocks
from syncscope.heat.by_text import is_for_the_log, is_frozen, said_by_name
from syncscope.heat.gone_through import GoneThrough
from syncscope.heat.imported import Imported
from syncscope.heat.made_at_once import made_at_once
from syncscope.heat.makers import Makers
from syncscope.heat.parsed_text import parsed
from syncscope.heat.places import places
from syncscope.heat.surely_in_steps import Certain
from syncscope.model.heat import Reason
from syncscope.project import cold_names, conventions, environments
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken
from syncscope.project.syntax import dotted, name_of, walk

_LONGEST = 80  # bytes of a name
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_LAST = re.compile(rb"(\w+)(?:\([^()\n]*\))?\Z")
_FEW = 3  # methods of one name, of modules none that overrides another: one that is called on anything is meant
_DEEPEST = 8  # classes derived from one another
_TELLING = 3  # letters of what is called like its class
_OF_TENSORS = frozenset(
    """split chunk unbind cat stack repeat repeat_interleave expand tile view reshape flatten squeeze unsqueeze transpose
    permute select index_select masked_select gather scatter take narrow clone detach to cpu cuda numpy tolist item
    float double half long int bool type sum mean std var min max argmin argmax norm dist dot sort argsort topk
    unique any all clamp flip roll nonzero size dim numel index_add index_fill masked_fill exp log sqrt abs round""".split()
)
"""Methods of tensors that people give their own containers, too: of something these are called on that is not called like the
class, `graph.split(sizes)` of a `PackedGraph`, it is a tensor's."""
_ASKED = re.compile(
    rb"getattr\(\s*(?:type\(\s*)?(?:\w+\.)*(\w+)\s*\)?\s*,\s*[\"'](\w+)[\"']"
)  # an object for a method, by its name
_CALLED_OF_SELF = re.compile(rb"self\.([\w\x80-\xff]+)\(")  # in small letters
_ANY = ("Module", "LightningModule")  # what says nothing of what an object is for
_ENTRANCES = frozenset(("forward", "__call__"))  # methods that run where an object is called
_DOER = re.compile(r"(?:ors?|ers?|(?<!s)s)$")
_LIBRARIES = frozenset("torch functional F nn linalg np numpy math random".split())  # whose functions are no methods


class Calls:
    """The functions of a project that are seldom run by what they are called, and which of them steps call all the same."""

    def __init__(
        self,
        seldom: Iterable[FunctionText],
        definitions: Definitions,
        spoken: Spoken,
        makers: Makers,
        steps: Iterable[FunctionText],
    ) -> None:
        self.makers = makers
        self.certain = Certain(steps, definitions, spoken)
        self.seldom: dict[str, list[FunctionText]] = defaultdict(list)  # by their names, those that are not yet found
        seldom = list(seldom)
        for each in seldom:
            self.seldom[each.name].append(each)
        self._entered: dict[bytes, list[FunctionText]] = defaultdict(list)
        """By names like their class's what is called under one: `self.postprocess(x)` runs `PostProcess.forward`."""
        for each in seldom:
            for word in _called_like(each.cls) if each.cls and each.name in _ENTRANCES else ():
                for doer, many in product(("", "or", "er"), ("", "s")):
                    self._entered[f"{word}{doer}{many}".encode().lower()].append(each)
        self.classes, self.defined = definitions.classes, definitions.defined
        self.spoken = spoken
        self.found: dict[str, FunctionText] = {}  # by their keys
        self.by: dict[str, str] = {}  # what calls each, as "Class.method"
        self.imported = Imported(definitions)
        self._gone_through = GoneThrough(definitions.sources, self.seldom, self.imported)
        self._above: dict[str, frozenset[str]] = {}
        self._few: dict[str, bool] = {}
        self._kinds_of: dict[str, frozenset[str]] = {}
        self._possible: dict[tuple[str, str, bool], bool] = {}
        self._names = {point + word.encode(): word for word in {*self.seldom, *makers.classes} for point in (b"", b".")}

    def of(self, callers: Iterable[FunctionText]) -> list[FunctionText]:
        """Those that these call, and that were not known to be called."""
        new: list[FunctionText] = []
        for caller in callers:
            text = caller.text()
            wanted = {name for name in self._seldom_in(caller) if self._may_call(name, text, caller)}
            wanted.update(self._asked_in(text, caller))
            wanted.update(name for _, name in self.spoken.asked(text) if name in self.seldom)
            wanted.update(self._entered_in(text))
            wanted.update(self._gone_through.of(text))
            tree, code = parsed(caller) if wanted else (None, b"")
            if tree is not None:
                new += self.within(tree, code, caller, wanted)
            for each in self._unknown(made_at_once(caller, self.makers, self.imported)):
                self._note(each, caller)
                new.append(each)
        return new

    def _note(self, called: FunctionText, caller: FunctionText) -> None:
        self.found[called.key] = called
        self.by[called.key] = f"{caller.cls}.{caller.name}".lstrip(".")

    def within(
        self, tree: blocks.Function, code: bytes, caller: FunctionText, wanted: Collection[str]
    ) -> list[FunctionText]:
        """Those of the `wanted` names that a function calls whose tree this is, in a text, and that were not known."""
        new: list[FunctionText] = []
        for node, meant in self._uses(tree, caller, wanted):
            if meant and blocks.of_call(tree, node, code) is None:
                if any(cold_names.beside(each.name, each.cls) for each in meant):
                    meant = meant if self._is_sure(tree, code, caller) else _without_beside(meant)
                for each in meant:
                    self._note(each, caller)
                    if cold_names.beside(each.name, each.cls):
                        self.certain.add(each)
                    if same := self.seldom.get(each.name):
                        self.seldom[each.name] = [other for other in same if other is not each]
                new += meant
        return new

    def _is_sure(self, tree: blocks.Function, code: bytes, caller: FunctionText) -> bool:
        """Whether a call that is in no cold block is surely part of a step: in a training loop, or in what runs in steps."""
        return blocks.trains(tree, code) or self.certain.has(caller, self._kin, self.imported.names)

    def _uses(
        self, tree: ast.AST, caller: FunctionText, wanted: Collection[str]
    ) -> Iterator[tuple[ast.expr, list[FunctionText]]]:
        """Where a function says one of the `wanted` names, and which it means that were not known to be called."""
        every = walk(tree)
        under = {word: name for name in wanted for word in self.imported.under(name, caller.path)}
        named: list[Any] = [each for each in every if name_of(each) in under]  # names and attributes alone have one
        called = {id(each.func) for each in every if isinstance(each, ast.Call)} if named else set()
        alone = {
            id(each.value.func) for each in every if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
        }
        wrapped = _wrapped(every) if caller.name == "__init__" and named else ()
        through = self._gone_through.of(caller.text()) if named else {}
        for node in named:
            name, is_called = under[name_of(node)], id(node) in called
            if dotted(node) in wrapped:
                continue
            if not is_called:
                yield node, self._meant(name, _owner(node), caller, False)
            elif caller.name != "__init__":  # once; what it keeps may be called in every step
                meant = self._meant(name, _owner(node), caller, True, id(node) not in alone) + self._made(
                    name, _owner(node), caller
                )
                yield node, meant or self._entered_by(node) or self._unknown(through.get(dotted(node), ()))
        for each in every:
            match each:
                case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(name)), *_]) if (
                    name in wanted
                ):
                    of = of.args[0] if isinstance(of, ast.Call) and of.args else of
                    yield each, self._meant(name, name_of(of), caller, True)
                case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if name in wanted:
                    asked = self.spoken.asked(f'{name_of(func)}("{name}"'.encode())
                    yield each, [one for one in self.seldom[name] if one.cls] if asked else []

    def _asked_in(self, text: bytes, caller: FunctionText) -> Iterator[str]:
        """The names of methods that a text asks an object for: `getattr(self.matcher, "match_all", None)`."""
        for owner, name in _ASKED.findall(text) if b"getattr(" in text else ():
            if self._meant(name.decode(), owner.decode(), caller, True):
                yield name.decode()

    def _entered_in(self, text: bytes) -> Iterator[str]:
        """The names in a text of objects that are called, and have a name like their class's, in capitals or not."""
        for called in _CALLED_OF_SELF.finditer(text.lower()) if self._entered else ():
            if called[1] in self._entered:
                yield text[called.start(1) : called.end(1)].decode()

    def _entered_by(self, func: ast.Name | ast.Attribute) -> list[FunctionText]:
        """What runs in a call of an object that has a name like its class's."""
        owner, _, name = dotted(func).encode().lower().rpartition(b".")
        return self._unknown(self._entered.get(name, ()) if owner == b"self" else ())

    def _unknown(self, functions: Iterable[FunctionText]) -> list[FunctionText]:
        """Those of functions that were not known to be called."""
        return [each for each in functions if each.key not in self.found]

    def _made(self, name: str, owner: str | None, caller: FunctionText) -> list[FunctionText]:
        """What makes the objects of a class that is called by this name, and was not known to run."""
        same = self._unknown(self.makers.of(name))
        if not same:
            return []
        if owner is None:
            known = name in self.imported.names(caller.path)
            return [each for each in same if known or each.path == caller.path]
        owner = self.imported.aliases(caller.path).get(owner, owner)
        return [each for each in same if owner in _module(each.path)]

    def _seldom_in(self, caller: FunctionText) -> Iterator[str]:
        """Of the names of such functions those that a function speaks of."""
        for word in self.spoken.by(caller):
            name = self._names.get(word)
            known = name is not None and (name in self.seldom or self.makers.of(name))  # most classes are made once
            if name is not None and known and self._can_mean(name, caller, word[:1] == b"."):
                yield name

    def _can_mean(self, name: str, caller: FunctionText, is_attribute: bool) -> bool:
        """Whether a name may mean one of them in a file, or an attribute in a class, wherever it stands: asked once of each."""
        key = name, caller.cls if is_attribute else caller.path, is_attribute
        found = self._possible.get(key)
        if found is None:
            found = self._possible[key] = (
                self._attribute_can_mean(name, caller)
                if is_attribute
                else bool(self._meant(name, None, caller, True) or self._made(name, None, caller))
            )
        return found

    def _attribute_can_mean(self, name: str, caller: FunctionText) -> bool:
        same = self.seldom.get(name, ())
        few = self._means_few(name)
        if any(few or not each.cls or len(self._kinds(each.cls)) > 1 for each in same) or self.makers.of(name):
            return True
        if any(said_by_name(each).reason is Reason.ASIDE for each in same):
            return True  # of a `Logger`, which is called like it: `self._logger.store(loss)`
        return bool(self._meant(name, "self", caller, True))

    def _may_call(self, name: str, text: bytes, caller: FunctionText) -> bool:
        """Whether a text may call one that is not known to be called: only then it is parsed."""
        for word in self.imported.under(name, caller.path):
            for at, end in places(word.encode(), text):
                owner = _before(text, at - 1) if text[at - 1 : at] == b"." else None
                is_called = text[end : end + 1] == b"("
                if is_called and caller.name == "__init__":
                    pass  # once
                elif self._meant(name, owner, caller, is_called) or (is_called and self._made(name, owner, caller)):
                    return not _is_behind(text, at)
        return False

    def _meant(
        self, name: str, owner: str | None, caller: FunctionText, is_called: bool, asked: bool = True
    ) -> list[FunctionText]:
        """The functions that a call may mean, or what stands to be called later: in a table of losses, as an argument.

        `owner` is the last word before the point, if any; what a statement by itself gives is not `asked` for. No known ones.
        """
        same = self.seldom.get(name, ())
        same = same if is_called else _without_beside(same)
        if not same:
            return []
        if owner is None:
            return self.imported.meant(name, caller.path, [each for each in same if not each.cls])
        if owner in ("self", "cls", "super"):
            kin = self._kin(caller.cls)
            return [each for each in same if each.cls and (each.cls in kin or caller.cls in self._kin(each.cls))]
        if name in conventions.OF_ANY_MODULE:  # but for `loss_scaler.state_dict()["scale"]`, to log it
            same = [each for each in same if owner in conventions.GRAD_SCALERS and "scaler" in each.cls.lower()]
        if not is_called:
            return []
        # `self.logger.log(loss)`
        named = self._of_kind([each for each in same if cold_names.beside(each.name, each.cls)], owner)
        if not (asked and self._means_few(name)):
            same = _without_beside(same)  # it may be any object's
        elif "_" not in name.strip("_"):  # `values.evaluate_actions(x)`, and `policy.evaluate(x, actions)` of what acts
            same = [each for each in same if environments.chooses(each.methods) or _without_beside([each])]
        owner = self.imported.aliases(caller.path).get(owner, owner)
        functions = [each for each in same if not each.cls and owner in _module(each.path)]
        alike = "" if name not in _OF_TENSORS else owner.lower() if len(owner) >= _TELLING else " "
        methods = [each for each in same if each.cls and owner not in _LIBRARIES and alike in each.cls.lower()]
        few = methods if methods and self._means_few(name) else []
        return functions or named or few or self._of_kind(methods, owner)

    def _means_few(self, name: str) -> bool:
        """Whether few methods have a name, but for those of modules that override one another and, where the name alone says
        that they run seldom, those that hand on what they are asked for."""
        if name not in self._few:
            same = self.defined.get(b"." + name.encode(), ())
            if len(same) > _FEW and not any(said_by_name(each).hot for each in same):
                same = [each for each in same if not (each.is_abstract() or _hands_on(each))]
            few = len(same) <= _FEW
            if not few and all(self._has("forward", each.cls) for each in same):
                few = len({self._first_with(name, each.cls) for each in same}) <= _FEW
            self._few[name] = few
        return self._few[name]

    def _of_kind(self, methods: list[FunctionText], owner: str) -> list[FunctionText]:
        """Those of a class that an object is called like, or that is derived from one: `attack.generate(x)` of all that are an
        `EvasionAttack`, or derived from what stands in a file that does not name torch.
        """
        word = owner.replace("_", "").lower()
        if len(word) <= _TELLING:
            return []
        alike = [
            each for each in methods if each.cls and any(cls.lower().endswith(word) for cls in self._kinds(each.cls))
        ]
        if not alike:
            return []
        return [
            each for each in methods if each in alike or (each.cls and not self._kinds(each.cls) <= self.classes.keys())
        ]

    def _kinds(self, cls: str) -> frozenset[str]:
        """A class and what it is derived from that says what its objects are for."""
        found = self._kinds_of.get(cls)
        if found is None:
            found = self._kinds_of[cls] = self._kin(cls).difference(_ANY)
        return found

    def _has(self, name: str, cls: str) -> bool:
        """Whether a class, or what it is derived from, has a method."""
        return any(self._defines(name, each) for each in self._kin(cls))

    def _defines(self, name: str, cls: str) -> bool:
        return any(name in each.methods for each in self.classes.get(cls, ()))

    def _first_with(self, name: str, cls: str) -> str:
        """The class in which a method is defined first: the furthest above another that has it."""
        above = [each for each in self._kin(cls) if self._defines(name, each)]
        return min(above, key=lambda each: (len(self._kin(each)), each), default=cls)

    def _kin(self, cls: str) -> frozenset[str]:
        """A class and what it is derived from, by their names."""
        if cls not in self._above:
            found, new = {cls}, {cls}
            for _ in range(_DEEPEST):
                new = {base for name in new for each in self.classes.get(name, ()) for base in each.bases} - found
                found |= new
            self._above[cls] = frozenset(found)
        return self._above[cls]


def _without_beside(functions: Iterable[FunctionText]) -> list[FunctionText]:
    """Those of which any call says that they are part of a step."""
    return [each for each in functions if not cold_names.beside(each.name, each.cls)]


def _wrapped(nodes: Iterable[ast.AST]) -> set[str]:
    """What is wrapped, and kept under its own name: `self.predict = first_of(self.predict)` says nothing of who calls it."""
    kept = (each for each in nodes if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call))
    return {
        dotted(target)
        for each in kept
        for target in each.targets
        if isinstance(target, ast.Attribute)
        and any(isinstance(part, ast.Attribute) and dotted(part) == dotted(target) for part in walk(each.value))
    }


def _is_behind(text: bytes, at: int) -> bool:
    """Whether a place is in a decorator of what stands behind a function, whose text ends with it."""
    return text[text.rfind(b"\n", 0, at) + 1 : at].lstrip().startswith(b"@") and text.find(b"def ", at) < 0


def is_seldom(function: FunctionText, beside: bool) -> bool:
    """Whether a function runs seldom by its name, its folder (`beside`) or `no_grad` alone, so that a call says more."""
    if conventions.never(function.name, function.cls):
        return False
    heat = said_by_name(function)
    if heat.hot:
        aside = beside or is_frozen(function) or is_for_the_log(function)
        return heat.reason in conventions.OPEN and aside
    return heat.reason in conventions.SOFT


def _hands_on(function: FunctionText) -> bool:
    """Whether a method asks another object for its own method of this name: `self.policy.set_weights(weights)`."""
    return re.search(rb"\w\.%b\(" % function.name.encode(), function.text()) is not None


def _before(text: bytes, point: int) -> str:
    """The last word before a point: `super` of `super().x`."""
    near = text[max(point - _LONGEST, 0) : point]
    rest = near.rstrip(_LETTERS)
    if len(rest) < len(near):  # most often: no bracket stands between
        return near[len(rest) :].decode()
    found = _LAST.search(text, max(point - _LONGEST, 0), point)
    return found[1].decode("utf-8", "replace") if found is not None else ""


def _owner(node: ast.Name | ast.Attribute) -> str | None:
    """The last word before the point of what is named; None where there is no point."""
    if isinstance(node, ast.Name):
        return None
    return name_of(node.value.func if isinstance(node.value, ast.Call) else node.value)


def _called_like(cls: str) -> set[str]:
    """What an object of a class is called like, without what makes a doer of it: `postprocess` and `post_process`."""
    root = _DOER.sub("", cls.strip("_"))
    return {root, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", root)}


def _module(path: str) -> tuple[str, str]:
    """What a function of a file may be called under: its module, or the package that hands it on."""
    folder, file = os.path.split(path)
    return file.removesuffix(".py"), os.path.basename(folder)
