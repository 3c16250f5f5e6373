"""Where a value lives, on the host or the device, says whether it waits: `# waits: op` marks every line that does."""

import textwrap

import pytest

from syncscope.tensors.interpret import sites

CASES = {
    "numbers of the host at places of the device": """
        def write(x: torch.Tensor, i: torch.LongTensor, rows: int):
            y = torch.zeros(rows, 4, device="cuda")
            at = i.cuda()
            y[at] = 1.0  # waits: number_write
            y[at, 0] = 1.0  # waits: number_write
            y[0, 1] = rows  # waits: number_write
            y[0] = 1.0
            y[:, 1] = 1.0
            y[y > 0] = 1.0
            y[at] += 1.0
            y[0, 0] += 1.0
            y[at] = y[0, 0]
            y[torch.arange(rows)] = y  # waits: index_host
            y[rows:] = torch.zeros(rows, 4)  # waits: to_device
            y[0, :] = torch.tensor(1.0)
            y[0, 0] = torch.tensor(1.0)  # waits: number_write
            z = torch.zeros(rows, 4)
            z[0, 0] = 1.0
            z[torch.arange(rows)] = 1.0
            return y + torch.tensor(1.0, device="cpu"), z
    """,
    "positions of the host, beside constants of the file": """
        B, T = 32, 128
        data = torch.tensor([1, 2, 3])
        train, held_out = data[:2], data[2:]

        def batch(split, beyond):
            data = train if split == "train" else held_out
            at = torch.randint(len(data) - T, (B,))
            x = torch.stack([data[i : i + T] for i in at])
            return x, torch.stack([data[i + 1 : i + beyond + 1] for i in at])
    """,
    "a device that has a name": """
        device = "cuda:1" if torch.cuda.is_available() else "cpu"

        class Sends:
            def __init__(self):
                self.device = "cpu"

            def to(self, device):
                self.device = device

            def batch(self, given):
                x = torch.stack([torch.zeros(3) for _ in range(9)])
                x.to("cpu")
                return x.to(device), given["x"].to(self.device)  # waits: to_device
    """,
    "what is sent where its object goes, which begins on the host": """
        class Sends:
            def __init__(self):
                self.device = "cpu"

            def to(self, device):
                self.device = device

            def preprocess(self, batch):
                return batch["x"].to(self.device)  # waits: to_device
    """,
    "into a tensor on the host": """
        def count(found: torch.Tensor, rows: int, scale):
            counts, table = torch.zeros(rows), torch.zeros(rows, 2)
            table[:, 0] = torch.exp(torch.arange(rows).float() * scale)
            for row in range(rows):
                counts[row] = found[row].sum()  # waits: cpu
            return counts, table
    """,
    "beside a tensor that was made on the host": """
        class Schedule:
            def __init__(self):
                self.times = torch.arange(9)

            def index(self, time: torch.Tensor, found: torch.Tensor):
                found.cuda().to(self.times.device)  # waits: cpu
                return time.to(self.times.device)
    """,
    "given to numpy, which takes what lives on the host": """
        import numpy as np

        def spread(scores: torch.Tensor, cut: torch.Tensor):
            table = np.log(scores)
            return table, scores.max().item(), cut.item()  # waits: item
    """,
    "made where it was not said": """
        def rotation(size, device=None):
            turn = torch.zeros(size, size, device=device)
            return turn + torch.eye(size, device=device)

        def check(size, device: torch.device):
            assert rotation(size).sum() > 0
            assert rotation(size, device=device).sum() > 0  # waits: condition
    """,
    "a device that is the host's unless a tensor says where": """
        def place(values):
            tensors = [value for value in values if isinstance(value, torch.Tensor)]
            if not tensors:
                return torch.empty(0).device, torch.get_default_dtype()
            return tensors[0].device, tensors[0].dtype

        class Shear:
            def draw(self, count, noise: torch.Tensor):
                device, dtype = place([self.low, self.high])
                drawn = self.sampler.rsample((count,)).unsqueeze(0)
                drawn = drawn.to(device=device, dtype=dtype)  # waits: cpu
                center = torch.zeros(count, device=device)
                return (center + drawn).to(device), noise.to(dtype)
    """,
    "values of the host, copied to where a tensor is": """
        class Warper:
            def __init__(self, epsilon, device):
                self.epsilon = torch.tensor(epsilon, device=device)  # waits: tensor_literal
                self.nothing = torch.tensor([], device=device)

            def __call__(self, x: torch.Tensor, sizes_list, sizes):
                shapes = torch.as_tensor(sizes_list, device=x.device)  # waits: tensor_literal
                other = torch.as_tensor(sizes, device=x.device)  # waits: tensor_literal
                x = torch.as_tensor(x, dtype=torch.float32, device=x.device)
                eye = torch.eye(x.size(1)).type_as(x)  # waits: created_on_host
                return x.new_tensor(sizes), shapes, other, eye  # waits: tensor_literal

        class Layer(nn.Module):
            def _init_weights(self, module):
                module.decay.data = torch.tensor(self.decay, device=module.decay.device)
    """,
    "a list by the tensor that it is to lie beside, and a type of tensors": """
        def padded(x: torch.Tensor, y: torch.Tensor):
            begin, room = x.new([1]), y.new(y.size()).fill_(2)  # waits: tensor_literal
            return torch.cat([begin.tile(4), room, torch.zeros(3).type(x.type()), y.type(y.dtype)])  # waits: created_on_host
    """,
    "positions that are made on the host": """
        class Lower(nn.Module):
            def forward(self, x: torch.Tensor, heads):
                made, at = x.new_zeros(3, 4, 4), torch.tril_indices(4, 4, -1)
                made[:, at[0], at[1]] = x  # waits: index_host
                rows = torch.tensor(heads[:-1], dtype=torch.long)
                return made, x[rows, :]  # waits: index_host
    """,
    "what a distribution that is made of another asks": """
        from torch.distributions import Independent, Normal, TransformedDistribution

        def over(cls, out: dict[str, torch.Tensor], x: torch.Tensor, given):
            Independent(Normal(**out), 1)  # waits: distribution_validate
            Independent(cls(**out), 1)  # waits: distribution_validate
            TransformedDistribution(Normal(x, x), [])  # waits: distribution_validate
            Independent(given, 1), Independent(given.expand(3), 1)
            Independent(cls(**out, validate_args=False), 1)

        def asked(x: torch.Tensor):
            base = Normal(x, x, validate_args=False)
            open_ = Normal(x, x)  # waits: distribution_validate
            Independent(base, 1).log_prob(x)
            Independent(open_, 1, validate_args=False).log_prob(x)  # waits: distribution_validate
            TransformedDistribution(base, []).log_prob(x)  # waits: distribution_validate
            TransformedDistribution(open_, [], validate_args=False).log_prob(x)  # waits: distribution_validate
            TransformedDistribution(base, [], validate_args=False).log_prob(x)
    """,
    "what a distribution that holds another draws lives where its parameters do": """
        from torch.distributions import Independent, Normal

        def loss(mean: torch.Tensor, spread: torch.Tensor):
            dist = Independent(Normal(mean, spread), 1)  # waits: distribution_validate
            drawn = dist.rsample()
            return dist.log_prob(drawn)  # waits: distribution_validate
    """,
    "a number at two places that are numbers or positions": """
        def masks(mat: torch.Tensor, pairs, names):
            first, second, *_ = pairs
            wanted = torch.zeros_like(mat)
            wanted[first, second] = 1  # waits: number_write
            wanted[first, :] = 1
            names[first, second] = 1
            return wanted
    """,
    "what a matching on the host gives": """
        class SetCriterion(nn.Module):
            def loss_labels(self, outputs, targets, indices):
                at = self._get_src_permutation_idx(indices)
                found = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])  # waits: index_host
                return outputs["pred_boxes"][at], found  # waits: index_host

            def _get_src_permutation_idx(self, indices):
                batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
                return batch, torch.cat([src for (src, _) in indices])
    """,
    "on the host alone": """
        def refine(points: torch.Tensor, mask: torch.Tensor):
            device = points.device
            host = len(points) > 0 and device.type == "cpu"
            if host and mask.dtype == torch.bool:
                return points[mask]
            return points[mask > 0]  # waits: mask_read
    """,
    "made where keywords may say": """
        def shuffled(n, **kwargs):
            order, fixed = torch.randperm(n, **kwargs), torch.randperm(n)
            while torch.equal(order, order + 1) or torch.equal(fixed, fixed + 1):  # waits: equal
                pass
    """,
    "a batch that is copied to the host": """
        def collect(loader: torch.utils.data.DataLoader):
            found = []
            for data in loader:
                if len(data) == 3:
                    x, y, _ = data
                else:
                    x, y = data
                found.append((x.cpu().numpy(), y.tolist()))  # waits: cpu
            return found
    """,
    "set up on the host": """
        class Scheduler:
            def __init__(self, betas: torch.Tensor):
                self.set(betas)
                self.sigmas = self.sigmas.to("cpu")

            def set(self, betas: torch.Tensor, device=None):
                self.sigmas = betas.cumsum(0).to(device)

            def finish(self):
                return self.sigmas.to("cpu")  # waits: cpu
    """,
    "kept where it was set up until somebody sends it elsewhere": """
        class Schedule:
            def __init__(self, n: int):
                self.steps = torch.arange(n)
                self.scales = torch.linspace(0, 1, n)
                self.held = torch.arange(n).cuda()  # waits: created_on_host

            def set_steps(self, n: int, device=None):
                self.steps = torch.arange(n).to(device)  # waits: created_on_host
                self.held = torch.arange(n).to(device)  # waits: created_on_host

            def add_noise(self, x: torch.Tensor, noise: torch.Tensor):
                steps = self.steps.to(x.device)  # waits: to_device
                scales = self.scales.to(device=x.device, dtype=x.dtype)  # waits: to_device
                return x + noise * scales[steps] + self.held.to(x.device)
    """,
    "of a module, which is moved, nothing is kept": """
        class Grid(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.register_buffer("steps", torch.arange(n))

            def resize(self, n: int, device):
                self.steps = torch.arange(n).to(device)  # waits: created_on_host

            def forward(self, x: torch.Tensor):
                return x + self.steps.to(x.device)
    """,
    "made on the host where a call does not say": """
        def grid(n: int, m: int, device: str = "cpu"):
            device = torch.device(device)
            rows, columns = torch.arange(n, device=device), torch.arange(m, device=device)
            return torch.stack(torch.meshgrid(rows, columns, indexing="ij")).float()

        def flow(x: torch.Tensor, n: int):
            there = grid(n, n, device=x.device).to(x.device)
            return there + grid(n, n).to(x.device)  # waits: to_device
    """,
    "the pointer of a ring, which is read whole and then written": """
        def enqueue(queue: torch.Tensor, queue_ptr: torch.LongTensor, keys: torch.Tensor):
            ptr = int(queue_ptr)  # waits: int
            queue[ptr] = 0
            queue_ptr[0] = (ptr + 1) % len(queue)  # waits: number_write
            keys[0] = 1.0
    """,
    "numbers at positions that another function looked for": """
        def pairs(labels: torch.Tensor):
            same = labels[:, None] == labels[None]
            rows, columns = torch.where(same)  # waits: where
            return rows, columns

        def loss(x: torch.Tensor, labels: torch.Tensor):
            first, second = pairs(labels)
            found = torch.zeros(len(x), len(x), device="cuda")
            found[first, second] = 1  # waits: number_write
            chosen = torch.zeros(len(x), 9, device="cuda")
            chosen[first, labels] = 1  # waits: number_write
            return found, chosen
    """,
    "numbers at positions that were looked for right above": """
        def sampled(matched: torch.Tensor, n: int):
            found = torch.where(matched == 0)[0]  # waits: where
            chosen = torch.zeros_like(matched)
            chosen[found[:n]] = 1  # waits: number_write
            return chosen
    """,
    "numbers of a dtype at positions": """
        def masked(x: torch.Tensor, rows: torch.LongTensor):
            out = x.cuda()
            out[rows.cuda()] = torch.finfo(x.dtype).max  # waits: number_write
            out[rows.cuda()] = -torch.finfo(x.dtype).eps  # waits: number_write
            out[0] = torch.iinfo(torch.long).max
            return out
    """,
    "made on the host, and an index of what a module is given": """
        class Field(nn.Module):
            def forward(self, x: torch.Tensor, tags: torch.Tensor):
                rows = torch.arange(x.size(1))
                return x[0, rows, tags[0]]  # waits: index_host

        def taken(x: torch.Tensor):
            return x[torch.eye(9) > 0]  # which may be on the host, too
    """,
    "an index of the host beside another": """
        def best(x: torch.Tensor, scores: torch.Tensor, rows: list[int]):
            index = torch.arange(x.shape[0])
            first = x[torch.arange(x.shape[0]), scores.argmax(1)]  # waits: index_host
            return first + x[index, scores.argmin(1)] + x[index, 0]  # waits: index_host
    """,
    "operands in a list": """
        def paired(x: torch.Tensor, y: torch.Tensor, order: torch.Tensor):
            losses = torch.einsum("bij,pij->bp", [x, y])
            if losses.sum() > 0:  # waits: condition
                return [order[each] for each in losses.argmin(1)]  # waits: scalar_index
            return [order[each] for each in losses]
    """,
    "a flag that takes the way of tensors": """
        def default(given, otherwise):
            return given if given is not None else otherwise

        class Codebook(nn.Module):
            def __init__(self, frozen: bool = False):
                super().__init__()
                self.frozen = frozen

            def forward(self, x: torch.Tensor, mask: torch.Tensor = None, frozen=None, heat=None):
                mask = default(mask, x > 0)
                frozen = default(frozen, self.frozen)
                heat = default(heat, 1.0)
                if not frozen and heat > 0:
                    x = x + 1
                return x[mask]  # waits: mask_read
    """,
    "a size that stands beside another": """
        class Memory:
            def __init__(self, size, dim, device):
                self.states = torch.zeros(size, dim, device=device)
                self.ends = torch.zeros(size, device=device)
                self.other = torch.zeros(dim[0], device=device)
                self.at, self.size = 0, size

            def add(self, state, end):
                self.states[self.at] = float(end)
                self.ends[self.at] = float(end)  # waits: number_write
                self.ends[0] = 1.0  # waits: number_write
                self.other[self.at] = 1.0
                self.at = (self.at + 1) % self.size
    """,
    "a size that may be several": """
        class Memory:
            def __init__(self, size, device):
                self.ends = torch.zeros(size, device=device)
                self.at = 0

            def add(self, end):
                self.ends[self.at] = float(end)
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    source = "import torch\nfrom torch import nn\n" + textwrap.dedent(CASES[name])
    lines = enumerate(source.splitlines(), 1)
    marks = {(number, op.strip(" #")) for number, line in lines for op in line.split("# waits: ")[1:]}
    assert {(site.place.line, site.op) for site in sites(source.encode(), "use.py") if site.confidence >= 2} == marks
