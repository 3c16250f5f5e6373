"""A function that reads or copies a value on its own: `torch.histc(x)`, `x.cov()`, `torch.istft`, `LBFGS.step`.

Why it waits
------------
The call looks like any other, but inside it the host needs a value of the device, and waits until it is computed: `histc` the
smallest and the largest element for its range, `cov` and `corrcoef` whether there are enough observations, `istft` whether its
windows cover the signal, `LBFGS.step` each loss of its line search, `AveragedModel.update_parameters` how many it has
averaged. Or it makes a tensor of the device from a list of the host and waits for the copy: a nested tensor with
`layout=torch.jagged` from its lengths, `ctc_loss` from lengths of the host, torchvision's `normalize` from mean and deviation.
A metric of torchmetrics looks whether labels are classes (`torch.unique`) and, where it takes a mean, whether all are numbers.
`nn.Transformer`, its encoder and its decoder compare the mask they are given with a causal one, to know whether it is one.
What `@torch.jit.script` has compiled waits in who calls it. Measured on CUDA, torch 2.11.

What to do
----------
- `torch.histc(x, bins, low, high)` with a range that is known does not ask for it.
- `x.cov()` of rows: `d = x - x.mean(dim=1, keepdim=True)` and `d @ d.mT / (x.shape[1] - 1)` ask nothing.
- `normalize`: `(x - mean) / std` with buffers of the shape `[3, 1, 1]`; `LBFGS` reads by design, `Adam` does not.
- `torch.normal(mean, std)` asks whether a deviation is negative: `mean + std * torch.randn_like(mean + std)` does not.
- `Normal(mean, std).sample()` asks the same, with `validate_args=False`, too: `.rsample().detach()` gives the same numbers.
- torch_geometric's `global_add_pool(x, batch, size=data.num_graphs)` need not look how many graphs there are. Nor need
  `degree`, `softmax`, `scatter`, `add_self_loops` with `num_nodes` (`dim_size`), and `to_dense_batch` with `batch_size` and
  `max_num_nodes`.
- `remove_self_loops`, `subgraph`, `coalesce`, `to_undirected`: once for each graph, in its data set (`pre_transform`).
  For `dropout_edge` a mask that weights messages, `edge_weight * keep`, selects nothing.
- `nn.Transformer(...)(src, tgt, tgt_mask=mask)`: `tgt_is_causal=True` where the mask is causal, else `False`, and nobody looks
  (`src_is_causal` for `src_mask`, `is_causal` of an encoder).
- Metrics of torchmetrics, once their arguments are known to be right: `Accuracy(..., validate_args=False)`,
  `MeanMetric(nan_strategy="disable")`.
- `istft`, jagged nested tensors, `ctc_loss`: once for a batch, where the step reads something anyway.

When a fix pays
---------------
Where it runs in every step and the function has a form that is told what it would read. Not for one call per epoch, and for
`LBFGS` not at all: its line search needs the numbers.

Fix safety
----------
Unsafe, because `data.num_graphs` is what torch_geometric's loader gives, and counts graphs without nodes, too. Noise that is
drawn and scaled is the same numbers as `torch.normal` gives; unsafe, because nobody asks any more whether a deviation is
negative, and gradients go through it. `rsample().detach()` is unsafe for the first reason alone: a distribution that checks its
parameters has looked already.
"""

from __future__ import annotations

