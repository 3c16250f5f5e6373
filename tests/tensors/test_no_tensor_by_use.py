"""Values that are used like tensors and are none, or not of the device: `# waits: op` marks every line that waits, and no
other line does."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "rows of an array that a function in another is given": """
        import numpy as np

        def encoded(keypoints: np.ndarray):
            def inner(kpts, found):
                for i, pose in enumerate(kpts):
                    x, y, seen = pose.T
                    mask = seen > 0
                    found[i, y[mask] - 1, x[mask] - 1] = 1
                return found
            return inner(keypoints.astype(int), np.zeros((3, 4)))
    """,
    "a number of one arm, a tensor of the other": """
        def told(x: torch.Tensor, many: bool, noted):
            found = 0.0
            for row in x:
                found += row.sum().item()  # waits: item
            if many:
                part = torch.zeros(1, device="cuda")
                whole = part[0]
            else:
                whole = found
            return max(noted, whole)
    """,
    "made in an arm for what is no tensor": """
        def placed(x: torch.Tensor, fc, by):
            if isinstance(fc, torch.Tensor):
                fc = fc.to(x.device)
            else:
                fc = torch.as_tensor(fc, device=x.device)  # waits: tensor_literal
            return x * fc + torch.as_tensor(by, device=x.device)  # waits: tensor_literal
    """,
    "a class of torch is no tensor, whatever it is used like": """
        def parallelized(model, mesh: torch.distributed.device_mesh.DeviceMesh):
            print(f"over {mesh.size()} of {mesh}")
            if mesh:
                mesh = mesh.detach()
            return model
    """,
    "what has a size, as groups of processes and files have one": """
        class Trainer:
            def __init__(self, distributed, file):
                self.distributed, self.file = distributed, file

            def prepare(self, scale, words, i18n, grid, one, other):
                rate = 1.0
                if self.distributed:
                    rate *= scale(self.distributed.size())
                if self.file and self.file.size() > 3 and words and grid and other and one:  # waits: condition
                    print(i18n.t("lines"), words.t("words"))
                    rows, columns = grid.size()
                    return one.new_zeros(one.size()), torch.zeros(other.size()), rows
                return rate
    """,
    "an argument of a lambda is not what is called so elsewhere": """
        import functools

        class Sharded:
            def refresh(self, params):
                if functools.reduce(lambda x, y: x or y, self.waiting, False):
                    print("waiting")
                params.sort(key=lambda x: x.numel())
                return list(filter(lambda x: x.isnan().any(), params))

            def any_left(self, x):
                found = x.contiguous()
                return functools.reduce(lambda x, y: x or y, self.waiting, found)
    """,
    "a type asked for as a text, and what is looked up in a set": """
        def cast(x: torch.Tensor, y: torch.Tensor, color, other):
            assert color not in {"last", "random"}
            if other in [x, y]:
                return color.abs() if color.isnan() else x  # waits: condition
            if x.type() != y.type():
                return x.type(y.dtype)
            return y
    """,
    "names are texts, whatever they are made of": """
        class Trainer:
            def train_step(self, batch):
                loss, self.parts = self.model(batch)
                loss.sum().backward()
                self.loss_names = tuple(self.parts)

            def labels(self):
                return [f"train/{x}" for x in self.loss_names]
    """,
    "sorted by their keys": """
        def run(sampler):
            for x in sampler:
                x_kept = x.detach()
                structure = x
            return [structure[k] for k in sorted(structure)]
    """,
    "sizes that a function gives back that takes tensors, too": """
        def as_pair(given, first=None):
            if first is not None:
                return given, given.narrow(0, 0, first)
            return given, given

        class Conv(torch.nn.Module):
            def __init__(self, sizes, out, scales):
                super().__init__()
                self.wide, _ = as_pair(sizes)
                self.scale, _ = as_pair(scales)
                self.out = out
                self.project = torch.nn.Linear(self.wide, out)

            def forward(self, x):
                if self.wide > self.out:
                    x = self.project(x)
                return x if self.scale > 1 else -x  # waits: condition
    """,
    "sizes that a network gives back beside features": """
        class Finer(nn.Module):
            def __init__(self, encoder: nn.Module):
                super().__init__()
                self.encoder = encoder

            def forward(self, images: torch.Tensor):
                features, sizes = self.encoder(images)
                for n, feature in enumerate(reversed(features)):
                    size = sizes[-(n + 2)]
                    images = F.interpolate(images, size=size)
                return images
    """,
    "a dict under a key that is not known": """
        def apply(name):
            space = {"shear": (torch.linspace(0, 1, 3), True), "turn": (torch.linspace(0, 9, 3), True)}
            strengths, signed = space[name]
            return strengths[2].item()
    """,
    "a table whose columns are asked by name": """
        def chunk(self, start, end, known, values):
            rows = self.prepared["rows"][self.prepared["rows"]["file"] == known]
            rows = rows[(rows["start"] < end) & (rows["end"] > start)]
            return rows, values[values > known]  # waits: mask_read
    """,
    "a table whose columns are asked by a name that is given": """
        def first(df, col, value, rows, other, column):
            found = df[df[col] == value]
            return found, rows[other > column], rows[rows > value]  # waits: mask_read
    """,
    "a copy that no tensor makes": """
        def others(rows, chosen, number, x: torch.Tensor):
            left = rows.found.copy()
            while len(left) > 0:
                left = left[left != number]
            same = chosen[chosen != number]  # waits: mask_read
            return same, torch.as_tensor(rows.found.copy(), device=x.device)  # waits: tensor_literal
    """,
    "a sparse tensor that is coalesced is given back as it is": """
        def accumulate(grad: torch.Tensor, total: torch.Tensor, other: torch.Tensor):
            grad = grad.coalesce()  # waits: sparse
            seen = total.sparse_mask(grad).coalesce()
            grad = grad.coalesce().detach().to(total.dtype)
            seen = total.sparse_mask(other).coalesce() + seen  # waits: sparse
            return grad.coalesce(), seen.coalesce()  # waits: sparse
    """,
    "proved to be no tensor": """
        class Metric(nn.Module):
            def __init__(self):
                self.value = torch.zeros(3)

            def forward(self, x: torch.Tensor):
                if isinstance(self.value, list) and self.value:
                    return torch.cat(self.value)
    """,
    "annotated as a tensor, called with an array": """
        import numpy as np

        def set_timesteps(count: int):
            return _convert(np.linspace(0, 1, count))

        def _convert(sigmas: torch.Tensor):
            return sigmas[-1].item()

        def convert(sigmas: torch.Tensor):
            return sigmas[-1].item()  # waits: item
    """,
    "a histogram is asked for its range only where it has none": """
        def spread(x: torch.Tensor, n: int):
            near = x.histc(8, 0, n) + x.histc(bins=8, max=n)
            return near + x.histc(8)  # waits: library_read
    """,
    "a stand-in for something of torch": """
        try:
            import pyro.distributions as distributions
        except ImportError:
            import torch.distributions as distributions

        def forward(x: torch.Tensor):
            return distributions.Normal(x, x.exp())  # waits: distribution_validate
    """,
    "a distribution of numbers, asked about a tensor": """
        from torch.distributions import Normal

        def forward(x: torch.Tensor):
            noise = Normal(0, 1).log_prob(torch.zeros(3))
            return Normal(0, 1).log_prob(x) + noise  # waits: distribution_validate
    """,
    "distributions that a helper makes without checks": """
        from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

        class Guide:
            def base(self) -> Distribution:
                if self.full:
                    return MultivariateNormal(self.loc, scale_tril=self.tril(), validate_args=False)
                return Independent(Normal(self.loc, self.scale.exp(), validate_args=False), 1)

            def half_checked(self) -> Distribution:
                return self.base() if self.full else Independent(self.given, 1)

            def log_prob(self, x: torch.Tensor):
                return self.base().log_prob(x)

            def checked(self, x: torch.Tensor):
                return self.half_checked().log_prob(x)  # waits: distribution_validate
    """,
    "none of what is taken beside tensors": """
        import numpy as np

        def host(data: torch.Tensor | np.ndarray):
            return data if isinstance(data, np.ndarray) else data.cpu()  # waits: cpu
    """,
    "what is looked up by what it is": """
        def fresh(params, known: set):
            new = {p for p in params if p.grad is not None}
            old = [p for p in params if p.grad is None]
            for p in params:
                p.mul_(2.0)
                if p in new:
                    continue
                if p in old:  # waits: condition
                    break
    """,
    "another variable of the same name": """
        def build(widths, rows):
            for x in rows:
                x = x.detach().unsqueeze(0)
            return sum(widths[x] for x in (1, 2)), [widths[x] for x in rows if x]
    """,
    "a module that is being built": """
        class Interval(nn.Module):
            def __init__(self, low, high: torch.Tensor):
                if torch.any(torch.as_tensor(low) > high):
                    raise ValueError(low)

            def check(self, x: torch.Tensor):
                return bool(torch.all(x > 0))  # waits: bool
    """,
    "flags are flags, whoever is sloppy": """
        class Model(nn.Module):
            def forward(self, x: torch.Tensor):
                return self._a(x, x.max() > 0) + self._b(x, more=x.max() > 0)

            def _a(self, x, more: bool):
                return x if more else -x

            def _b(self, x, more=False):
                return x if more else -x
    """,
    "arrays of numpy by their annotation, and what is computed from them": """
        import numpy as np
        import numpy.typing as npt
        from numpy.typing import ArrayLike

        def kept_loss(pred: torch.Tensor, meta: np.ndarray):
            meta = meta[meta[:, 0] > 0] + 1
            w = float(meta.mean())
            return (pred * w).mean() + meta.view(-1).size(0)

        def typed_loss(pred: torch.Tensor, meta: npt.NDArray[np.float32], like: ArrayLike):
            meta = abs(meta.mean(0)) * like[like[:, 0] > 0]
            w = float(meta.mean()) + float(like.mean())
            return (pred * w).mean() + meta.view(-1).size(0)

        def either_loss(pred: torch.Tensor, meta: np.ndarray):
            if isinstance(meta, torch.Tensor):
                meta = meta.cpu().numpy()  # waits: cpu
            return (pred * float(meta.mean())).mean()
    """,
    "what can be made an array, where no array is named": """
        from numpy.typing import ArrayLike

        def weighed_loss(pred: torch.Tensor, meta: ArrayLike):
            meta = meta[meta[:, 0] > 0]
            w = float(meta.mean())
            return (pred * w).mean()
    """,
    "what a model gives back, used as an array": """
        import numpy as np

        def evaluate(model, data, chosen: np.ndarray):
            for x, y in data:
                outputs = model(x)
                _, best = outputs.max(1)
                print(best.eq(y).sum().item())  # waits: item
            low = chosen(data).max()
            return low, outputs.loss.item()  # waits: item
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)


def test_that_a_gradient_is_sparse_is_a_guess() -> None:
    code = """
        def step(p: torch.Tensor, grad: torch.Tensor, adj: torch.Tensor):
            if grad.is_sparse:
                p.add_(grad.coalesce().values())
            if adj.is_sparse:
                adj = adj.coalesce()  # waits: sparse
            return adj
    """
    assert waits(code, confidence=2) == marks(code)
