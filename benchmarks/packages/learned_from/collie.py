"""Training steps over Collie 1.3.1: an epoch of its own trainer over its factorizations, losses and ways to sample."""

absent("fire")


import pytorch_lightning
import scipy.sparse
import torch.optim.lr_scheduler as schedulers

if not hasattr(scipy.sparse.dok_matrix, "_update"):  # as it was called
    scipy.sparse.dok_matrix._update = lambda self, held: self._dict.update(held)


def optimized(self, epoch=None, batch_idx=None, optimizer=None, optimizer_idx=None, optimizer_closure=None, **_):
    """As Lightning 1, which it asks for, has it; the next one does not take an index."""
    optimizer.step()


pytorch_lightning.LightningModule.optimizer_step = optimized
plain = schedulers.ReduceLROnPlateau


class Plateau(plain):
    """As it was when it took `verbose`."""

    def __init__(self, optimizer, *given, verbose=False, **more):
        super().__init__(optimizer, *given, **more)


schedulers.ReduceLROnPlateau = Plateau

from collie.interactions import (
    ApproximateNegativeSamplingInteractionsDataLoader,
    ExplicitInteractions,
    Interactions,
    InteractionsDataLoader,
)
from collie.model import (
    CollaborativeMetricLearningModel,
    ColdStartModel,
    CollieMinimalTrainer,
    DeepFM,
    HybridModel,
    HybridPretrainedModel,
    MatrixFactorizationModel,
    MLPMatrixFactorizationModel,
    NeuralCollaborativeFiltering,
    NonlinearMatrixFactorizationModel,
)

USERS, ITEMS = 12, 20


def seen(negatives=3, explicit=False):
    users = np.repeat(np.arange(USERS), 4)
    items = np.concatenate([np.random.choice(ITEMS, 4, replace=False) for _ in range(USERS)])
    items[-1] = ITEMS - 1 if ITEMS - 1 not in items[-4:] else items[-1]
    if explicit:
        return ExplicitInteractions(
            users=users, items=items, ratings=np.random.randint(1, 6, len(users)), num_users=USERS, num_items=ITEMS
        )
    return Interactions(
        users=users,
        items=items,
        ratings=np.ones(len(users)),
        num_users=USERS,
        num_items=ITEMS,
        num_negative_samples=negatives,
        check_num_negative_samples_is_valid=False,
    )


def trained(
    kind, negatives=3, explicit=False, approximate=False, stage=None, verbosity=0, checked=False, trains=None, **more
):
    """A step is an epoch of its minimal trainer, of two batches."""

    def make():
        loads = ApproximateNegativeSamplingInteractionsDataLoader if approximate else InteractionsDataLoader
        rows = loads(seen(negatives, explicit), batch_size=24, shuffle=True)
        given = {
            k: v() if callable(v) and k in ("metadata_for_loss", "item_metadata", "trained_model") else v
            for k, v in more.items()
        }
        if checked:
            given["val"] = InteractionsDataLoader(seen(negatives, explicit), batch_size=24)
        model = kind(train=rows, **given)
        if stage:
            model.set_stage(stage)
        runs = CollieMinimalTrainer(
            model,
            max_epochs=1,
            gpus=1,
            logger=False,
            early_stopping_patience=False,
            verbosity=verbosity,
            **(trains or {}),
        )
        runs.fit(model)

        def go():
            runs.max_epochs += 1
            runs.fit(model)

        return go

    return make


STEPS["matrix"] = trained(MatrixFactorizationModel, embedding_dim=4)
STEPS["matrix_of_one_negative"] = trained(MatrixFactorizationModel, 1, embedding_dim=4, loss="bpr")
STEPS["matrix_bpr"] = trained(MatrixFactorizationModel, embedding_dim=4, loss="bpr")
STEPS["matrix_warp"] = trained(MatrixFactorizationModel, embedding_dim=4, loss="warp")
STEPS["matrix_hinge_of_one"] = trained(MatrixFactorizationModel, 1, embedding_dim=4, loss="hinge")
STEPS["matrix_explicit"] = trained(MatrixFactorizationModel, explicit=True, embedding_dim=4, loss="mse", y_range=(0, 6))
STEPS["matrix_approximate"] = trained(MatrixFactorizationModel, approximate=True, embedding_dim=4, loss="adaptive")
STEPS["matrix_sparse"] = trained(MatrixFactorizationModel, embedding_dim=4, sparse=True, optimizer="sparse_adam")
STEPS["matrix_dropped"] = trained(
    MatrixFactorizationModel, embedding_dim=4, dropout_p=0.2, lr_scheduler_func=None, bias_lr="infer"
)
STEPS["matrix_checked"] = trained(
    MatrixFactorizationModel, embedding_dim=4, checked=True, verbosity=2, trains={"enable_model_summary": False}
)
STEPS["matrix_told"] = trained(
    MatrixFactorizationModel, embedding_dim=4, verbosity=1, trains={"enable_model_summary": False}
)
STEPS["matrix_for_anomalies"] = trained(MatrixFactorizationModel, embedding_dim=4, trains={"detect_anomaly": True})


def genres():
    return {"genre": torch.randint(0, 3, (ITEMS,))}


STEPS["matrix_partial_credit"] = trained(
    MatrixFactorizationModel, embedding_dim=4, metadata_for_loss=genres, metadata_for_loss_weights={"genre": 0.4}
)
STEPS["matrix_partial_credit_warp"] = trained(
    MatrixFactorizationModel,
    embedding_dim=4,
    loss="warp",
    metadata_for_loss=genres,
    metadata_for_loss_weights={"genre": 0.4},
)
STEPS["nonlinear"] = trained(
    NonlinearMatrixFactorizationModel,
    user_embedding_dim=4,
    item_embedding_dim=4,
    user_dense_layers_dims=[4],
    item_dense_layers_dims=[4],
)
STEPS["neural"] = trained(NeuralCollaborativeFiltering, embedding_dim=4, num_layers=2, final_layer="relu")
STEPS["deep_fm"] = trained(DeepFM, embedding_dim=4, num_layers=2, dropout_p=0.1)
STEPS["mlp"] = trained(MLPMatrixFactorizationModel, embedding_dim=4, num_layers=2)
STEPS["metric"] = trained(CollaborativeMetricLearningModel, embedding_dim=4)
STEPS["cold_start"] = trained(ColdStartModel, embedding_dim=4, item_buckets=torch.arange(ITEMS) % 4)
STEPS["cold_start_later"] = trained(
    ColdStartModel, stage="no_buckets", embedding_dim=4, item_buckets=torch.arange(ITEMS) % 4
)


def described():
    return torch.rand(ITEMS, 3)


hybrid = {"embedding_dim": 4, "item_metadata": described, "item_metadata_layers_dims": [4], "combined_layers_dims": [4]}
STEPS["hybrid"] = trained(HybridModel, **hybrid)
STEPS["hybrid_of_metadata"] = trained(HybridModel, stage="metadata_only", **hybrid)
STEPS["hybrid_of_all"] = trained(HybridModel, stage="all", **hybrid)


def before():
    return MatrixFactorizationModel(train=InteractionsDataLoader(seen()), embedding_dim=4)


STEPS["hybrid_pretrained"] = trained(
    HybridPretrainedModel,
    trained_model=before,
    item_metadata=described,
    item_metadata_layers_dims=[4],
    combined_layers_dims=[4],
    freeze_embeddings=False,
)
