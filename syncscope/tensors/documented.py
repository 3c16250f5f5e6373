"""What a docstring says of the parameters: `x (torch.Tensor, bool): ...`, `x : Tensor`, `:param x: a tensor of ...`."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import text_of
from syncscope.tensors.facts import ANY_DTYPE, BOOL, HOST, INT, NP_ARRAY, SCALAR, STRING, TENSOR, tensor

# Google's and numpy's way, `name (type): text` and `name : type`, and Sphinx's, `:param type name: text`.
_NAME = r"[`*]{0,2}(\w+)[`*]{0,2}[ \t]*"
_LINE = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?{_NAME}(?:\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\))?[ \t]*:[ \t]*(\S[^\n]*)?$"
)
_FIELD = re.compile(
    rf"^[ \t]*:(?:param|type|arg)[ \t]+(?:([\w.\[\], ~:`]*?)[ \t]+)?{_NAME}:[ \t]*([^\n]*)$", re.MULTILINE
)
_BEFORE = r"""(?:(?:an?|the|this|one|input|optional|optionally|batched|batch|of|float|floating|point|double|int|integer|long|
    bool|boolean|binary|mask|real|complex|scalar|positive|(?:one|two|three|four|\w)[- ]dimensional|\d-?d(?:im(?:ensional)?)?|
    0-dim|torch|pytorch|dense|sparse|class|single|target|label|prediction|predicted|ground[- ]truth|image|feature|
    float(?:16|32|64)|int(?:32|64)|\([^()]*\)|`[^`]*`(?:-dim\w*)?)[ ,-]+){0,5}"""
_OTHER_THINGS = "s|[ ]?(?:products?|network|parallel|names?|dim\\w*|sizes?|types?|cores?|fields?|train|board|flow|dict)"
_TENSOR = re.compile(
    rf"""^(?:optional[ ]?\[)?{_BEFORE}[`:~]*(?:class:)?[`~]*(?:torch\.)?(?P<dtype>Float|Double|Half|Long|Int|Bool|Byte|)tensor\b
    (?!(?:{_OTHER_THINGS})\b)(?P<rest>[^\n]{{0,60}})""",
    re.VERBOSE | re.IGNORECASE,
)
_OR = re.compile(
    r"^[`\]]*[ ]*(?:,[ ]*)?(?:or|/|\||,[ ]*(?:list|tuple|float\b|int\b|str|np\.|numpy|dict))[ ]*+(?!none)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^(?:optional[ ]?\[)?`*(?:int|float|bool|integer|boolean)`*(?:$|[\],]|[ ]*,?[ ]*optional|[ ]or[ ]none|[ ]*\()",
    re.IGNORECASE,
)
_TEXT = re.compile(r"^(?:optional[ ]?\[)?`*(?:str|string)`*(?:$|[\],]|[ ]*,?[ ]*optional|[ ]or[ ]none)", re.IGNORECASE)
_ARRAY = re.compile(r"^(?:an?[ ])?`*(?:np\.ndarray|numpy\.ndarray|ndarray|numpy[ ]array|np\.array)", re.IGNORECASE)
_NAMED = {"bool": BOOL, "long": INT, "int": INT}  # people write FloatTensor for any tensor that is not of integers
_SAID = re.compile(r"\b(?:bool|boolean)\b", re.IGNORECASE)
_SCALAR = re.compile(r"\b(?:scalar|0-?dim\w*|0-?d)\b", re.IGNORECASE)


def documented(function: ProjectFunction, name: str) -> Fact:
    """What the docstring of a function says of a parameter, that of its class for `__init__`; UNKNOWN where it says nothing."""
    return _parameters(function).get(name, UNKNOWN)


def documented_as_mask(function: ProjectFunction, name: str) -> bool:
    """Whether the docstring says that a parameter is a tensor of bools; most speak of none."""
    if "bool" not in _text(function):
        return False
    said = documented(function, name)
    return said.kind is TENSOR and said.dtype is BOOL


def _text(function: ProjectFunction) -> str:
    text = _docstring(function.node)
    if not text and function.name == "__init__" and function.cls is not None:
        text = _docstring(function.cls.node)
    return text


@kept(MANY)
def _parameters(function: ProjectFunction) -> dict[str, Fact]:
    text = _text(function)
    if "ensor" not in text and "rray" not in text:
        return {}
    found: dict[str, Fact] = {}
    for line in text.split("\n"):  # one by one: what is to begin a line would be looked for at every sign
        if ":" in line and (match := _LINE.match(line)) is not None:
            name, kind, rest = match.groups("")
            _note(found, name, kind or rest)
    if ":param" in text or ":type" in text or ":arg" in text:
        for kind, name, rest in _FIELD.findall(text):
            _note(found, name, kind or rest)
    return found


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    first = node.body[0]
    return (text_of(first.value) if isinstance(first, ast.Expr) else None) or ""


def _note(found: dict[str, Fact], name: str, text: str) -> None:
    fact = _meant(text.strip(), name)
    if fact is not UNKNOWN and name not in found:
        found[name] = fact


def _meant(text: str, name: str) -> Fact:
    """What a type, or the first words of a text, say a value is."""
    said = _TENSOR.match(text)
    if said is not None:
        rest = said["rest"]
        if _OR.match(rest):
            return UNKNOWN
        dtype = _NAMED.get(said["dtype"].lower(), ANY_DTYPE)
        head = text[: said.start("rest")] + rest.partition(":")[0][:16]
        dtype = BOOL if dtype is ANY_DTYPE and _SAID.search(head) else dtype
        return tensor(
            dtype, confidence=2, why=f"`{name}` is documented as a tensor", ndim=0 if _SCALAR.search(head) else None
        )
    if _ARRAY.match(text):
        return NP_ARRAY
    if _NUMBER.match(text):
        return Fact(SCALAR, device=HOST, confidence=1)
    return STRING if _TEXT.match(text) else UNKNOWN
