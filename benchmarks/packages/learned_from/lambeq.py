"""Training steps over lambeq 0.5.0: batches of its trainer, sentences as tensors and as circuits that are simulated."""

import tempfile

absent("spacy")

import lambeq
from lambeq import AtomicType, Dataset, PytorchModel, PytorchQuantumModel, PytorchTrainer
from lambeq.backend.grammar import Cup, Id, Word
from lambeq.backend.tensor import Dim
from torch import nn

N, S = AtomicType.NOUN, AtomicType.SENTENCE
WHO, DOES, WHAT = ("person", "woman", "man"), ("prepares", "bakes", "debugs"), ("sauce", "meal", "program")
torch.set_default_tensor_type = lambda kind: None  # as `whole` does


def whole(fit):
    """Where no other place is named, tensors lie on the device, as a trainer of a device has it."""

    def go():
        with torch.device(D):
            fit()

    return go


def sentence(who, does, what):
    """A diagram of a parser's: who does what."""
    held = Word(who, N) @ Word(does, N.r @ S @ N.l) @ Word(what, N)
    return held >> Cup(N, N.r) @ Id(S) @ Cup(N.l, N)


def parsed():
    return [sentence(who, does, what) for who in WHO for does in DOES for what in WHAT]


def read(reader):
    return lambda: reader.sentences2diagrams([f"{who} {does} {what}" for who in WHO for does in DOES for what in WHAT])


def right(shown, y):
    """Of the docs: how many are told rightly."""
    return torch.sum(torch.eq(torch.round(torch.sigmoid(shown)), y)) / len(y) / 2


def guessed(shown, y):
    return (shown.argmax(-1) == y.argmax(-1)).float().mean().item()


def trained(
    ansatz, diagrams=parsed, model=PytorchModel, loss=nn.BCEWithLogitsLoss, told=None, rows=4, size=2, fit=None, **more
):
    """A step is a batch of `fit`."""

    def make():
        made = [ansatz(each) for each in diagrams()]
        targets = [[float(at == row % size) for at in range(size)] for row in range(len(made))]
        held = model.from_diagrams(made)
        given = {"verbose": "suppress", "learning_rate": 0.01, "epochs": 3, "device": 0, **more}

        def run():
            trainer = PytorchTrainer(
                model=held, loss_function=loss(), evaluate_functions=told, log_dir=tempfile.mkdtemp(), **given
            )
            trainer.fit(Dataset(made, targets, rows), **(fit or {}))

        return loop(whole(run))

    return make


def tensors(kind=lambeq.TensorAnsatz, noun=2, whole=2, **more):
    return kind({N: Dim(noun), S: Dim(whole)}, **more)


STEPS["tensors"] = trained(tensors())
STEPS["tensors_told"] = trained(tensors(), told={"acc": right})
STEPS["tensors_told_in_numbers"] = trained(tensors(), told={"acc": guessed})
STEPS["tensors_wide"] = trained(tensors(noun=4, whole=3), loss=nn.CrossEntropyLoss, size=3)
STEPS["tensors_of_squares"] = trained(tensors(), loss=nn.MSELoss)
STEPS["tensors_logged"] = trained(tensors(), told={"acc": right}, use_tensorboard=True)
STEPS["tensors_in_words"] = trained(tensors(), verbose="text", told={"acc": right})
STEPS["tensors_in_a_bar"] = trained(tensors(), verbose="progress", told={"acc": right})
STEPS["tensors_in_order"] = trained(tensors(), seed=1, evaluate_on_train=False, told={"acc": right})
STEPS["tensors_told_by_steps"] = trained(
    tensors(), told={"acc": guessed}, fit={"eval_mode": "step", "eval_interval": 1, "full_timing_report": True}
)
STEPS["tensors_sgd"] = trained(tensors(), optimizer=torch.optim.SGD, optimizer_args={"momentum": 0.9, "nesterov": True})
STEPS["spiders"] = trained(tensors(lambeq.SpiderAnsatz, max_order=2))
STEPS["spiders_wide"] = trained(tensors(lambeq.SpiderAnsatz, 4, 2))
STEPS["products"] = trained(tensors(lambeq.MPSAnsatz, bond_dim=3))
STEPS["products_told"] = trained(tensors(lambeq.MPSAnsatz, 4, 2, bond_dim=2), told={"acc": right})
for name in ("cups_reader", "spiders_reader", "stairs_reader"):
    STEPS[f"read_by_{name}"] = trained(tensors(), read(getattr(lambeq, name)))
    STEPS[f"read_by_{name}_as_spiders"] = trained(tensors(lambeq.SpiderAnsatz), read(getattr(lambeq, name)))