import ast

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.LIBRARY_READ,)
SEEN_AS = (
    "aten::histc",
    "aten::cov",
    "aten::istft",
    "aten::_ctc_loss",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::_to_copy",
    "aten::copy_",
)
REWRITES = ("pass_number_of_graphs", "draw_without_check", "draw_and_detach")
READ = {  # last word of the call: what it needs
    "histc": "the smallest and the largest value for its range",
    "cov": "whether there are enough observations",
    "corrcoef": "whether there are enough observations",
    "istft": "whether the windows cover the signal",
    "step": "losses or rates on the host",
    "update_parameters": "the number of models that it has averaged",
    "predict": "which rows are in the head's classes",
    "grouped_mm": "the ends of the groups on the host, where the dtype is not bfloat16",
    "nested_tensor": "the lengths on the device, copied from the host",
    "as_nested_tensor": "the lengths on the device, copied from the host",
    "pack_padded_sequence": "the order of its lengths on the device, copied from the host, with enforce_sorted=False",
    "pad_packed_sequence": "the order of its lengths on the host, where they were not sorted before",
    "gaussian_nll_loss": "whether a variance is negative",
    "normal": "whether a deviation is negative",
    "sample": "whether a deviation is negative, or which draws to keep",
    "ctc_loss": "lengths and offsets on the device, copied from the host",
    **dict.fromkeys(("global_add_pool", "global_mean_pool", "global_max_pool"), "the largest number of a graph"),
    "normalize": "mean and deviation on the device, copied from the host",
}
_CAUSAL: dict[str, dict[str | int | None, str]] = {  # by the mask's name or position what says that it is causal
    "torch.nn.TransformerEncoder": dict.fromkeys(("mask", 1), "is_causal"),
    "torch.nn.TransformerDecoder": dict.fromkeys(("tgt_mask", 2), "tgt_is_causal"),
    "torch.nn.Transformer": {
        **dict.fromkeys(("src_mask", 2), "src_is_causal"),
        **dict.fromkeys(("tgt_mask", 3), "tgt_is_causal"),
    },
}
EXAMPLES = (
    Example(
        """
        import torch

        def spread(x: torch.Tensor):
            return torch.histc(x.sigmoid(), 16)  # !
        """,
        instead="""
        import torch

        def spread(x: torch.Tensor):
            return torch.histc(x.sigmoid(), 16, 0.0, 1.0)  # the range of a sigmoid is known
        """,
    ),
    Example(
        """
        import torch

        def whitening(x: torch.Tensor):
            return x.double().cov()  # !
        """,
        instead="""
        import torch

        def whitening(x: torch.Tensor):
            x = x.double()
            d = x - x.mean(dim=1, keepdim=True)
            return d @ d.mT / (x.shape[1] - 1)
        """,
        inputs="x: finite[n + 2, m + 2]",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Writer(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Transformer(64, 4, batch_first=True)

            def forward(self, source, target, causal: torch.Tensor):
                return self.body(source, target, tgt_mask=causal)  # !
        """,
        instead="""
        import torch
        from torch import nn

        class Writer(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Transformer(64, 4, batch_first=True)

            def forward(self, source, target, causal: torch.Tensor):
                return self.body(source, target, tgt_mask=causal, tgt_is_causal=True)
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    call = site.node.func if isinstance(site.node, ast.Call) else None
    word = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
    if call is not None and _is_metric(site, call):
        return f"{view.quote(site.node)} looks whether its arguments are valid, and waits for the answer"
    if isinstance(call, ast.Name) and word not in READ:
        return f"`{word}` is compiled by TorchScript and waits inside: no line of it is seen, but this one"
    if call is not None and site.operand is not None and (flag := _says_causal(site, call, view)):
        asks = f"looks whether its mask {view.quote(site.operand)} is causal"
        return f"{view.quote(site.node)} {asks}, and waits for the answer: say `{flag}=True` where it is"
    graphs = call is not None and (view.function(site).dotted(call) or "").startswith("torch_geometric.utils.")
    needed = "how many nodes, edges or graphs there are" if graphs else READ.get(word, "a value of the device")
    return f"{view.quote(site.node)} needs {needed}, and waits for it"


def _says_causal(site: Site, called: ast.expr, view: View) -> str:
    """The argument that tells one of torch's transformers whether its mask is causal; "" of any other call."""
    function = view.function(site)
    made = function.maker(called)
    flags = _CAUSAL.get(function.dotted(made.func) or "", {}) if made is not None else {}
    given = site.node if isinstance(site.node, ast.Call) else None
    if given is None or not flags:
        return ""
    named = [each.arg for each in given.keywords if each.value is site.operand]
    at = [number for number, each in enumerate(given.args) if each is site.operand]
    return next((flags[each] for each in (*named, *at) if each in flags), "")


def _is_metric(site: Site, called: ast.expr) -> bool:
    """Whether a metric of torchmetrics is called, or a method of one."""
    of = (called, called.value) if isinstance(called, ast.Attribute) else (called,)
    return any(str(site.fact_of(each).ref).startswith("torchmetrics.") for each in of)
