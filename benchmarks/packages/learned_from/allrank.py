"""Training steps over allRank 1.4.3: an epoch of its fit with each of its losses, and losses in plain loops."""

import logging
import tempfile

absent("pkg_resources tensorboardX gcsfs google")

import allrank.models.losses as losses
from allrank.data.dataset_loading import FixLength, LibSVMDataset, ToTensor
from allrank.models import metrics
from allrank.models.model import make_model
from allrank.models.transformer import make_transformer
from allrank.training.train_utils import fit
from functools import partial
from scipy.sparse import csr_matrix
from torchvision import transforms
from types import SimpleNamespace

logging.disable(logging.INFO)
QUERIES, DOCS, WIDTH, LEVELS = 6, 8, 5, 3


def rows(length, levels=LEVELS):
    counts = [DOCS - i % 3 for i in range(QUERIES)]
    ids = np.repeat(np.arange(QUERIES), counts)
    x, y = np.random.randn(len(ids), WIDTH), np.random.randint(0, levels, len(ids)).astype(float)
    y[np.unique(ids, return_index=True)[1]] = levels - 1.0
    return LibSVMDataset(csr_matrix(x), y, ids, transforms.Compose([FixLength(length), ToTensor()]))


def network(attends=True, places=None, out=1, norm=False, activation=None):
    fc = {"sizes": [8], "input_norm": norm, "activation": "ReLU", "dropout": 0.1}
    model = make_model(fc, None, {"d_output": out, "output_activation": "Sigmoid" if out > 1 else activation}, WIDTH)
    if attends:
        model.encoder = make_transformer(N=1, d_ff=8, h=2, dropout=0.1, n_features=8, positional_encoding=places)
    return model


def fitted(loss, clip=None, scheduler=None, length=DOCS, levels=LEVELS, counted=None, **more):
    """A step is an epoch of `fit`: batches with the loss, its metrics, and what it validates."""

    def make():
        net = network(**more).to(D)
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        loads = [torch.utils.data.DataLoader(rows(length, levels), batch_size=3, shuffle=i == 0) for i in range(2)]
        config = SimpleNamespace(metrics=counted or {"ndcg": [5]}, val_metric="ndcg_5")
        plan = scheduler(optimizer) if scheduler else None
        folder = tempfile.mkdtemp()

        def go():
            fit(1, net, loss, optimizer, plan, *loads, config, clip, 100, torch.device(D), folder, folder)

        return go

    return make


STEPS["rank_net"] = fitted(losses.rankNet)
STEPS["rank_net_weighted"] = fitted(losses.rankNet_weightByGTDiff, clip=1.0)
STEPS["rank_net_weighted_by_powers"] = fitted(losses.rankNet_weightByGTDiff_pow, attends=False)
STEPS["list_net"] = fitted(losses.listNet, counted={"ndcg": [5, 3], "mrr": [5]})
STEPS["list_mle"] = fitted(losses.listMLE, scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 5))
STEPS["list_net_binary"] = fitted(losses.binary_listNet, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau)
STEPS["approximate_ndcg"] = fitted(losses.approxNDCGLoss)
STEPS["pointwise"] = fitted(partial(losses.pointwise_rmse, no_of_levels=LEVELS), attends=False)
STEPS["bce"] = fitted(losses.bce, attends=False, length=6, levels=2, activation="Sigmoid")
STEPS["ordinal"] = fitted(partial(losses.ordinal, n=LEVELS - 1), out=LEVELS - 1, length=6)
for scheme in (
    "ndcgLoss1",
    "ndcgLoss2",
    "lambdaRank",
    "ndcgLoss2PP",
    "rankNet",
    "rankNetWeightedByGTDiff",
    "rankNetWeightedByGTDiffPowed",
):
    STEPS[f"lambda_{scheme}"] = fitted(partial(losses.lambdaLoss, weighing_scheme=f"{scheme}_scheme"), attends=False)
STEPS["lambda_at_top"] = fitted(partial(losses.lambdaLoss, k=3, reduction="mean", reduction_log="natural"))
STEPS["neural_ndcg"] = fitted(losses.neuralNDCG)
STEPS["neural_ndcg_at_random"] = fitted(partial(losses.neuralNDCG, stochastic=True, n_samples=2), attends=False)
STEPS["neural_ndcg_transposed"] = fitted(losses.neuralNDCG_transposed, attends=False)
STEPS["placed"] = fitted(losses.listNet, places=SimpleNamespace(strategy="fixed", max_indices=20))
STEPS["placed_learned"] = fitted(losses.listNet, places=SimpleNamespace(strategy="learned", max_indices=20), norm=True)


@step
def own_loop():
    """A loss and a metric of a batch on the device."""
    net = network()
    x, y, at = (
        torch.randn(4, DOCS, WIDTH, device=D),
        torch.randint(0, LEVELS, (4, DOCS), device=D).float(),
        torch.arange(DOCS, device=D).repeat(4, 1),
    )

    def loss(net):
        out = net(x, y == -1, at)
        metrics.mrr(out.detach(), y, ats=[3])
        return losses.approxNDCGLoss(out, y) + 0.1 * losses.rankNet(out, y)

    return train(net, loss)
