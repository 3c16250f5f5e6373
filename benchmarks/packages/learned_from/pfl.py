"""Training steps over pfl 0.6.0: batches of users, and rounds of cohorts whose updates are clipped, noised and added up."""

from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams, PersonalizedNNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.algorithm.fedprox import FedProx, FedProxParams
from pfl.algorithm.reptile import Reptile
from pfl.algorithm.scaffold import SCAFFOLD, SCAFFOLDParams
from pfl.data import FederatedDataset
from pfl.data.dataset import Dataset
from pfl.data.pytorch import PyTorchDataDataset, PyTorchTensorDataset
from pfl.data.user_state import InMemoryUserStateStorage
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Weighted
from pfl.model.ema import CentralExponentialMovingAverage
from pfl.model.pytorch import PyTorchModel
from pfl.privacy import (
    CentrallyAppliedPrivacyMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    NormClippingOnly,
)
from pfl.privacy.adaptive_clipping import AdaptiveClippingGaussianMechanism
from pfl.privacy.approximate_mechanism import GaussianApproximatedPrivacyMechanism
from torch import nn
from torch.nn import functional as F

made_by = torch.Generator
torch.Generator = lambda device=None: made_by()  # a torch without CUDA has none of the device's
USERS, ROWS, COHORT, BATCH = 6, 8, 3, 4
BATCHES = COHORT * ROWS // BATCH  # of a round


