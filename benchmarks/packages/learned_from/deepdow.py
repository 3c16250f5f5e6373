"""Training steps over deepdow 0.2.3: networks that make portfolios, batches of the loop that `Run` launches, and its layers alone."""

absent("mlflow")

import deepdow.nn as N
from deepdow import layers as L
from deepdow import losses as O
from deepdow.data import Compose, Dropout, InRAMDataset, FlexibleDataLoader, Multiply, Noise, RigidDataLoader
from deepdow.experiments import Run

SAMPLES, CHANNELS, LOOKBACK, HORIZON, ASSETS = 48, 2, 8, 5, 4


def dataset(**more):
    x = np.random.randn(SAMPLES, CHANNELS, LOOKBACK, ASSETS) / 100
    y = np.random.randn(SAMPLES, CHANNELS, HORIZON, ASSETS) / 100
    return InRAMDataset(x, y, **more)


def rigid(**more):
    return RigidDataLoader(dataset(**more), batch_size=6)


def launched(net, loss, loader=rigid, optimizer=None, callbacks=list):
    """A step is a batch of `launch`."""

    def make():
        network = net()
        run = Run(
            network,
            loss(),
            loader(),
            device=torch.device(D),
            callbacks=callbacks(),
            optimizer=optimizer(network.parameters()) if optimizer else None,
        )
        return loop(lambda: run.launch(2))

    return make


def linear():
    return N.LinearNet(CHANNELS, LOOKBACK, ASSETS, p=0.1)


for name, loss in {
    "mean_returns": O.MeanReturns,
    "sharpe": O.SharpeRatio,
    "sortino": O.SortinoRatio,
    "drawdown": O.MaximumDrawdown,
    "worst_return": O.WorstReturn,
    "quantile": O.Quantile,
    "alpha": O.Alpha,
    "cumulative": O.CumulativeReturn,
    "target": O.TargetMeanReturn,
    "downside": O.DownsideRisk,
    "risk_parity": O.RiskParity,
    "sum_of_losses": lambda: O.SharpeRatio() + 0.1 * O.SquaredWeights() + O.StandardDeviation() / 2,
    "largest_weight": lambda: O.LargestWeight() + O.Softmax(),
}.items():
    STEPS[f"linear_{name}"] = launched(linear, loss)

STEPS["dummy"] = launched(lambda: N.DummyNet(CHANNELS), O.MeanReturns)
STEPS["bachelier"] = launched(lambda: N.BachelierNet(CHANNELS, ASSETS, hidden_size=4, max_weight=0.6), O.SharpeRatio)
STEPS["bachelier_shrunk"] = launched(
    lambda: N.BachelierNet(CHANNELS, ASSETS, hidden_size=4, shrinkage_strategy="identity"), O.MaximumDrawdown
)
STEPS["keynes"] = launched(lambda: N.KeynesNet(CHANNELS, 8), O.SharpeRatio)
STEPS["keynes_conv"] = launched(lambda: N.KeynesNet(CHANNELS, 8, transform_type="Conv"), O.SharpeRatio)
STEPS["minimal"] = launched(lambda: N.MinimalNet(ASSETS), O.SortinoRatio)
STEPS["thorp"] = launched(lambda: N.ThorpNet(ASSETS, max_weight=0.5), O.MeanReturns)
STEPS["keynes_flexible"] = launched(
    lambda: N.KeynesNet(CHANNELS, 8),
    O.SharpeRatio,
    lambda: FlexibleDataLoader(
        dataset(),
        n_assets_range=(2, ASSETS + 1),
        lookback_range=(4, LOOKBACK + 1),
        horizon_range=(2, HORIZON + 1),
        batch_size=6,
    ),
)
STEPS["linear_augmented"] = launched(
    linear,
    O.MeanReturns,
    lambda: rigid(transform=Compose([Dropout(0.2), Noise(0.1), Multiply(100)])),
    lambda params: torch.optim.AdamW(params, 1e-3),
)


def layered(forward, *modules):
    """A network of the user's own, of layers of the package."""

    def make():
        net = torch.nn.ModuleList(module() for module in modules)
        net.append(torch.nn.Linear(ASSETS, ASSETS))
        sharpe = O.SharpeRatio()
        batches = iter(lambda: next(iter(rigid())), None)

        def loss(model):
            x, y, _, _ = next(batches)
            return sharpe(forward(model[-1](x.to(D).float()), *model[:-1]), y.to(D).float()).mean()

        return train(net, loss)

    return make


STEPS["layers_resampled"] = layered(
    lambda x, cov, resample: resample(cov(x[:, 0])),
    lambda: L.CovarianceMatrix(sqrt=False),
    lambda: L.Resample(L.AnalyticalMarkowitz(), n_portfolios=3),
)
STEPS["layers_nested_clusters"] = layered(
    lambda x, cov, nco: nco(cov(x[:, 0])),
    lambda: L.CovarianceMatrix(sqrt=False),
    lambda: L.NCO(2, n_init=2, random_state=1),
)
STEPS["layers_markowitz"] = layered(
    lambda x, cov, collapse, best: best(cov(x[:, 0]), collapse(x)[:, 0]),
    lambda: L.CovarianceMatrix(sqrt=False, shrinkage_strategy="scaled_identity"),
    L.ExponentialCollapse,
    L.AnalyticalMarkowitz,
)
STEPS["layers_budgeting"] = layered(
    lambda x, cov, budget: budget(cov(x[:, 0]), torch.full((len(x), ASSETS), 1 / ASSETS, device=D)),
    lambda: L.CovarianceMatrix(sqrt=True),
    lambda: L.NumericalRiskBudgeting(ASSETS),
)
STEPS["layers_attention"] = layered(
    lambda x, rnn, attention, allocate: allocate(attention(rnn(x)).mean(1)),
    lambda: L.RNN(CHANNELS, 4, cell_type="RNN"),
    lambda: L.AttentionCollapse(4),
    lambda: L.SparsemaxAllocator(ASSETS, max_weight=0.6),
)
STEPS["layers_warped"] = layered(
    lambda x, zoom, warp, collapse, allocate: allocate(
        collapse(
            warp(
                zoom(x, torch.full((len(x),), 0.8, device=D)),
                torch.linspace(-1, 1, LOOKBACK, device=D).expand(len(x), -1),
            )
        )[:, 0]
    ),
    L.Zoom,
    L.Warp,
    L.MaxCollapse,
    lambda: L.SoftmaxAllocator(formulation="variational", n_assets=ASSETS, max_weight=0.5),
)
