"""Training steps over continuiti 0.2.0: each of its operators by its trainer and by hand, on sines and on noise of a plane."""

from continuiti.benchmarks.sine import SineBenchmark
from continuiti.data import OperatorDataset
from continuiti.data.selfsupervised import SelfSupervisedOperatorDataset
from continuiti.data.utility import split
from continuiti.operators import (
    BelNet,
    ConvolutionalNeuralNetwork,
    DeepCatOperator,
    DeepNeuralOperator,
    DeepONet,
    FourierNeuralOperator,
    NeuralOperator,
)
from continuiti.operators.fourierlayer import FourierLayer1d
from continuiti.operators.integralkernel import NaiveIntegralKernel, NeuralNetworkKernel
from continuiti.operators.losses import MSELoss
from continuiti.operators.shape import OperatorShapes, TensorShape
from continuiti.pde import PhysicsInformedLoss, div, grad
from continuiti.trainer import Trainer
from continuiti.trainer.callbacks import Callback, LearningCurve
from continuiti.trainer.criterion import TrainingLossCriterion
from continuiti.transforms import Compose, Normalize, QuantileScaler
from torch.utils.data import DataLoader

SEEN, MANY, BATCH = 16, 128, 8


def sines(uniform=False):
    return SineBenchmark(SEEN, SEEN, MANY, 8, uniform).train_dataset


def plane(inner=1, outer=1, size=8, aim=8, **more):
    """Noise at the places of a square, and what it is mapped onto."""

    def grid(n):
        return torch.stack(torch.meshgrid(torch.linspace(-1, 1, n), torch.linspace(-1, 1, n), indexing="ij"))

    x = grid(size).expand(MANY, -1, -1, -1).contiguous()
    y = grid(aim).expand(MANY, -1, -1, -1).contiguous()
    return OperatorDataset(x, torch.randn(MANY, inner, size, size), y, torch.randn(MANY, outer, aim, aim), **more)


def kernels(shapes, width=4, **more):
    """Integrals of kernels that are small networks, in layers."""
    hidden = TensorShape(width, shapes.u.size)
    inner = OperatorShapes(shapes.x, hidden, shapes.x, hidden)
    last = OperatorShapes(shapes.x, hidden, shapes.y, TensorShape(width, shapes.v.size))
    layers = [NaiveIntegralKernel(NeuralNetworkKernel(each, 8, 2)) for each in (inner, last)]
    return NeuralOperator(shapes, layers)


def fitted(operator, data=sines, loss=None, optimizer=None, **more):
    """A step is a batch of the trainer's `fit`."""

    def make():
        dataset = data()
        net = operator(getattr(dataset, "dataset", dataset).shapes)
        held = optimizer(net.parameters()) if optimizer else None
        trainer = Trainer(net, held, loss_fn=loss, device=D)
        given = {
            name: value(net) if name == "lr_scheduler" and callable(value) else value for name, value in more.items()
        }
        return loop(lambda: trainer.fit(dataset, epochs=3, batch_size=BATCH, **given))

    return make


STEPS["deeponet"] = fitted(DeepONet)
STEPS["deeponet_uniform"] = fitted(DeepONet, lambda: sines(True))
STEPS["deeponet_of_own_networks"] = fitted(
    lambda shapes: DeepONet(
        shapes,
        branch_network=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SEEN, 8)),
        trunk_network=torch.nn.Linear(1, 8),
    )
)
STEPS["deeponet_plane"] = fitted(DeepONet, plane)
STEPS["belnet"] = fitted(BelNet)
STEPS["belnet_uniform"] = fitted(BelNet, lambda: sines(True))
STEPS["dno"] = fitted(DeepNeuralOperator)
STEPS["dno_plane"] = fitted(lambda shapes: DeepNeuralOperator(shapes, width=8, depth=2), lambda: plane(2, 3, 4, 4))
STEPS["deepcat"] = fitted(DeepCatOperator)
STEPS["deepcat_plane"] = fitted(lambda shapes: DeepCatOperator(shapes, branch_cat_ratio=0.25), plane)
STEPS["cnn"] = fitted(ConvolutionalNeuralNetwork)
STEPS["cnn_plane"] = fitted(lambda shapes: ConvolutionalNeuralNetwork(shapes, width=8, act=torch.nn.ReLU()), plane)
STEPS["fno"] = fitted(FourierNeuralOperator)
STEPS["fno_of_modes"] = fitted(lambda shapes: FourierNeuralOperator(shapes, depth=2, width=4, num_modes=(5,)))
STEPS["fno_plane"] = fitted(FourierNeuralOperator, plane)
STEPS["fno_upsampling"] = fitted(
    lambda shapes: FourierNeuralOperator(shapes, width=4, num_modes=(4, 4)), lambda: plane(2, 1, 8, 16)
)
STEPS["fno_downsampling"] = fitted(lambda shapes: FourierNeuralOperator(shapes, width=4), lambda: plane(2, 1, 9, 6))
STEPS["fourier_layer"] = fitted(FourierLayer1d)
STEPS["kernels"] = fitted(kernels)
STEPS["kernels_plane"] = fitted(kernels, lambda: plane(1, 1, 4, 4))
STEPS["one_kernel"] = fitted(lambda shapes: NaiveIntegralKernel(NeuralNetworkKernel(shapes, 8, 2)))
STEPS["self_supervised"] = fitted(
    DeepONet, lambda: SelfSupervisedOperatorDataset(torch.rand(16, 1, 8), torch.randn(16, 1, 8))
)
STEPS["of_a_part"] = fitted(DeepONet, lambda: split(sines(), 0.75, seed=1)[0])
STEPS["lbfgs"] = fitted(DeepONet, optimizer=lambda params: torch.optim.LBFGS(params, max_iter=3))
STEPS["sgd_without_schedule"] = fitted(
    DeepONet, optimizer=lambda params: torch.optim.SGD(params, 1e-2), lr_scheduler=False
)
STEPS["to_a_threshold"] = fitted(
    DeepONet, criterion=TrainingLossCriterion(1e-6), callbacks=[LearningCurve()], shuffle=False
)


