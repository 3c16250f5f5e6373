"""Where batches, losses and what is made beside them live in training steps: `# waits: op` marks every line that waits."""

import pytest
from tensors.marked import marks, waits

STEP = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x)

        device = "cuda"
        net = Net().to(device)  # waits: to_device
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        criterion = nn.MSELoss()
"""
CASES = {
    "batches of tensors that were sent to the device before": STEP
    + """
        from torch.utils.data import DataLoader, TensorDataset, random_split

        def loaders(x, y):
            held = TensorDataset(torch.randn(100, 4).to(device), torch.randn(100, 1, device=device))  # waits: created_on_host
            train, test = random_split(held, [90, 10])
            return DataLoader(train, batch_size=10), DataLoader(dataset=held)

        def train(loader, total):
            for x, y in loader:
                x = x.to(device)
                loss = criterion(net(x), y)
                loss.backward()
                optimizer.step()
                total += loss.item()  # waits: item
            return total

        train(loaders(1, 2)[0], 0)
    """,
    "batches of tensors that stay on the host": STEP
    + """
        from torch.utils.data import DataLoader, TensorDataset

        for x, y in DataLoader(TensorDataset(torch.randn(100, 4), torch.randn(100, 1)), batch_size=10):
            loss = criterion(net(x.to(device)), y.to(device))  # waits: to_device
            loss.backward()
            loss.item()  # waits: item
    """,
    "a module on the device that sends nothing there gives what lies there": STEP
    + """
        from torch.utils.data import DataLoader

        for x, y in DataLoader(put_on_device()):
            loss = criterion(net(x), y)
            loss.backward()
            loss.item()  # waits: item
    """,
    "a loader of one's own": """
        from tqdm import tqdm

        device = torch.device("cuda")

        class Batches:
            def __iter__(self):
                for i in range(10):
                    x = torch.zeros(4, 3)
                    yield x, torch.full((4,), i)

        def pairs(n):
            for i in range(n):
                yield {"x": torch.zeros(4), "y": torch.zeros(4, device=device)}

        def train(model, batches, optimizer):
            for batch in tqdm(batches):
                x = batch[0].to(device)  # waits: to_device
                y, z = map(lambda each: each.to(device), batch)  # waits: to_device
                model(x).sum().backward()
                optimizer.step()
            for pair in pairs(3):
                x, y = pair["x"].to(device), pair["y"].to(device)  # waits: to_device

        train(model, Batches(), optimizer)
    """,
    "of the shape of another, where it was": """
        def ranks(x: torch.Tensor, n, device="cuda"):
            first = torch.LongTensor(range(n)).unsqueeze(0).expand_as(x).to("cuda")  # waits: to_device
            return first, torch.zeros(n).view_as(x).cuda()  # waits: to_device
    """,
    "tensors of the host put among those for which a device was named": """
        def build(shape, device):
            gain = torch.ones(7, device=device)
            gain[2:6] = torch.tensor(shape)[[3, 2, 3, 2]]  # waits: to_device
            gain[0] = torch.tensor(1.0)  # waits: number_write
            gain[:1] = torch.tensor(1.0)
            gain[:2] = torch.ones(2, device=device)
            here = torch.ones(7)
            here[2:6] = torch.tensor(shape)
            return gain, here
    """,
    "rows of positions that were made on the host": """
        def pick(image, h: int):
            image = torch.Tensor(image).to("cuda")  # waits: created_on_host
            at = torch.reshape(torch.stack(torch.meshgrid(torch.linspace(0, 1, h), torch.linspace(0, 1, h)), -1), [-1, 2])
            at = at[np.random.choice(h, size=[8])].long()
            return image[at[:, 0], at[:, 1]]  # waits: index_host
    """,
    "bounds": """
        def clip(x: torch.Tensor, gain: torch.Tensor, n: int):
            most = torch.tensor(3, device="cuda")  # waits: tensor_literal
            x.clamp_(0, most - 1)  # waits: scalar_slot
            x = torch.clamp(x, min=0, max=gain[0])  # waits: scalar_slot
            x = x.clip(most, n)  # waits: scalar_slot
            x = x.clamp(min=most).clamp(most, most + 1).clamp_max(most).clamp(None, most)
            return x.clamp(0, n).clamp(0, torch.tensor(1.0))
    """,
    "formatted one by one": """
        def told(n, losses: torch.Tensor, names):
            print("%10s" * n % (*names,), "%10.4g" * n % (*losses,))  # waits: format
            return "%s %s" % (3, 4)
    """,
    "one row that numpy has drawn, or several": """
        import numpy as np

        def rows(poses: torch.Tensor, n: int, among):
            one = poses[np.random.choice(among), :3], poses[np.random.randint(0, n)], poses[np.random.choice(n, size=None)]
            return one, poses[np.random.choice(n, 3)], poses[np.random.randint(0, n, 4)]  # waits: index_list
    """,
    "the loss of sequences that are aligned": """
        def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, lengths: list[int], widths: list[int]):
            criterion = nn.CTCLoss(blank=28).to("cuda")
            loss = criterion(model(x), y, lengths, widths)  # waits: library_read
            loss.backward()
            return loss.item()  # waits: item
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    found = {each for each in waits(code, 2) if each[1] != "ocl_fallback"}
    assert found == marks(code)


LOST = """
        model = Trained()
        for x, y in torch.utils.data.DataLoader(held):
            loss = criterion(model(x), y)
            scaler.scale(loss / 2).backward()
            print(loss.item())  # waits: item
"""


def test_what_was_passed_back_is_never_silent() -> None:
    assert waits(LOST) >= marks(LOST)
