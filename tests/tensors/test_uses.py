"""What only tensors are used for says that a value is one: `# waits: op` marks each line that waits, and no other line does."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "what torch makes of each of those that are written out": """
        def update(env, count: int):
            rows, kept = [], []
            for _ in range(count):
                rows.append(torch.zeros(3, device="cuda"))
                kept.append(True)
            rows, kept = map(torch.stack, (rows, kept))
            names, sizes = map(str, [env, count])
            if rows.sum() > 0:  # waits: condition
                return names, sizes
            return rows[torch.randperm(count)]  # waits: index_host
    """,
    "what a function of tensors is given, beside a number": """
        def generator(rates, noise, held, other):
            decay = torch.diag(rates**2) + torch.exp(-noise) + torch.diag(held - other)
            decay *= float(rates)  # waits: float
            decay *= float(noise)  # waits: float
            return decay * float(held)
    """,
    "what is annotated as a list, whatever it holds": """
        def greedy(q: torch.Tensor, legal: list, places: list[int], pair: tuple[int, int], other):
            best = q[legal]  # waits: index_list
            first = q[pair]
            chosen = legal[torch.argmax(best)]  # waits: index
            return chosen, first, q[other], q[places]  # waits: index_list
    """,
    "what a trainer hands on of a step": """
        class Watch:
            def on_train_batch_end(self, outputs, batch, batch_idx):
                if outputs["loss"] > 10:  # waits: condition
                    print("large")

            def on_train_epoch_end(self, outputs):
                if outputs["loss"] > 10:
                    print("large")
    """,
    "what a helper sends, whatever kind it is": """
        def to_recursive(batched, device):
            if isinstance(batched, torch.Tensor):
                return batched.to(device)  # waits: to_device
            return [x.to(device) for x in batched]  # waits: to_device

        def sent(data, *args, **kwargs):
            if isinstance(data, torch.Tensor):
                return data.to(*args, **kwargs)  # waits: to_device
            return {key: sent(value, *args, **kwargs) for key, value in data.items()}

        def one(batched, device):
            return batched.to(device)  # waits: to_device
    """,
    "an object that gives another of its kind elsewhere": """
        class Crystal:
            def __init__(self, atoms: torch.Tensor, bonds: torch.Tensor):
                self.atoms, self.bonds = atoms, bonds

            def to(self, device):
                return Crystal(
                    self.atoms.to(device),  # waits: to_device
                    bonds=self.bonds.to(device),  # waits: to_device
                )

        class Kept:
            def __init__(self, atoms: torch.Tensor):
                self.atoms = atoms

            def to(self, device):
                self.atoms = self.atoms.to(device)
                return self
    """,
    "lengths of a batch, one by one": """
        class Loss(nn.Module):
            def forward(self, predictions, targets):
                mel, mel_length, counts = targets
                out, postnet = predictions
                loss = 0
                for i in range(mel.shape[0]):
                    loss = loss + self.mse(
                        out[i, : mel_length[i], :],  # waits: size
                        mel[i, : counts, :],
                    )
                return loss
    """,
    "a tensor of the host put into one that a module was given": """
        class Basis(nn.Module):
            def forward(self, x: torch.Tensor):
                result = x.new_zeros(x.shape[0], 5)
                result[:, 0] = 1 / torch.sqrt(torch.tensor([2]))  # waits: to_device
                result[:, 1] = 2
                return result

        def filled(tasks, device, made):
            grads = torch.zeros(tasks, 3).to(device)  # waits: created_on_host
            for task in range(tasks):
                grads[task] = torch.ones(3)  # waits: to_device
            return grads
    """,
    "one of two parts of a batch": """
        class Model:
            def set_input(self, data):
                self.real = data["A" if self.forth else "B"].to(self.device)  # waits: to_device
    """,
    "the way of what has no other": """
        def step(record, distrib, log_prob: torch.Tensor):
            try:
                record.extend(distrib.entropies().detach().cpu().tolist())  # waits: cpu
            except NotImplementedError:
                record.extend(-log_prob.detach().cpu().numpy())  # waits: cpu
    """,
    "lengths that are copied for a packing of one's own": """
        def pack_padded_sequence(inputs, lengths):
            lengths = (lengths * inputs.size(1)).cpu()  # waits: cpu
            return torch.nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)

        def encoded(inputs: torch.Tensor, lengths):
            return pack_padded_sequence(inputs, lengths)
    """,
    "what may be None, and is not": """
        def train(loader, model, device):
            for x, y in loader:
                y = y if len(y) > 0 else None
                if y is not None:
                    y = y.to(device)  # waits: to_device
                model(x.to(device), y).backward()  # waits: to_device
    """,
    "the data of what is copied to the host": """
        def mined(rows, labels):
            return rows.cpu().data, labels.cpu().data.numpy()  # waits: cpu
    """,
    "numbers put into a text one by one": """
        def train(loader, model, device):
            mean = torch.zeros(3, device=device)
            for x in loader:
                loss, items = model(x)
                loss.backward()
                mean = mean + items
                print("%s %g %g %g" % ("epoch", *mean))  # waits: format
                print("%s %d %d" % ("shape", *mean.shape))
    """,
    "what a lambda is given": """
        def best(x: torch.Tensor, boxes: list[torch.Tensor], names: list[str]):
            first = max(boxes, key=lambda box: box.sum())  # waits: builtin
            kept = list(filter(lambda row: row.sum() > 0, boxes))  # waits: condition
            small = sorted(boxes, key=lambda box: box.shape[0])
            twice = list(map(lambda row: row * 2, boxes))
            if twice[0].any():  # waits: condition
                return max(names, key=lambda name: len(name))
            return first, kept, small
    """,
    "what an optimizer's closure gives": """
        class Search(torch.optim.Optimizer):
            def step(self, closure, other):
                before = closure()
                other(other())
                return float(before), float(closure()), float(other())  # waits: float
    """,
    "all values of a dict, of which one is surely a tensor": """
        import torch.nn.functional as F

        def losses(model, x, y):
            logits, mu = model(x)
            ce = F.cross_entropy(logits, y)
            kl = (mu ** 2).mean()
            return ce + kl, {"kl": kl, "ce": ce}, [mu, ce]

        def train(model, loader, names):
            for x, y in loader:
                loss, parts, listed = losses(model, x.cuda(non_blocking=True), y.cuda(non_blocking=True))
                loss.backward()
                log = {key: float(value) for key, value in parts.items()}  # waits: float
                total = sum(float(value) for value in parts.values())  # waits: float
                for each in listed:
                    log["last"] = float(each)  # waits: float
                log["one"] = float(parts[names[0]])
    """,
    "a loss that is made anew with the weights of its classes": """
        def training_step(model, x: torch.Tensor, y, weights):
            loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0])).cuda()(model(x), y)  # waits: to_device
            second = nn.BCEWithLogitsLoss(pos_weight=torch.ones(3))
            second = second.to(x.device)  # waits: to_device
            third = nn.CrossEntropyLoss().cuda()
            other = nn.CrossEntropyLoss(torch.tensor([1.0, 2.0], device=x.device)).cuda()  # waits: tensor_literal
            return loss + second(model(x), y) + third(model(x), y) + other(model(x), y)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))

            def forward(self, x: torch.Tensor, y):
                return self.loss(x, y)
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
    "copied and read with methods of tensors between": """
        def collect(found, metric, x, loss, model):
            loss, other = model.step(x)
            found.append(loss.cpu().detach().numpy())  # waits: cpu
            found.append(metric(x).cpu().detach().squeeze().tolist())  # waits: cpu
            found.append(model.cpu().named(x).tolist())
    """,
    "what is cast for those who check types": """
        from typing import cast

        def scaled(x: torch.Tensor, other, name):
            host = cast(torch.Tensor, x.to(device="cpu"))  # waits: cpu
            if host.sum() > 0:
                return None
            first = cast(int, x[0])
            return cast(str, name).item(), [1, 2, 3][first]
    """,
    "a parameter of what is no module stays where it is made": """
        class Multiplier:
            def __init__(self, first: float):
                self.value = torch.nn.Parameter(torch.zeros(3) + first)
                self.moved = torch.nn.Parameter(torch.zeros(3)).cuda()  # waits: to_device

            def update(self, cost):
                return self.value.sum().item() + self.moved.sum().item()  # waits: item

        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.value = torch.nn.Parameter(torch.zeros(3))

            def forward(self, x):
                return self.value.sum().item()  # waits: item
    """,
    "of a progress bar around a loader": """
        def collect(dataloader, found):
            with tqdm(dataloader, desc="steps") as bar:
                for x, y in bar:
                    found.append((x > 0).sum().item())  # waits: item
    """,
    "a method of tensors of what is only called like one": """
        def loss(labels, c, probabilities: torch.Tensor):
            here = (labels == c).type_as(probabilities)
            if here.sum() == 0:  # waits: condition
                return 0
    """,
    "a dict that is filled": """
        def step(self, p, x: torch.Tensor):
            state = self.state[p]
            state["scale"] = x.norm()
            if state["scale"] == 0.0:  # waits: condition
                state["scale"] = 1
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
    "a test that has a name": """
        def boxes(x, y, path):
            known = isinstance(x, torch.Tensor)
            found = x.cpu() if known else x  # waits: cpu
            return found, path.cpu()
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
    "whose gradients are asked for": """
        def step(model, x, optimizer):
            loss = model(x).mean()
            loss.backward()
            return loss.item()  # waits: item
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
    "batches of what people call a loader": """
        def feed(train_loader, images, device):
            for step, (data, target) in enumerate(train_loader):
                data, target = data.cuda(0), target.to(device)  # waits: to_device
                images.to(device)  # waits: to_device
    """,
    "asked by name whether it succeeded": """
        def invert(a: torch.Tensor, operator):
            factor = operator.cholesky()
            factor.mul_(2.0)
            return factor.cholesky(), a.cholesky()  # waits: linalg_check
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
    "more ways to ask whether it succeeded": """
        def solve(a: torch.Tensor, b: torch.Tensor):
            return a.inverse() @ b, a.new_tensor(0.5), a.new_tensor(b)  # waits: linalg_check # waits: tensor_literal
    """,
    "compiled functions wait in who calls them": """
        @torch.jit.script
        def _clipped(x: torch.Tensor):
            if x.max() > 1:  # waits: condition
                x = x / 2
            return x

        @torch.jit.script
        def _doubled(x: torch.Tensor):
            return x * 2

        def forward(x: torch.Tensor):
            return _clipped(_doubled(x))  # waits: library_read
    """,
    "lengths that are not sorted": """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        def forward(x: torch.Tensor, lengths):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # waits: library_read
            packed = pack_padded_sequence(x, lengths, batch_first=True)
            return pad_packed_sequence(packed)  # waits: library_read
    """,
    "made as a dict says": """
        def knots(x: torch.Tensor):
            kwargs = {"dtype": x.dtype, "device": x.device}
            return torch.tensor([1.0, 2.0], **kwargs)  # waits: tensor_literal
    """,
    "logits of what is not in sight": """
        import numpy as np

        def loss(policy, batch, act):
            chosen = policy(batch).logits[np.arange(len(act)), act]  # waits: index_list
            return chosen.mean()
    """,
    "what only arrays can be asked for, of what is no name": """
        def accepts(norm, error, scale):
            ratio = norm(error / scale).abs()
            if ratio <= 1:  # waits: condition
                return True
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)


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


@pytest.mark.parametrize("code", GUESSES.values(), ids=GUESSES)
def test_guesses_are_made_where_the_marks_say(code: str) -> None:
    assert waits(code) == marks(code)


def test_what_is_copied_to_be_read_as_a_tensor_is_one() -> None:
    code = """
        def step(model, batch, meter):
            losses = model(batch)
            meter.update(losses[0].data.cpu().item())
            meter.put(losses[0].data.cpu())
            return loss(batch).detach().cpu(), model.loss.detach().cpu()
    """
    assert {line for line, op in waits(code, 2) if op == "cpu"} == {6, 8}
