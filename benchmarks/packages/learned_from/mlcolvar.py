"""Training steps over mlcolvar 1.3.1: collective variables of molecules, by the `training_step` that Lightning would call."""

from unittest import mock

from mlcolvar.core.loss import FisherDiscriminantLoss, TDALoss
from mlcolvar.core.loss.utils.smart_derivatives import SmartDerivatives
from mlcolvar.core.transform import PairwiseDistances
from mlcolvar.cvs import AutoEncoderCV, DeepLDA, DeepTDA, DeepTICA, RegressionCV, VariationalAutoEncoderCV
from mlcolvar.cvs.committor import Committor
from mlcolvar.cvs.committor.utils import initialize_committor_masses
from mlcolvar.cvs.generator import Generator
from mlcolvar.cvs.multitask import MultiTaskCV
from mlcolvar.data import DictDataset, DictModule
from mlcolvar.utils.timelagged import create_timelagged_dataset

ROWS, WIDTH = 64, 6


def moved(batch):
    return {name: moved(each) if isinstance(each, dict) else each.to(D) for name, each in batch.items()}


def stepped(make_model, make_data, batch_size=32):
    """A step is a batch of the package's loader, moved to the device as Lightning does, and the model's step and optimizer."""

    def make():
        data = make_data()
        module = DictModule(data, lengths=[1.0], batch_size=batch_size, random_split=False, shuffle=True)
        module.setup()
        model = make_model(data)
        model.trainer = mock.MagicMock(datamodule=module)
        for name in ("norm_in", "norm_out"):
            if getattr(model, name, None) is not None:
                model.initialize_transforms(module)
                break
        model = model.to(D).train()
        model.log_dict = lambda *_, **__: None
        optimizer = model.configure_optimizers()

        def batches():
            while True:
                yield from module.train_dataloader()

        each = batches()

        def go():
            loss = model.training_step(moved(next(each)), 0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return go

    return make


def rows(states=0, weights=False, target=False):
    def make():
        data = {"data": torch.randn(ROWS, WIDTH)}
        if states:
            data["labels"] = (torch.arange(ROWS) % states).float()
        if weights:
            data["weights"] = torch.rand(ROWS)
        if target:
            data["target"] = torch.randn(ROWS, 2)
        return DictDataset(data)

    return make


def lagged():
    return create_timelagged_dataset(torch.randn(ROWS, WIDTH).cumsum(0), lag_time=2)


LAYERS = [WIDTH, 12, 2]
THREE_CENTERS = [[-3.0, 0.0], [3.0, 0.0], [0.0, 3.0]]
STEPS["auto_encoder"] = stepped(lambda _: AutoEncoderCV(LAYERS), rows())
STEPS["auto_encoder_weighted"] = stepped(lambda _: AutoEncoderCV(LAYERS), rows(weights=True))
STEPS["variational"] = stepped(lambda _: VariationalAutoEncoderCV(2, [WIDTH, 12], beta=0.5), rows())
STEPS["variational_weighted"] = stepped(lambda _: VariationalAutoEncoderCV(2, [WIDTH, 12]), rows(weights=True))
STEPS["regression"] = stepped(lambda _: RegressionCV(LAYERS), rows(target=True))
STEPS["deep_lda"] = stepped(lambda _: DeepLDA(LAYERS, n_states=2), rows(2))
STEPS["deep_lda_of_three"] = stepped(lambda _: DeepLDA(LAYERS, n_states=3), rows(3))
STEPS["deep_tda"] = stepped(lambda _: DeepTDA(2, 1, [-3.0, 3.0], [0.2, 0.2], [WIDTH, 12, 1]), rows(2))
STEPS["deep_tda_of_three"] = stepped(lambda _: DeepTDA(3, 2, THREE_CENTERS, [[0.2, 0.2]] * 3, LAYERS), rows(3))
STEPS["deep_tica"] = stepped(lambda _: DeepTICA(LAYERS, n_cvs=1), lagged)


@step
def deep_tica_regularized():
    def model(_):
        tica = DeepTICA(LAYERS, options={"nn": {"activation": "tanh", "dropout": [0.1, None]}})
        tica.set_regularization(1e-4)
        return tica

    return stepped(model, lagged)()


def several(main, losses, data):
    return stepped(
        lambda _: MultiTaskCV(main_cv=main(), auxiliary_loss_fns=losses(), loss_coefficients=[0.1]),
        lambda: [rows()(), data()],
    )


STEPS["auto_encoder_and_tda"] = several(
    lambda: AutoEncoderCV([WIDTH, 12, 1], options={"norm_in": None}),
    lambda: [TDALoss(2, [[-3.0], [3.0]], [[0.2], [0.2]])],
    rows(2),
)
STEPS["auto_encoder_and_fisher"] = several(
    lambda: AutoEncoderCV(LAYERS, options={"norm_in": None}), lambda: [FisherDiscriminantLoss(n_states=2)], rows(2)
)

ATOMS = 4


def boxes(states=4, atoms=ATOMS):
    """Positions of atoms, in which state they are, and what they weigh."""
    positions = torch.rand(ROWS, 3 * atoms) * 2
    return DictDataset(
        {"data": positions, "labels": (torch.arange(ROWS) % states).float(), "weights": torch.ones(ROWS)}
    )


def committor(preprocessed=False, **more):
    masses = initialize_committor_masses(atom_types=list(range(ATOMS)), masses=[12.0, 12.0, 16.0, 1.0])

    def model(_):
        pairs = ATOMS * (ATOMS - 1) // 2
        layers = [pairs if preprocessed else 3 * ATOMS, 8, 1]
        found = Committor(layers=layers, atomic_masses=masses.to(D), alpha=0.1, **more)
        if preprocessed:
            found.preprocessing = PairwiseDistances(ATOMS, PBC=True, cell=[2.0, 2.0, 2.0], scaled_coords=False)
        return found

    return stepped(model, boxes)


STEPS["committor"] = committor()
STEPS["committor_of_all_states"] = committor(separate_boundary_dataset=False)
STEPS["committor_of_distances"] = committor(preprocessed=True)
STEPS["committor_regularized"] = committor(z_regularization=1.0, z_threshold=1.0, log_var=True)


def derived(kind):
    """Descriptors are computed once, and the derivatives of them that the loss needs."""

    def make():
        raw = boxes(1)
        distances = PairwiseDistances(ATOMS, PBC=False, cell=[1.0, 1.0, 1.0], scaled_coords=False)
        smart = SmartDerivatives()
        data = smart.setup(dataset=raw, descriptor_function=distances, n_atoms=ATOMS, separate_boundary_dataset=False)
        masses = torch.tensor([12.0, 12.0, 16.0, 1.0])
        pairs = ATOMS * (ATOMS - 1) // 2
        if kind == "generator":
            options = {"nn": {"activation": "tanh"}, "optimizer": {"lr": 1e-3}}
            model = Generator(
                r=2,
                layers=[pairs, 8, 1],
                eta=0.005,
                alpha=0.01,
                friction=(0.1 / masses).to(D),
                descriptors_derivatives=smart.to(D),
                options=options,
            )
        else:
            weights = initialize_committor_masses(atom_types=list(range(ATOMS)), masses=masses.tolist())
            model = Committor(
                layers=[pairs, 8, 1],
                atomic_masses=weights.to(D),
                alpha=0.1,
                separate_boundary_dataset=False,
                descriptors_derivatives=smart.to(D),
            )
        return stepped(lambda _: model, lambda: data)()

    return make


STEPS["generator_of_descriptors"] = derived("generator")
STEPS["committor_of_descriptors"] = derived("committor")


@step
def generator_of_positions():
    def model(_):
        options = {"nn": {"activation": "tanh"}, "optimizer": {"lr": 1e-3}}
        friction = 0.1 / torch.tensor([12.0, 12.0, 16.0, 1.0], device=D)
        found = Generator(r=2, layers=[6, 8, 1], eta=0.005, alpha=0.01, friction=friction, options=options)
        found.preprocessing = PairwiseDistances(ATOMS, PBC=False, cell=[1.0, 1.0, 1.0], scaled_coords=False)
        return found

    return stepped(model, lambda: boxes(1))()