class Net(nn.Module):
    """Of the docs: a network with its loss and its metrics."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.body(x)

    def loss(self, x, y, eval=False):
        self.eval() if eval else self.train()
        return F.cross_entropy(self(x), y.long().reshape(-1))

    @torch.no_grad()
    def metrics(self, x, y, eval=True):
        self.eval()
        y = y.long().reshape(-1)
        right = (self(x).argmax(1) == y).float()
        return {
            "loss": Weighted(F.cross_entropy(self(x), y, reduction="sum").item(), len(y)),
            "accuracy": Weighted(right.sum().item(), len(y)),
        }


def user(kind):
    x, y = np.random.rand(ROWS, 12).astype(np.float32), np.random.randint(0, 4, (ROWS, 1)).astype(np.int64)
    if kind == "tensors":
        return PyTorchTensorDataset((torch.from_numpy(x), torch.from_numpy(y)))
    if kind == "loaded":
        return PyTorchDataDataset(torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)))
    if kind == "named":
        return PyTorchTensorDataset({"x": torch.from_numpy(x), "y": torch.from_numpy(y)})
    return Dataset((x, y), user_id="0")


def model(central=torch.optim.SGD, local=torch.optim.SGD, **more):
    net = Net()
    return PyTorchModel(
        model=net, local_optimizer_create=local, central_optimizer=central(net.parameters(), lr=0.1), **more
    )


def trained(**more):
    return NNTrainHyperParams(**{"local_learning_rate": 0.05, "local_batch_size": BATCH, "local_num_epochs": 1, **more})


def rounds(
    algorithm=FederatedAveraging,
    params=NNAlgorithmParams,
    kind="arrays",
    after=tuple,
    made=model,
    callbacks=None,
    per=BATCHES + 1,
    local=None,
    **more,
):
    """A step is a round: a cohort of users learns, its updates are brought together."""

    def make():
        held = made()
        people = {f"{n}": user(kind) for n in range(USERS)}
        for name, each in people.items():
            each._user_id = name
        names = iter([f"{n % USERS}" for n in range(10000)])
        data = FederatedDataset(lambda name: people[name], lambda: next(names))
        backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=list(after()))
        given = params(
            central_num_iterations=8, evaluation_frequency=100, train_cohort_size=COHORT, val_cohort_size=None,
            **{name: value() if callable(value) else value for name, value in more.items()},
        )  # fmt: skip
        return loop(
            lambda: algorithm().run(
                given,
                backend,
                held,
                trained(**(local or {})),
                NNEvalHyperParams(local_batch_size=BATCH),
                callbacks=callbacks(held) if callbacks else [],
            ),
            optimizers=per,
        )

    return make


def central(mechanism):
    return lambda: [CentrallyAppliedPrivacyMechanism(mechanism())]


for kind in ("arrays", "tensors", "named", "loaded"):
    STEPS[f"rounds_of_{kind}"] = rounds(kind=kind)
STEPS["rounds_adam"] = rounds(made=lambda: model(torch.optim.Adam))
STEPS["rounds_local_adam"] = rounds(made=lambda: model(local=torch.optim.Adam))
STEPS["rounds_clipped_locally"] = rounds(local={"local_max_grad_norm": 1.0})
STEPS["rounds_of_two_epochs"] = rounds(local={"local_num_epochs": 2}, per=2 * BATCHES + 1)
STEPS["rounds_of_steps"] = rounds(local={"local_num_epochs": None, "local_num_steps": 2})
STEPS["rounds_accumulated"] = rounds(local={"grad_accumulation_steps": 2}, per=COHORT + 1)
STEPS["rounds_in_bfloat16"] = rounds(made=lambda: model(amp_dtype=torch.bfloat16))
STEPS["rounds_scaled"] = rounds(made=lambda: model(amp_dtype=torch.float16, grad_scaling=True))
STEPS["rounds_gaussian"] = rounds(after=central(lambda: GaussianMechanism(0.4, 0.1)))
STEPS["rounds_gaussian_of_each_user"] = rounds(after=lambda: [GaussianMechanism(0.4, 0.1)])
STEPS["rounds_gaussian_approximated"] = rounds(
    after=lambda: [GaussianApproximatedPrivacyMechanism(GaussianMechanism(0.4, 0.1))]
)
STEPS["rounds_laplace"] = rounds(after=central(lambda: LaplaceMechanism(0.4, 1.0)))
STEPS["rounds_clipped"] = rounds(after=lambda: [NormClippingOnly(2, 0.1)])
STEPS["rounds_clipped_by_largest"] = rounds(after=lambda: [NormClippingOnly(np.inf, 0.01)])
STEPS["rounds_adaptive"] = rounds(
    after=lambda: [AdaptiveClippingGaussianMechanism(lambda bound: GaussianMechanism(bound, 0.1), 0.4, 0.5, 0.5)]
)
STEPS["proximal"] = rounds(FedProx, FedProxParams, mu=0.1)
STEPS["proximal_clipped"] = rounds(FedProx, FedProxParams, mu=0.1, local={"local_max_grad_norm": 1.0})
STEPS["scaffold"] = rounds(
    SCAFFOLD,
    SCAFFOLDParams,
    population=USERS,
    use_gradient_as_control_variate=False,
    user_state_storage=InMemoryUserStateStorage,
)
STEPS["scaffold_by_gradients"] = rounds(
    SCAFFOLD,
    SCAFFOLDParams,
    population=USERS,
    use_gradient_as_control_variate=True,
    user_state_storage=InMemoryUserStateStorage,
    per=2 * BATCHES + 1,
)
STEPS["reptile"] = rounds(
    Reptile, PersonalizedNNAlgorithmParams, val_split_fraction=0.5, min_train_size=1, min_val_size=1, per=COHORT + 1
)


@step
def rounds_averaged():
    """An average of the model is kept after each round."""

    class Kept:
        def __init__(self, held):
            self.ema = CentralExponentialMovingAverage(held, 0.9)

        def on_train_begin(self, *, model):
            from pfl.metrics import Metrics

            return Metrics()

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            from pfl.metrics import Metrics

            self.ema.update()
            return False, Metrics()

        def on_train_end(self, *, model):
            pass

    return rounds(callbacks=lambda held: [Kept(held)])()


def users(kind="arrays", made=model, **more):
    """A step is a batch of one user's, who has many."""

    def make():
        held, x = made(), np.random.rand(400, 12).astype(np.float32)
        data = Dataset((x, np.random.randint(0, 4, (400, 1)).astype(np.int64)))
        from pfl.internal.bridge import FrameworkBridgeFactory as bridges

        return loop(lambda: bridges.sgd_bridge().do_sgd(held, data, trained(**more)))

    return make


STEPS["user"] = users()
STEPS["user_clipped"] = users(local_max_grad_norm=1.0)
STEPS["user_scaled"] = users(made=lambda: model(amp_dtype=torch.float16, grad_scaling=True), local_max_grad_norm=1.0)
