"""What a step sends lies on the host before, whatever it is taken from: `# waits: op` marks each line that waits."""

import pytest
from tensors.marked import marks, waits

SENT = {
    "batches of two loaders side by side, and what a helper has shaped": """
        def turned(rows, size):
            rows = rows.transpose(0, 1)
            return rows

        def train(net, train_loader, other_loader, masks, opt, device):
            for batch, other in zip(train_loader, other_loader):
                x, y = batch
                x = x.to(device)  # waits: to_device
                y = turned(y, 3).to(device)  # waits: to_device
                other = other[0].to(device)  # waits: to_device
                loss = net(x, other, y)
                loss.backward()
                opt.step()
            for batch, mask in zip(net.parts, masks):
                batch.to(device)
    """,
    "the views of a batch, joined": """
        def train(net, train_loader, device):
            for images, _ in train_loader:
                images = torch.cat(images, dim=0)
                net(images.to(device))  # waits: to_device
    """,
    "a batch that is one tensor, turned and cut": """
        def train(net, train_loader, device):
            for data in train_loader:
                data = torch.transpose(data, 1, 2)
                net(data[:, 0:-1, :].to(device)).mean().backward()  # waits: to_device
                net(data[:, -1, -1].to(device))  # waits: to_device
    """,
    "parts of a batch that are handed to a method, which says that they are tensors": """
        from torch.utils.data import DataLoader

        class Trainer:
            def split(self, data: torch.Tensor):
                if data.dim() == 3:
                    return data[:, :, 0:-1].to(self.device), data[:, -1, -1].to(self.device)  # waits: to_device
                return data, data

            def again(self, x: torch.Tensor):
                return x[:, -1].to(self.device)

            def train(self, rows):
                for data, weight in DataLoader(rows):
                    x, y = self.split(data)
                    out = self.net(x)
                    loss = self.loss(out, self.again(out), y)
                    loss.backward()
    """,
    "what the experiment of one model does with a batch, which a class of another file calls": """
        class Experiment(Base):
            def _process_one_batch(self, seen, target, padding):
                seen = seen.to(self.device, dtype=torch.float32)  # waits: to_device
                target = target.to(self.device).float()  # waits: to_device
                return self.model(seen), target

        class Block(nn.Module):
            def one_batch(self, seen):
                return seen.to(self.device)
    """,
    "what a trainer is handed, and its parts: no network, and nothing that was sent, or that something else was made of": """
        class Trainer:
            def _process(self, pack: Pack, nets, kept: torch.Tensor):
                x = pack.x.float().to(self.device)  # waits: to_device
                y = pack["y"].squeeze().to(self.device)  # waits: to_device
                pack["z"] = pack["z"].cuda()  # waits: to_device
                again = x.to(self.device), pack["z"].to(self.device)
                near = pack.w.to(x.device), pack.v.to(self.device, non_blocking=True)
                return self.model(x), y, again, near, nets[0].to(self.device), kept.to(self.device)

            def finish(self, loaders, last=None):
                if last is None:
                    last = torch.zeros(1, device=self.device)
                for batches in zip(*loaders):
                    for rows in batches:
                        self.add(rows[0].to(self.device))  # waits: to_device
                return last.to(self.device)  # waits: to_device

            def _encode(self, encode, rows, parts):
                parts = encode(parts)
                encode.to(self.device)
                return parts.to(self.device), rows[0].to(self.device)  # waits: to_device

            def _loss(self, rows):
                return rows[0].to(self.device)

        class Layer(nn.Module):
            def parts(self, rows):
                return rows[0].to(self.device)
    """,
    "batches that an iterator is asked for, as Python 2 did": """
        def train(net, train_loader, steps, device):
            batches = iter(train_loader)
            for step in range(steps):
                try:
                    x, y = batches.next()
                except StopIteration:
                    batches = iter(train_loader)
                    x, y = batches.__next__()
                loss = net(x.to(device), y.to(device))  # waits: to_device
                loss.backward()
            return steps.next().to(device)

        def of_a_loader(net, rows, device):
            batches = iter(torch.utils.data.DataLoader(rows))
            for step in range(100):
                x, y = batches.next()
                net(x.to(device)).mean().backward()  # waits: to_device
    """,
    "a device that is the CPU first, and another where there is one": """
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda:0")
        where = "cpu"
        if torch.cuda.is_available():
            where = "cuda"
        host = torch.device("cpu")

        def step(state):
            state = torch.FloatTensor(state).to(device)  # waits: created_on_host
            other = torch.zeros(3).to(where)  # waits: created_on_host
            return state, other, torch.zeros(3).to(host)
    """,
    "what a helper is given by name, or has unpacked, and goes through": """
        class Trainer:
            def process(self, **kwargs):
                found = {}
                for name, value in kwargs.items():
                    if isinstance(value, dict):
                        value = {k: v.cuda(self.gpu) for k, v in value.items()}  # waits: to_device
                    else:
                        value = value.cuda(self.gpu)  # waits: to_device
                    found[name] = value
                return found

            def parse(self, given):
                inputs, scale = given
                return [None if x is None else x.to(self.device) for x in inputs], scale  # waits: to_device
    """,
    "a data set that is sent whole": """
        from torch.utils.data import Dataset

        class Choices(Dataset):
            def __getitem__(self, i):
                return self.x[i].to(self.device)

            def applied(self, function):
                for key, value in self.__dict__.items():
                    if torch.is_tensor(value):
                        setattr(self, key, function(value))
                return self

            def to(self, device):
                return self.applied(lambda x: x.to(device))  # waits: to_device
    """,
    "parts of a batch that are sent, and take their own places": """
        from torch.utils.data import DataLoader

        def train(rows, gpu):
            for i, (images, _) in enumerate(DataLoader(rows)):
                images[0] = images[0].cuda(gpu, non_blocking=True)
                images[1] = images[2].cuda(gpu, non_blocking=True)  # waits: cpu
    """,
    "what is joined with something that is made on the host": """
        def step(batch_y, device, seen: torch.Tensor):
            zeros = torch.zeros([batch_y.shape[0], 3]).float()
            told = torch.cat([batch_y[:, :3], zeros], dim=1).to(device)  # waits: to_device
            return told, torch.cat([seen, seen]).to(device)
    """,
    "a device that a function names by a text which is filled in": """
        def dev():
            if torch.cuda.is_available():
                return torch.device(f"cuda")
            return torch.device("cpu")

        def forward_backward(batch):
            for i in range(0, batch.shape[0], 8):
                yield batch[i : i + 8].to(dev())  # waits: to_device
    """,
    "a triangle that is made on the host, wherever its maker is told to send it": """
        class CausalMask:
            def __init__(self, length, device="cpu"):
                self.mask = torch.triu(torch.ones(length, length), diagonal=1).to(device)  # waits: created_on_host
    """,
    "what is made like something of which nothing else is known": """
        class Targets(nn.Module):
            def forward(self, given):
                boxes = given[1]
                labels = torch.Tensor(3, 4).fill_(0).type_as(boxes)  # waits: to_device
                return labels.ne(-1).nonzero()  # waits: nonzero
    """,
    "rows that a pass of a loop picks and sends": """
        def fit(model, data, labels, weights, models, device):
            order = torch.randperm(len(data))
            for i in range(0, len(data), 32):
                x = data[i : i + 32].to(device)  # waits: to_device
                y = labels[order[i : i + 32]].to(device)  # waits: to_device
                model(x, y, models[i].to(device), weights[i].to(device))  # waits: to_device

        def render(rays, net, chunk=4096, device="cuda"):
            for i in range(rays.shape[0] // chunk):
                net(rays[i * chunk : (i + 1) * chunk].cuda())  # waits: to_device

        def one(rays, device):
            return rays[3:].to(device), rays[:].to(device)  # waits: to_device

        def forward_backward(self, batch, cond):
            for i in range(0, batch.shape[0], self.microbatch):
                micro = batch[i : i + self.microbatch].to(dist_util.dev())  # waits: to_device
                given = {k: v[i : i + 8].to(self.rank) for k, v in cond.items()}  # waits: to_device

        class Memory:
            def sample(self, idxs):
                return self.rows[idxs].to(self.device)  # waits: to_device
    """,
}


@pytest.mark.parametrize("code", SENT.values(), ids=SENT)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