class Headed(PytorchModel):
    """Of the docs: a network above the tensors."""

    def __init__(self, **more):
        super().__init__(**more)
        self.net = nn.Linear(2, 2)

    def forward(self, x):
        return self.net(self.get_diagram_output(x))


class Xor(PytorchModel):
    """Of the docs: pairs of sentences, whose tensors a network sees side by side."""

    def __init__(self, **more):
        super().__init__(**more)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        a, b = zip(*x, strict=True)
        return self.net(torch.cat([self.get_diagram_output(list(a)), self.get_diagram_output(list(b))], 1))


STEPS["headed"] = trained(tensors(), model=Headed, told={"acc": right})
STEPS["headed_spiders"] = trained(tensors(lambeq.SpiderAnsatz), model=Headed)


@step
def pairs():
    ansatz = tensors()
    made = [ansatz(each) for each in parsed()]
    held = Xor.from_diagrams(made)
    both = [(made[at], made[-at - 1]) for at in range(len(made))]
    targets = [[float(at % 2), float(at % 2 == 0)] for at in range(len(made))]

    def run():
        trainer = PytorchTrainer(
            held, nn.BCEWithLogitsLoss(), 3, learning_rate=0.01, device=0, verbose="suppress", log_dir=tempfile.mkdtemp(),
            evaluate_functions={"acc": right},
        )  # fmt: skip
        trainer.fit(Dataset(both, targets, 4))

    return loop(whole(run))


QUBITS = {N: 1, S: 1}


def crossed():
    """Of numbers of single precision, as the targets are."""
    return lambda shown, y: nn.functional.binary_cross_entropy(shown.float(), y)


def circuits(kind, layers=1, **more):
    return {"ansatz": kind(QUBITS, n_layers=layers, **more), "model": PytorchQuantumModel, "loss": crossed}


for name in ("IQPAnsatz", "Sim4Ansatz", "Sim9Ansatz", "Sim14Ansatz", "Sim15Ansatz", "StronglyEntanglingAnsatz"):
    STEPS[f"circuits_{name}"] = trained(**circuits(getattr(lambeq, name)))
STEPS["circuits_told"] = trained(**circuits(lambeq.IQPAnsatz), told={"acc": guessed})
STEPS["circuits_deep"] = trained(**circuits(lambeq.IQPAnsatz, 2, n_single_qubit_params=3))
STEPS["circuits_thrown_away"] = trained(**circuits(lambeq.IQPAnsatz, discard=True))
for name in ("cups_reader", "stairs_reader"):
    STEPS[f"circuits_read_by_{name}"] = trained(**circuits(lambeq.IQPAnsatz), diagrams=read(getattr(lambeq, name)))


def by_hand(ansatz, model=PytorchModel, loss=nn.BCEWithLogitsLoss):
    """A step of a loop that is written out."""

    def make():
        made = [ansatz(each) for each in parsed()]
        with torch.device(D):
            held = model.from_diagrams(made)
            held.initialise_weights()
        optimizer, held_loss = torch.optim.AdamW(held.parameters(), 0.01), loss()

        def go():
            at = np.random.permutation(len(made))[:4]
            y = torch.tensor([[float(i % 2), float(i % 2 == 0)] for i in at], device=D)
            optimizer.zero_grad()
            held_loss(held([made[i] for i in at]), y).backward()
            optimizer.step()

        return whole(go)

    return make


STEPS["hand_tensors"] = by_hand(tensors())
STEPS["hand_spiders"] = by_hand(tensors(lambeq.SpiderAnsatz))
STEPS["hand_circuits"] = by_hand(lambeq.IQPAnsatz(QUBITS, n_layers=1), PytorchQuantumModel, crossed)
