"""What lives on the host among what is computed on the device: `# waits: op` marks every line that does, and no other does."""

import pytest
from tensors.host_side import waits_as_marked
from tensors.marked import marks, waits

CASES = {
    "an argument that is sent behind the line that picks from it": """
        class Learner(nn.Module):
            def step(self, x: torch.Tensor, y: torch.Tensor):
                shuffled = x[torch.randperm(x.shape[0])]
                x = x.float().to(self.device)
                again = x[torch.randperm(3)]  # waits: index_host
                return again, shuffled, y[torch.randperm(3)]  # waits: index_host
    """,
    "a part of an argument that is sent in a later line, under another name or none": """
        class Net(nn.Module):
            def forward(self, x, y, device):
                x["longer"][torch.randint(0, 3, (1,))] = True
                flags = x["flags"]
                flags[torch.randint(0, 3, (1,))] = True
                y["rows"][torch.randint(0, 3, (1,))] = True  # waits: index_host
                y = self.rows(y)
                return x["longer"].to(device=device, non_blocking=True), flags.float().cuda(), y["rows"].to(device)
    """,
    "a range as an index, wherever it was made": """
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.diagonal = range(n)

            def forward(self, x, h: torch.Tensor):
                rows = range(3)
                x[..., self.diagonal, self.diagonal] = h  # waits: index_list
                return h[rows] + h[self.diagonal[0]]  # waits: index_list
    """,
    "what `as_tensor` is given that is sent on: a tensor would have been sent itself": """
        def loss(net, batch, kept, x: torch.Tensor):
            weights = torch.as_tensor(batch[-1]).type(torch.float)
            weights = weights.cuda()  # waits: to_device
            given = [torch.as_tensor(each).cuda() for each in batch]  # waits: created_on_host
            same = torch.as_tensor(x).cuda()
            near = torch.as_tensor(kept).to(x.device)
            return net(*given) * weights * same * near
    """,
    "where lies what a method chooses": """
        def lengths_of(lengths: torch.Tensor, mask, host):
            kept = lengths.where(lengths > 0, torch.ones_like(lengths))
            made = torch.zeros(3).where(torch.ones(3) > 0, torch.zeros(3))
            return kept.cpu(), made.sum().item()  # waits: cpu
    """,
    "rows of what is no tensor: a sparse matrix of SciPy's": """
        class Net(nn.Module):
            def batch(self, counts, n):
                rows = torch.randperm(n)
                return torch.from_numpy(counts[rows, :].toarray())

            def rows(self, counts, n):
                rows = torch.randperm(n)
                return counts[rows, :]  # waits: index_host
    """,
    "what a matcher found": """
        def loss(self, logits: torch.Tensor, masks: torch.Tensor, indices):
            found = self._get_source_permutation_idx(indices)
            return logits[found] - masks[other(indices)]  # waits: index_host
    """,
    "a class of the host as a dtype": """
        def mask(answer: torch.Tensor):
            flags = torch.isnan(answer).type(torch.float)
            return flags, torch.isnan(answer).type(torch.FloatTensor)  # waits: cpu
    """,
    "an argument that names a device beside it keeps nothing there": """
        class Weighted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.rand(3)
                self.sent = torch.rand(3)
                self.rows = torch.rand(3)

            def times(self, x: torch.Tensor):
                return self.w.to(x.device) * torch.ones(3, device=x.device)  # waits: to_device

            def plus(self, x: torch.Tensor):
                return x * self.w[0].to(x.device) + torch.zeros(3, device=x.device)  # waits: to_device

            def joined(self, x: torch.Tensor):
                both = torch.cat([self.w.to(dtype=x.dtype, device=x.device), x])  # waits: to_device
                self.sent, self.rows.data = (
                    self.sent.to(x.device),
                    self.rows.to(x.device),
                )
                return both
    """,
    "lengths that are packed, and what numpy is given": """
        from torch.nn.utils.rnn import pack_padded_sequence

        def packed(x: torch.Tensor, lengths: torch.Tensor):
            found = pack_padded_sequence(x, lengths=lengths, batch_first=True)
            return found, [int(n) for n in lengths], max(lengths), x.max().item()  # waits: item

        def moved(x: torch.Tensor, lengths: torch.Tensor):
            longest = int(lengths.max())  # waits: int
            lengths = lengths.cpu()  # waits: cpu
            return pack_padded_sequence(x, lengths), longest

        def counted(x: torch.Tensor, mask: torch.Tensor):
            lengths = mask.sum(1)
            return pack_padded_sequence(x, lengths), lengths.tolist()

        def shown(x: torch.Tensor, y: torch.Tensor, fast: bool):
            if fast:
                y.numpy()
            if x.max() > 1 or y.max() > 1:  # waits: condition
                return None
            return x.detach().numpy()
    """,
    "a number of numpy's that derives from Python's float": """
        import numpy as np

        def bounded(x: torch.Tensor, c: float):
            most = np.double(x.max())  # waits: float
            return x * np.float64(c) * most if most > np.double(1.0) else x
    """,
    "lengths that are a list of tensors": """
        from torch.nn.utils.rnn import pack_padded_sequence

        def packed(x: torch.Tensor, mask: torch.Tensor):
            lengths = list(mask.eq(0).long().sum(1))
            found = pack_padded_sequence(x, lengths, batch_first=True)  # waits: pack_padded_sequence
            named = pack_padded_sequence(x, lengths=[m.sum() for m in mask])  # waits: pack_padded_sequence
            return found, named, pack_padded_sequence(x, [len(m) for m in mask])
    """,
    "sent to the host before anything was known of it": """
        def same(rows, at, other: torch.Tensor):
            row = rows[at].to("cpu")  # waits: cpu
            if row.unsqueeze(0).any() or torch.equal(row, torch.zeros(3)):
                return row.item()
            return other.any().item()  # waits: item
    """,
    "no tensor yet, of types that are announced together": """
        Observed = torch.Tensor | np.ndarray | dict

        def seen(obs: Observed):
            if not isinstance(obs, torch.Tensor):
                obs = torch.as_tensor(obs, dtype=torch.float32)
            return obs.cuda()  # waits: to_device
    """,
    "what all callers of a private function pass from the host, though it is announced": """
        def scores(features: torch.Tensor, words: list[list[int]]):
            return _cut(features, torch.LongTensor([len(each) for each in words])), cut(features, torch.tensor([3, 4]))

        def _cut(features: torch.Tensor, lengths: torch.Tensor):
            return [row[:length] for row, length in zip(features, lengths)]

        def cut(features: torch.Tensor, lengths: torch.Tensor):
            return [row[:length] for row, length in zip(features, lengths)]  # waits: size
    """,
    "a range is a list": """
        def first(x: torch.Tensor, labels: torch.Tensor):
            return x[range(len(labels))] + x[range(4), labels]  # waits: index_list
    """,
    "each bound of an index, and where a range ends": """
        def cut(x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor):
            part = x[  # waits: size
                : rows[0],
                : columns[0] + 1,  # waits: size
            ]
            return part, torch.arange(1, rows[1]), torch.arange(0, 5)  # waits: size
    """,
    "a list of sizes that are tensors": """
        def parts(x: torch.Tensor, masks: list[torch.Tensor], sizes: list[int]):
            many = [m.sum() for m in masks]
            first = torch.split(x, many)  # waits: size
            return first, torch.split(x, sizes, dim=1), torch.split(x, [2, 3])
    """,
    "what libraries over arrays give": """
        from scipy.ndimage import convolve1d
        from scipy.optimize import linear_sum_assignment

        def matched(x: torch.Tensor, costs, labels):
            rows, columns = linear_sum_assignment(costs)
            smooth = convolve1d(costs, weights=labels)
            if smooth.flatten().any():
                return smooth[labels.flatten() - 1]
            return x.cuda()[rows]  # waits: index_list
    """,
    "what torch.tensor is given is no tensor of the device, where it may be a number": """
        def logged(loss: torch.Tensor, more: bool, found: int):
            extra = loss.mean() if more else 0.0
            extra = torch.tensor(extra).unsqueeze(0).to(loss.device)  # waits: to_device
            return torch.stack([extra, torch.tensor(loss.detach()).to(loss.device)])
    """,
    "a type that is the device's where there is one": """
        Floats = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
        Other = torch.cuda.LongTensor if torch.cuda.is_available() else torch.Tensor

        def noise(n: int, loader: torch.utils.data.DataLoader):
            ones = torch.autograd.Variable(Floats(n, 3).fill_(1.0))
            z = torch.autograd.Variable(Floats(np.random.normal(0, 1, (n, 3))))  # waits: tensor_literal
            labels = Other([1, 2, 3])  # waits: tensor_literal
            for x, y in loader:
                x = x.type(Floats)  # waits: to_device
                if (x + z + ones).sum() > 0:  # waits: condition
                    return torch.FloatTensor(n), labels.type(Floats)
    """,
    "one tensor under one name": """
        def healthy(residual: torch.Tensor, other: torch.Tensor):
            return torch.equal(residual, residual) and torch.equal(residual, other)  # waits: equal
    """,
    "a list that was filled": """
        def chosen(scores: torch.Tensor):
            kept = []
            for number in range(4):
                kept.append(number)
            return scores.cuda()[kept]  # waits: index_list
    """,
    "a list beside what may be a tuple": """
        def chosen(sigmas: torch.Tensor, steps: torch.Tensor, at, where: tuple[int, int]):
            if at is None:
                found = [int(t) for t in steps]  # waits: int
            else:
                found = [at] * len(steps)
            return sigmas.cuda()[found], sigmas[tuple(found)], sigmas[at]  # waits: index_list
    """,
    "sent to a device that is known as one": """
        def factored(matrix: torch.Tensor, device=None):
            home, host = matrix.device, matrix.cpu()  # waits: cpu
            q, r = torch.linalg.qr(host)
            return q.to(home), r.to(home)  # waits: to_device
    """,
    "a batch of a loader that is seen": """
        def fit(device):
            for x, y in torch.utils.data.DataLoader(rows):
                x, y = x.to(device), y.to(device)  # waits: to_device
    """,
    "what is saved": """
        def keep(path, net: Net, optimizer, number: int):
            torch.save(net.state_dict(), path)  # waits: cpu
            torch.save({"net": net.state_dict(), "epoch": number}, path)  # waits: cpu
            torch.save({"epoch": number}, path)
            torch.save(Net().state_dict(), path)
    """,
    "how many go on at each step of a packed sequence": """
        def unrolled(packed, x: torch.Tensor):
            sizes = packed.batch_sizes
            for size in sizes:
                x = x[: sizes[0].item()] + x[:size]
            return x[x.batch_sizes[0]]

        def again(packed, batch_sizes: torch.Tensor):
            return batch_sizes[0].item()
    """,
    "numbers drawn for a size": """
        def noise(x: torch.Tensor, scale):
            a = torch.normal(mean=0.0, std=scale, size=(1,)).item()
            b = torch.normal(0.0, 1.0, (1,)).item()
            c = torch.normal(0.0, 1.0, (1,), device=x.device).item()  # waits: item
            return a + b + c + torch.normal(x, 1.0)[0].item()  # waits: item
    """,
    "what is kept where the host is, by default": """
        class Memory:
            def __init__(self, device: str = "cuda:0", storage_device: str = "cpu"):
                self.device = device
                self.rewards = torch.zeros(10, device=storage_device)
                self.errors = torch.zeros(10, device=device)

            def add(self, position: int, reward: float):
                self.rewards[position] = reward
                self.errors[position] = reward  # waits: number_write
    """,
    "a size that may not be given": """
        def positions(ends: torch.Tensor, size=None):
            index = torch.arange(ends.numel() - 1, device=ends.device)
            return index.repeat_interleave(ends.diff(), output_size=size)  # waits: repeat_interleave
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    waits_as_marked(CASES[name])


def test_that_a_list_which_was_filled_is_copied_is_no_guess() -> None:
    code = """
        def pairs(x: torch.Tensor, n: int):
            rows = []
            for i in range(n):
                rows.append(i)
            return x[:, rows]  # waits: index_list
    """
    assert waits(code, confidence=2) == marks(code)


def test_what_an_object_is_given_that_sends_to_a_device_of_its_own_lies_there() -> None:
    code = """
        class Trainer:
            def losses(self, batch):
                return self.loss(batch[0].to(self._device))

        class Contrasting(Trainer):
            def loss(self, rows: torch.Tensor):
                others = torch.ones(3, 3) > 2
                return rows[others]  # waits: index_host

        class Plain:
            def loss(self, rows: torch.Tensor):
                others = torch.ones(3, 3) > 2
                return rows[others]
    """
    assert waits(code, confidence=2) == marks(code)


def test_what_registers_a_buffer_is_a_module_and_leaves_what_is_none_behind() -> None:
    code = """
        from flows import Masked, Plain

        class Categories(Masked):
            def __init__(self, counts: torch.Tensor):
                super().__init__()
                self.counts = counts.clone()
                self.register_buffer("mask", torch.ones(3))

            def forward(self, x: torch.Tensor):
                return x, int(self.counts[0]), int(self.mask[0])  # waits: int

        class Counted(Plain):
            def __init__(self, counts: torch.Tensor):
                self.counts = counts.clone()

            def tell(self):
                return int(self.counts[0])  # waits: int
    """
    assert waits(code, confidence=2) == marks(code)


def test_that_a_setting_is_a_number() -> None:
    code = """
        class Positions(nn.Module):
            def forward(self, x: torch.Tensor, given):
                last = torch.as_tensor(self.config.length - 1, device=x.device)  # waits: tensor_literal
                return torch.min(last, x), torch.as_tensor(given.length - 1, device=x.device)
    """
    assert waits(code, confidence=2) == marks(code)


def test_what_counts_a_loader_and_speaks_of_no_device_is_no_more_than_a_guess() -> None:
    code = """
        def weights(loader, n):
            total = 0
            for subject in loader:
                mask = subject["label"]["data"]
                total += torch.nonzero(mask[:, 0]).size(0) + mask.sum().item()
            return total

        def weighted(loader, n, device):
            total = 0
            for subject in loader:
                mask = subject["label"].to(device)
                total += torch.nonzero(mask[:, 0]).size(0)  # waits: nonzero
            return total
    """
    assert {op for _, op in waits(code)} == {"to_device", "nonzero", "item"}
    assert {each for each in waits(code, confidence=2) if each[1] == "nonzero"} == marks(code)


def test_what_batches_samples_works_on_the_host() -> None:
    code = """
        class Batcher:
            def pack(self, rows):
                return sum(int((row["mask"] & torch.isfinite(row["scores"])).sum().item()) for row in rows)

        class Learner:
            def pack(self, rows):
                return sum(int((row["mask"] & torch.isfinite(row["scores"])).sum().item()) for row in rows)  # waits: item
    """
    assert waits(code, confidence=2) == marks(code)


def test_a_static_method_takes_what_its_class_passes() -> None:
    code = """
        class Miner:
            def sample(self, features: torch.Tensor, labels):
                labels = torch.tensor(labels).long()
                one = torch.arange(len(labels) - 1)
                one, two = self.taken(one, one + 1, mask=labels[one] != labels[one + 1])
                return self.kept(features, features > 0)

            @staticmethod
            def taken(one: torch.Tensor, two: torch.Tensor, mask: torch.Tensor):
                return one[mask], two[mask]

            @staticmethod
            def kept(x: torch.Tensor, mask: torch.Tensor):
                return x[mask]  # waits: mask_read
    """
    assert waits(code, confidence=2) == marks(code)
