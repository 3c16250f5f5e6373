"""Training steps over scArches 0.6.1: an epoch of the trainers of its models of cells, with and without what they validate."""

import sys
import types
import warnings

absent("scanpy scHPL gdown leidenalg muon squidpy seaborn")

import anndata

if not hasattr(anndata, "read"):
    anndata.read = anndata.read_h5ad  # as it was called


class NegativeBinomial:
    """What the losses take of scvi: the likelihood of counts."""

    def __init__(self, mu, theta):
        self.mu, self.theta = mu, theta

    def log_prob(self, x, eps=1e-8):
        both = torch.log(self.theta + self.mu + eps)
        return (
            self.theta * (torch.log(self.theta + eps) - both)
            + x * (torch.log(self.mu + eps) - both)
            + torch.lgamma(x + self.theta)
            - torch.lgamma(self.theta)
            - torch.lgamma(x + 1)
        )


scvi, model, distributions = (types.ModuleType(each) for each in ("scvi", "scvi.model", "scvi.distributions"))
model.SCVI = model.SCANVI = model.TOTALVI = type("Model", (), {})
distributions.NegativeBinomial = NegativeBinomial
sys.modules.update({"scvi": scvi, "scvi.model": model, "scvi.distributions": distributions})

from scarches.models import EXPIMAP, TRVAE, scPoli, scgen
from scarches.trainers.expimap.regularized import expiMapTrainer
from scarches.trainers.scgen.trainer import vaeArithTrainer
from scarches.trainers.scpoli.trainer import scPoliTrainer
from scarches.trainers.trvae.unsupervised import trVAETrainer

warnings.filterwarnings("ignore")
CELLS, GENES, SETS = 48, 20, 4


def cells(counts=True):
    x = np.random.poisson(1.0, (CELLS, GENES)).astype(np.float32)
    x[:, 0] += 1
    held = anndata.AnnData(x if counts else np.log1p(x))
    held.obs["study"] = ["a" if i % 2 else "b" for i in range(CELLS)]
    held.obs["kind"] = ["t"] * 16 + ["b"] * 16 + ["nk"] * 16
    held.varm["I"] = (np.random.rand(GENES, SETS) > 0.5).astype(np.float32)
    return held


stop = {"early_stopping_metric": "val_unweighted_loss", "patience": 50}


def epochs(model, trainer, counts=True, number=1, **more):
    """A step is the training of an epoch, or some."""

    def make():
        held = cells(counts)
        net = model(held)
        more.setdefault("batch_size", 16)
        runs = trainer(net.model, held, device=D, **more)
        runs.model.to(D)
        return lambda: runs.train(number, 1e-3, 0.01)

    return make


def conditional(counts=True, **more):
    return lambda held: TRVAE(
        held, condition_key="study", hidden_layer_sizes=[8], latent_dim=4, recon_loss="nb" if counts else "mse", **more
    )


plain = {"condition_key": "study", "use_early_stopping": False, "train_frac": 1.0}
checked = {"condition_key": "study", "early_stopping_kwargs": stop}
STEPS["trvae"] = epochs(conditional(), trVAETrainer, **plain)
STEPS["trvae_without_mmd"] = epochs(conditional(use_mmd=False), trVAETrainer, **plain)
STEPS["trvae_of_logs"] = epochs(conditional(False), trVAETrainer, counts=False, **plain)
STEPS["trvae_zero_inflated"] = epochs(
    lambda held: TRVAE(held, condition_key="study", hidden_layer_sizes=[8], latent_dim=4, recon_loss="zinb"),
    trVAETrainer,
    **plain,
)
STEPS["trvae_at_output"] = epochs(conditional(mmd_on="y", use_bn=True, use_ln=False), trVAETrainer, **plain)
STEPS["trvae_checked"] = epochs(conditional(), trVAETrainer, alpha_epoch_anneal=10, **checked)
STEPS["trvae_clipped"] = epochs(conditional(), trVAETrainer, clip_value=1.0, use_stratified_sampling=True, **plain)


@step
def trvae_of_queries():
    """A reference's network with its weights held, and a new study's."""
    held = cells()
    net = TRVAE(held, condition_key="study", hidden_layer_sizes=[8], latent_dim=4)
    net.model.freeze = True
    for name, each in net.model.named_parameters():
        each.requires_grad = "cond_L" in name
    runs = trVAETrainer(net.model, held, device=D, batch_size=16, **plain)
    return lambda: runs.train(1, 1e-3, 0.01)


def mapped(**more):
    return lambda held: EXPIMAP(held, condition_key="study", hidden_layer_sizes=[8], mask_key="I", **more)


STEPS["expimap"] = epochs(mapped(), expiMapTrainer, alpha=0.1, **plain)
STEPS["expimap_soft"] = epochs(mapped(soft_mask=True), expiMapTrainer, alpha=0.1, alpha_l1=0.01, **plain)
STEPS["expimap_extended"] = epochs(mapped(n_ext=2), expiMapTrainer, alpha=0.1, gamma_ext=0.1, **plain)
STEPS["expimap_independent"] = epochs(
    mapped(n_ext=2, use_hsic=True), expiMapTrainer, alpha=0.1, gamma_ext=0.1, beta=1.0, **plain
)
STEPS["expimap_one_against_all"] = epochs(
    mapped(n_ext=2, use_hsic=True, hsic_one_vs_all=True), expiMapTrainer, alpha=0.1, gamma_ext=0.1, **plain
)
STEPS["expimap_told"] = epochs(mapped(), expiMapTrainer, alpha=0.1, print_stats=True, **checked)


def arithmetic(held):
    return scgen(held, hidden_layer_sizes=[8, 8], z_dimension=4)


STEPS["scgen"] = epochs(arithmetic, vaeArithTrainer, counts=False, train_frac=0.8)


def populations(**more):
    given = {"cell_type_keys": ["kind"], "hidden_layer_sizes": [8], "latent_dim": 4, "embedding_dims": 3, **more}
    return lambda held: scPoli(held, condition_keys=["study"], **given)


types_of = {"condition_keys": ["study"], "cell_type_keys": ["kind"], "use_early_stopping": False, "train_frac": 1.0}
STEPS["scpoli_at_first"] = epochs(populations(), scPoliTrainer, pretraining_epochs=1, **types_of)
STEPS["scpoli_mmd"] = epochs(populations(use_mmd=True), scPoliTrainer, pretraining_epochs=1, **types_of)


def prototyped(counts=True, eta=1.0, **more):
    """Its cells have types: distances to their means are in the loss."""

    def make():
        held = cells(counts)
        net = populations(**more)(held)
        runs = scPoliTrainer(
            net.model,
            held,
            device=D,
            batch_size=16,
            pretraining_epochs=0,
            eta=eta,
            unlabeled_prototype_training=False,
            **types_of,
        )

        def go():
            runs.prototypes_labeled = None  # as at first
            runs.train(2, 1e-3, 0.01)

        return go

    return make


STEPS["scpoli"] = prototyped()
STEPS["scpoli_of_logs"] = prototyped(False, 2.0, recon_loss="mse")
