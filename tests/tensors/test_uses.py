"""What a value is used for says what it is: `# waits: op` marks every line that does, and no other line does."""

import textwrap

import pytest

from syncscope.tensors.interpret import sites

CASES = {
    "positions of a matching index what lies under a key, or in a list of tensors": """
        class ImageLoss(torch.nn.Module):
            def loss_labels(self, outputs, targets, indices):
                found = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])  # waits: index_host
                return found.float().mean()

            def loss_masks(self, masks: list[torch.Tensor], indices):
                return torch.cat([m[j] for m, (_, j) in zip(masks, indices)])  # waits: index_host
    """,
    "a class of torch is no tensor, whatever it is used like": """
        def parallelized(model, mesh: torch.distributed.device_mesh.DeviceMesh):
            print(f"over {mesh.size()} of {mesh}")
            if mesh:
                mesh = mesh.detach()
            return model
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
    "positions that another function chose by a mask": """
        def matched(ids: torch.LongTensor, scores: torch.Tensor):
            best = torch.cat((torch.ones((1,), dtype=torch.bool, device=ids.device), ids[1:] != ids[:-1]))
            order = torch.sort(scores)[1]
            return ids[order][best], order[best]  # waits: mask_read

        def forward(x: torch.Tensor, ids: torch.LongTensor):
            rows, columns = matched(ids, x[:, 0])
            wanted = x.new_zeros((3, 3))
            wanted[rows, columns] = x[0]
            return wanted, x[rows], x[rows, columns]
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
    "indexed with a comparison": """
        def reduce(losses, low, names):
            kept = losses[losses > low]  # waits: mask_read
            inside = (losses > low) & (losses < 1)
            losses[~inside] = kept.mean() * losses  # waits: mask_write
            return names[3]
    """,
    "cast as only tensors are": """
        def compute(matrix, positive):
            positive = positive.bool()
            return matrix[positive]  # waits: mask_read
    """,
    "changed in place": """
        def clip(group, norms):
            norm = total(norms).sqrt_()
            return min(group["limit"] / norm, 1.0)  # waits: builtin
    """,
    "asked of a comparison": """
        def scaled(other: float | torch.Tensor, x):
            if (other > 0).all():  # waits: condition
                return x * other
            if (x.shape == other.shape).all():
                return x
    """,
    "copied and read in one go": """
        def collect(found, results, path):
            found.append(results["scores"].cpu().numpy())  # waits: cpu
            return path.cpu()
    """,
    "a method of tensors of what is only called like one": """
        def loss(labels, c, probabilities: torch.Tensor):
            here = (labels == c).type_as(probabilities)
            if here.sum() == 0:  # waits: condition
                return 0
    """,
    "a sampler of anchors, and one of a data set": """
        class BalancedSampler:
            def __call__(self, matched):
                for each in matched:
                    yield torch.where(each >= 1)[0]  # waits: where

        class RowSampler:
            def __iter__(self):
                yield from torch.where(self.weights.bernoulli() > 0)[0]
    """,
    "a dict under a key that is not known": """
        def apply(name):
            space = {"shear": (torch.linspace(0, 1, 3), True), "turn": (torch.linspace(0, 9, 3), True)}
            strengths, signed = space[name]
            return strengths[2].item()
    """,
    "a dict that is filled": """
        def step(self, p, x: torch.Tensor):
            state = self.state[p]
            state["scale"] = x.norm()
            if state["scale"] == 0.0:  # waits: condition
                state["scale"] = 1
    """,
    "proved to be no tensor": """
        class Metric(nn.Module):
            def __init__(self):
                self.value = torch.zeros(3)

            def forward(self, x: torch.Tensor):
                if isinstance(self.value, list) and self.value:
                    return torch.cat(self.value)
    """,
    "one number under a mask": """
        def offset(scores: torch.Tensor, target: torch.Tensor, classes: torch.Tensor):
            made = torch.zeros_like(scores)
            made[target == 0] = 1.0
            made[target == 0] = scores.min().abs() + 10  # waits: mask_write
            made[target == 0, classes] = 1.0  # waits: mask_write
            return made
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
    "a padding mask is looked into in evaluation only": """
        def run(loader, optimizer):
            encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 2)
            for x, padding in loader:
                encoder(x, src_key_padding_mask=padding).mean().backward()
                optimizer.step()
            return encoder(x, src_key_padding_mask=padding)  # waits: transformer_mask
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
    "positions, not a mask": """
        def batched_nms(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchvision.nms(boxes, scores, 0.5)  # waits: nms

        def detect(boxes: torch.Tensor, scores: torch.Tensor):
            keep = batched_nms(boxes, scores)
            keep = keep[:10]
            return boxes[keep]
    """,
    "a guess that is compared, then used as an index": """
        class Miner(nn.Module):
            def mine(self, embeddings, anchors):
                distances = self.distance(embeddings)
                near = distances < self.margin if self.inverted else distances > self.margin
                return anchors[near]  # waits: mask_read
    """,
    "what is set aside in an optimizer": """
        class Scaled(torch.optim.Optimizer):
            def step(self):
                total = self.state["sum"]["weighted"]
                total.mul_(0.9)
                return max(total, 0.0)  # waits: builtin
    """,
    "arithmetic with a tensor": """
        def rescale(mean, var: torch.Tensor):
            if mean().div(var.sqrt()).sum() > 0:  # waits: condition
                return var
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
    "a test that has a name": """
        def boxes(x, y, path):
            known = isinstance(x, torch.Tensor)
            found = x.cpu() if known else x  # waits: cpu
            return found, path.cpu()
    """,
    "none of what is taken beside tensors": """
        import numpy as np

        def host(data: torch.Tensor | np.ndarray):
            return data if isinstance(data, np.ndarray) else data.cpu()  # waits: cpu
    """,
    "calculated with": """
        def pack(lengths, size, path):
            return (lengths * size).cpu(), path.cpu()  # waits: cpu
    """,
    "for what is empty": """
        def mean(scores: torch.Tensor, found: list[torch.Tensor]):
            total = torch.cat(found).sum() if found else torch.tensor(0.0, device=scores.device)
            if scores.shape[0] == 0:
                return torch.tensor(1.0, device=scores.device)
            return total / torch.tensor(2.0, device=scores.device)  # waits: tensor_literal
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
    "whose gradients are asked for": """
        def step(model, x, optimizer):
            loss = model(x).mean()
            loss.backward()
            return loss.item()  # waits: item
    """,
    "where no other kind of array is named": """
        import numpy as np

        def split(rows, labels, low):
            found = labels[0] > low
            return rows[0][found]  # waits: mask_read

        def curves(rows, labels, low):
            found = labels[0] > low
            return np.cumsum(rows[0][found])
    """,
    "one position of many": """
        def suppress(boxes: torch.Tensor, scores: torch.Tensor, edges: torch.Tensor):
            _, order = scores.sort(descending=True)
            i = order[0]
            kept, counts = torch.unique(scores, return_counts=True)  # waits: unique
            return boxes[i], boxes[counts[0]], boxes[edges[0]]  # waits: scalar_index
    """,
    "a row of the ends of edges is no number": """
        def forward(x: torch.Tensor, data):
            sources = torch.stack(data["edge_index"]).long()
            edge_index = torch.nonzero(x)  # waits: nonzero
            source, target = edge_index[0], edge_index[1]
            return x[source] + x[target]
    """,
    "a row of a sparse matrix's positions is no number": """
        def normalized(adjacency: torch.Tensor, scale: torch.Tensor):
            positions = adjacency.indices().long()
            return scale[positions[0]] * scale[positions[1]]
    """,
    "asked of tensors and of numbers": """
        import math

        def is_nan(value):
            if isinstance(value, torch.Tensor):
                return torch.isnan(value).any()
            return math.isnan(value) or value == math.inf

        def rounded(value):
            if isinstance(value, torch.Tensor):
                return value.to(torch.int64)
            return int(value)

        def check(value, grid: torch.Tensor):
            if is_nan(value):  # waits: condition
                return grid.view(rounded(value))
    """,
    "a module that is being built": """
        class Interval(nn.Module):
            def __init__(self, low, high: torch.Tensor):
                if torch.any(torch.as_tensor(low) > high):
                    raise ValueError(low)

            def check(self, x: torch.Tensor):
                return bool(torch.all(x > 0))  # waits: bool
    """,
    "numbers at what is called positions": """
        def index_to_mask(index: torch.Tensor, subset: torch.Tensor, other: torch.Tensor, size: int):
            mask = index.new_zeros(size)
            mask[index] = 1  # waits: number_write
            mask[subset] = 1  # waits: number_write
            mask[other] = 1
            return mask
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
    "products of masks are masks": """
        def inside(x: torch.Tensor):
            keep = (x > 0) * (x < 1) + (x > 5)
            return x[keep]  # waits: mask_read
    """,
    "one of the tensor of its plural": """
        class Schedule:
            def set(self, count: int, device: torch.device):
                self.times = torch.linspace(0, 1, count).to(device)  # waits: created_on_host

            def step(self, x: torch.Tensor, time: int, order: int):
                if time > 0 and order > 1:  # waits: condition
                    x = x * 2
                return x * self._weight(time, order)

            def _weight(self, now: int, order: int):
                return 1.0 if order > 1 or now > 0 else 2.0  # waits: condition
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
    "batches of what people call a loader": """
        def feed(train_loader, images, device):
            for step, (data, target) in enumerate(train_loader):
                data, target = data.cuda(0), target.to(device)  # waits: to_device
                images.to(device)
    """,
    "asked by name whether it succeeded": """
        def invert(a: torch.Tensor, operator):
            factor = operator.cholesky()
            factor.mul_(2.0)
            return factor.cholesky(), a.cholesky()  # waits: linalg_check
    """,
    "what people call a mask, by its key": """
        def step(state, grad: torch.Tensor):
            return grad[state["mask"]], grad[state["index"]]  # waits: mask_read
    """,
    "a tuple whose elements have names": """
        from collections import namedtuple

        Tree = namedtuple("Tree", ["turning", "depth"])

        def grow(left: torch.Tensor, right: torch.Tensor, depth: int):
            tree = Tree((left - right).sum() < 0, depth)
            if tree.depth > 3:
                tree = Tree(left.sum() < 0, depth)
            if tree.turning:  # waits: condition
                return tree[1]
    """,
    "comparisons that are combined as only arrays are": """
        def inside(low, x, high, flags):
            assert (low <= x) & (x <= high)  # waits: condition
            assert flags & 4
    """,
    "more ways to ask whether it succeeded": """
        def solve(a: torch.Tensor, b: torch.Tensor):
            return a.inverse() @ b, a.new_tensor(0.5), a.new_tensor(b)  # waits: linalg_check # waits: tensor_literal
    """,
}


