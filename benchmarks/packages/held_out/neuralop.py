"""Training steps over neuraloperator 2.0.0: batches of its trainers, and steps of each of its operators, losses and optimizers."""

absent("wandb torch_harmonics torch_scatter open3d")

import neuralop.losses as losses
from neuralop.data.transforms.data_processors import DefaultDataProcessor, IncrementalDataProcessor
from neuralop.data.transforms.normalizers import UnitGaussianNormalizer
from neuralop.layers.embeddings import GridEmbedding2D
from neuralop.losses.data_losses import HdivLoss, MSELoss, PointwiseQuantileLoss
from neuralop.models import CODANO, FNO, FNOGNO, GINO, TFNO, UNO, UQNO
from neuralop.training import AdamW, IncrementalFNOTrainer, Trainer
from torch.utils.data import DataLoader, Dataset

SIZE, BATCH, ROWS = 16, 4, 64


class Flow(Dataset):
    """Fields of so many channels, as the package's datasets are laid."""

    def __init__(self, channels=1, out=1, dims=2, rows=ROWS):
        self.x = torch.rand(rows, channels, *(SIZE,) * dims)
        self.y = torch.rand(rows, out, *(SIZE,) * dims)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return {"x": self.x[at], "y": self.y[at]}


def fno(kind=FNO, dims=2, channels=1, out=1, **more):
    return lambda: kind(n_modes=(8,) * dims, in_channels=channels, out_channels=out, hidden_channels=8, **more)


def scaled(data):
    """What is laid about zero on its way in and out."""
    x, y = UnitGaussianNormalizer(dim=[0, 2, 3]), UnitGaussianNormalizer(dim=[0, 2, 3])
    x.fit(data.x), y.fit(data.y)
    return DefaultDataProcessor(in_normalizer=x, out_normalizer=y)


def trained(
    net, loss=None, dims=2, channels=1, out=1, kind=Trainer, processor=None, optimizer=AdamW, scheduler=None, **more
):
    """A step is a batch of the trainer's, as in the examples."""

    def make():
        data = Flow(channels, out, dims)
        model = net()
        steps = optimizer(model.parameters(), lr=1e-3, weight_decay=1e-4)
        plan = (scheduler or (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=30)))(steps)
        held = kind(
            model=model, n_epochs=2, device=D, data_processor=processor(data) if processor else None, verbose=True, **more
        )  # fmt: skip
        compare = loss() if loss else losses.H1Loss(d=2)
        return loop(
            lambda: held.train(
                train_loader=DataLoader(data, batch_size=BATCH, shuffle=True),
                test_loaders={SIZE: DataLoader(data, batch_size=BATCH)},
                optimizer=steps,
                scheduler=plan,
                regularizer=False,
                training_loss=compare,
                eval_losses={"h1": compare},
            )
        )

    return make


STEPS["trained"] = trained(fno())
STEPS["trained_scaled"] = trained(fno(), processor=scaled)
STEPS["trained_tucker"] = trained(fno(TFNO))
STEPS["trained_by_lp"] = trained(fno(), lambda: losses.LpLoss(d=2, p=2))
STEPS["trained_mixed"] = trained(fno(), mixed_precision=True)
STEPS["trained_by_torch"] = trained(fno(), optimizer=torch.optim.AdamW)
STEPS["trained_to_plateau"] = trained(fno(), scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau)
STEPS["trained_incrementally"] = trained(
    fno(max_n_modes=(8, 8)),
    kind=IncrementalFNOTrainer,
    incremental_loss_gap=True,
    incremental_loss_eps=0.001,
    processor=lambda _: IncrementalDataProcessor(device=D, subsampling_rates=[2, 1], dataset_resolution=SIZE),
)
STEPS["trained_uno"] = trained(
    lambda: UNO(
        1, 1, 8, lifting_channels=16, projection_channels=16, n_layers=4, uno_out_channels=[8, 16, 16, 8],
        uno_n_modes=[[8, 8], [4, 4], [4, 4], [8, 8]], uno_scalings=[[1.0, 1.0], [0.5, 0.5], [1, 1], [2, 2]], channel_mlp_skip="linear",
    )
)  # fmt: skip


def learned(net, loss=None, dims=2, channels=1, out=1):
    """A step of an operator's, of fields that lie on the device."""

    def make():
        x, y = (torch.rand(BATCH, c, *(SIZE,) * dims, device=D) for c in (channels, out))
        compare = loss() if loss else losses.LpLoss(d=dims)
        return train(net(), lambda net: compare(net(x), y))

    return make


KINDS = {
    "line": {"dims": 1}, "volume": {"dims": 3}, "grouped": {"norm": "group_norm"}, "instances": {"norm": "instance_norm"},
    "padded": {"domain_padding": 0.2}, "separable": {"separable": True},
    "preactivated": {"preactivation": True}, "cp": {"factorization": "CP", "rank": 0.2}, "tt": {"factorization": "TT", "rank": 0.2},
    "reconstructed": {"factorization": "Tucker", "rank": 0.2, "implementation": "reconstructed"}, "scaled": {"resolution_scaling_factor": [1, 0.5, 2, 1]},
    "dropped": {"channel_mlp_dropout": 0.2}, "ungrounded": {"positional_embedding": None},
    "gated": {"fno_skip": "soft-gating"}, "placed": {"positional_embedding": GridEmbedding2D(in_channels=1)},
}  # fmt: skip
for name, more in KINDS.items():
    STEPS[f"fno_{name}"] = learned(fno(**more), dims=more.get("dims", 2))