class Losses(Callback):
    """Keeps the loss of each step."""

    def __init__(self):
        self.held = []

    def step(self, logs):
        self.held.append(logs.loss_train)


STEPS["losses_kept"] = fitted(BelNet, callbacks=[Losses()])


def normalized():
    held = sines()
    return OperatorDataset(
        held.x, held.u, held.y, held.v, u_transform=Normalize(held.u.mean(0), held.u.std(0)), v_transform=Normalize(held.v.mean(0), held.v.std(0))
    )  # fmt: skip


def physics(loss):
    """As the physics-informed example trains: derivatives of the output by the places."""

    def make():
        data = sines()
        data.y.requires_grad_(True)
        data.x.requires_grad_(True)
        return fitted(DeepONet, lambda: data, PhysicsInformedLoss(loss))()

    return make


def slope(x, u, y, v):
    return torch.nn.functional.mse_loss(torch.autograd.grad(v.sum(), y, create_graph=True)[0], u)


STEPS["physics_of_a_slope"] = physics(slope)


def by_hand(operator, data=sines, loss=None, change=None):
    """A step of a loop that is written out: a batch of a loader, moved, the loss, the optimizer."""

    def make():
        dataset = data()
        net, loss_fn = operator(dataset.shapes).to(D), loss or MSELoss()
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        moved = change().to(D) if change else None
        batches = (each for _ in range(99) for each in DataLoader(dataset, BATCH, shuffle=True))

        def go():
            x, u, y, v = (each.to(D) for each in next(batches))
            if moved is not None:
                u, v = moved(u), moved(v)
            optimizer.zero_grad()
            loss_fn(net, x, u, y, v).backward()
            optimizer.step()

        return go

    return make


STEPS["hand_of_normalized"] = by_hand(DeepONet, normalized)
STEPS["hand_normalized_on_the_device"] = by_hand(DeepONet, change=lambda: Normalize(torch.zeros(1), torch.ones(1)))
STEPS["hand_composed_on_the_device"] = by_hand(
    DeepONet,
    change=lambda: Compose([Normalize(torch.zeros(1), torch.ones(1)), Normalize(torch.ones(1), torch.ones(1))]),
)
STEPS["hand_of_quantiles_on_the_device"] = by_hand(
    DeepONet, change=lambda: QuantileScaler(torch.randn(200, SEEN), n_quantile_intervals=20)
)


def quantiles():
    held = sines()
    return OperatorDataset(
        held.x, held.u, held.y, held.v, u_transform=QuantileScaler(held.u.reshape(-1, SEEN), n_quantile_intervals=20)
    )


STEPS["of_quantiles"] = by_hand(DeepONet, quantiles)


def pulled(op, x, u, y, v):
    """The gradient of what is predicted follows another function."""
    y = y.requires_grad_(True)
    return (grad(lambda z: op(x, u, z))(y) - v).pow(2).mean()


def flowing(op, x, u, y, v):
    """As `pulled`, of its divergence."""
    y = y.requires_grad_(True)
    return (div(lambda z: op(x, u, z))(y) - v).pow(2).mean()


for name, loss in (("gradient", pulled), ("divergence", flowing)):
    STEPS[f"hand_of_a_{name}"] = by_hand(DeepONet, loss=loss)
    STEPS[f"hand_of_a_{name}_belnet"] = by_hand(BelNet, loss=loss)
    STEPS[f"hand_of_a_{name}_deepcat"] = by_hand(DeepCatOperator, loss=loss)