def marks(source: str) -> set[tuple[int, str]]:
    lines = enumerate(source.splitlines(), 1)
    return {(number, op.strip(" #")) for number, line in lines for op in line.split("# waits: ")[1:]}


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    source = "import torch\nfrom torch import nn\n" + textwrap.dedent(CASES[name])
    marks = {
        (number, op.strip()) for number, line in enumerate(source.splitlines(), 1) for op in line.split("# waits: ")[1:]
    }
    assert {(site.place.line, site.op) for site in sites(source.encode(), "use.py") if site.confidence >= 2} == marks


GUESSES = {
    "an argument of `forward` that is called like a tensor": """
        class Block(nn.Module):
            def forward(self, hidden, height, num_heads, mask_type):
                if height > 3 or num_heads > 4 or mask_type > 1:
                    return hidden
                if hidden.max() > 3:  # waits: condition
                    return height.item()  # waits: item
    """,
    "a key and a value of a dict, and those of a query": """
        def find(key, value):
            return key if value > 3 else value

        def attend(query, key, value):
            if value > 3:  # waits: condition
                return query
    """,
    "moved to where it was made": """
        def clipped(limit, bound: torch.Tensor, device: torch.device):
            made = torch.full((3,), limit, device=device).exp()
            moved = bound.to(device)  # waits: to_device
            return made.to(device), moved.to(device)
    """,
}


@pytest.mark.parametrize("name", GUESSES)
def test_guesses_are_made_where_the_marks_say(name: str) -> None:
    source = "import torch\nfrom torch import nn\n" + textwrap.dedent(GUESSES[name])
    assert {(site.place.line, site.op) for site in sites(source.encode(), "use.py")} == marks(source)