COMPARED = {
    "h1": lambda: losses.H1Loss(d=2), "lp_mean": lambda: losses.LpLoss(d=2, p=1, reduction="mean"), "mse": MSELoss,
    "quantile": lambda: PointwiseQuantileLoss(0.1), "h1_of_edges": lambda: losses.H1Loss(d=2, periodic_in_x=False, periodic_in_y=False),
}  # fmt: skip
for name, loss in COMPARED.items():
    STEPS[f"compared_{name}"] = learned(fno(), loss)
STEPS["compared_hdiv"] = learned(fno(channels=2, out=2), lambda: HdivLoss(d=2), channels=2, out=2)
STEPS["compared_h1_volumes"] = learned(fno(dims=3), lambda: losses.H1Loss(d=3), dims=3)


def burgers(method):
    def make():
        x = torch.rand(BATCH, 1, SIZE, SIZE, device=D)
        equation, start = losses.BurgersEqnLoss(visc=0.01, method=method), losses.ICLoss()
        y = torch.rand(BATCH, 1, SIZE, SIZE, device=D)
        weighed = losses.Relobralo(num_losses=3) if method == "relobralo" else None

        def loss(net):
            out = net(x)
            return losses.LpLoss(d=2)(out, y) + equation(out) + start(out, x)

        return train(fno()(), loss)

    return make


STEPS["burgers"] = burgers("fdm")


def balanced(kind):
    """Losses whose weights follow how each goes down."""

    def make():
        x, y = torch.rand(BATCH, 1, SIZE, SIZE, device=D), torch.rand(BATCH, 1, SIZE, SIZE, device=D)
        model = fno()()
        weigh = kind(params=model.parameters(), num_losses=2)
        said = {"step": 0}

        def loss(net):
            out = net(x)
            parts = {"data": losses.LpLoss(d=2)(out, y), "edge": losses.H1Loss(d=2)(out, y)}
            said["step"] += 1
            return weigh(parts, said["step"])[0]

        return train(model, loss)

    return make


STEPS["balanced_relobralo"] = balanced(losses.Relobralo)
STEPS["balanced_softadapt"] = balanced(losses.SoftAdapt)


@step
def codano():
    model = CODANO(
        output_variable_codimension=1, hidden_variable_codimension=4, lifting_channels=8, projection_channels=8, n_layers=2,
        n_heads=[2, 2], n_modes=[[8, 8]] * 2, attention_scaling_factors=[0.5, 0.5], per_layer_scaling_factors=[[1, 1]] * 2,
        variable_ids=["a", "b"], use_positional_encoding=True, positional_encoding_dim=4, positional_encoding_modes=[8, 8],
    )  # fmt: skip
    x, y = torch.rand(2, 2, SIZE, SIZE, device=D), torch.rand(2, 2, SIZE, SIZE, device=D)
    return train(model, lambda net: losses.LpLoss(d=2)(net(x, None, ["a", "b"]), y))


@step
def uqno():
    """Of the example: a second network learns how far the first is off."""
    base, rest = fno()(), fno()()
    model = UQNO(base_model=base, residual_model=rest)
    x, y = torch.rand(BATCH, 1, SIZE, SIZE, device=D), torch.rand(BATCH, 1, SIZE, SIZE, device=D)
    loss = PointwiseQuantileLoss(0.1)

    def of(net):
        solution, width = net(x)
        return loss(width, (y - solution).abs())

    return train(model, of)


def points(so_many, dims):
    return torch.rand(so_many, dims, device=D)


def latent(dims, side=6):
    at = torch.stack(torch.meshgrid([torch.linspace(0, 1, side)] * dims, indexing="xy"))
    return at.permute(*range(1, dims + 1), 0).to(D)


@step
def gino():
    model = GINO(
        in_channels=3, out_channels=1, gno_coord_dim=2, in_gno_radius=0.3, out_gno_radius=0.3, gno_use_torch_scatter=False, gno_use_open3d=False,
        in_gno_channel_mlp_hidden_layers=[16, 16], out_gno_channel_mlp_hidden_layers=[16, 16], fno_n_modes=(4, 4), fno_hidden_channels=8,
        fno_n_layers=2, fno_ada_in_features=None,
    )  # fmt: skip
    x, at, out, grid = torch.rand(2, 30, 3, device=D), points(30, 2), points(20, 2), latent(2)
    y = torch.rand(2, 20, 1, device=D)
    return train(
        model,
        lambda net: losses.LpLoss(d=1)(
            net(x=x, input_geom=at, latent_queries=grid, output_queries=out).squeeze(-1), y.squeeze(-1)
        ),
    )


@step
def fnogno():
    model = FNOGNO(
        in_channels=3, out_channels=2, gno_radius=0.3, gno_coord_dim=2, fno_n_modes=(4, 4), fno_hidden_channels=8, fno_n_layers=2,
        gno_channel_mlp_hidden_layers=[16, 16], gno_use_open3d=False, gno_use_torch_scatter=False,
    )  # fmt: skip
    grid, out, f = latent(2), points(20, 2), torch.rand(6, 6, 3, device=D)
    y = torch.rand(20, 2, device=D)
    return train(model, lambda net: torch.nn.functional.mse_loss(net(grid, out, f), y))
