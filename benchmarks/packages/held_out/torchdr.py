"""Training steps over torchdr 0.5: rounds in which points are laid out, or an encoder that lays them, by each of its methods."""

import torchdr
from torch import nn

ROWS, WIDTH = 120, 10


def cloud():
    """Three clusters, with the host, as the readme's arrays."""
    return np.random.randn(ROWS, WIDTH).astype(np.float32) + 3 * (np.arange(ROWS) % 3)[:, None].astype(np.float32)


def laid(name, before=0, on_device=False, **more):
    """A step is a round of `fit_transform`."""

    def make():
        held = getattr(torchdr, name)(device=D, max_iter=40, **{"backend": None, **more})
        rows = torch.from_numpy(cloud()).to(D) if on_device else cloud()
        return loop(lambda: held.fit_transform(rows), before=before)

    return make


def net():
    return nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 2))


SMALL = {"perplexity": 10}
STEPS["tsne"] = laid("TSNE", **SMALL)
STEPS["tsne_dense"] = laid("TSNE", **SMALL, sparsity=False)
STEPS["tsne_told"] = laid("TSNE", **SMALL, verbose=True)
STEPS["tsne_seeded"] = laid("TSNE", **SMALL, random_state=0)
STEPS["tsne_of_three"] = laid("TSNE", **SMALL, n_components=3)
STEPS["tsne_by_adam"] = laid("TSNE", **SMALL, optimizer="Adam", lr=0.1, optimizer_kwargs=None)
STEPS["tsne_scheduled"] = laid("TSNE", **SMALL, scheduler="CosineAnnealingLR", scheduler_kwargs={"T_max": 40})
STEPS["tsne_normal"] = laid("TSNE", **SMALL, init="normal")
STEPS["tsne_on_device"] = laid("TSNE", **SMALL, on_device=True)
STEPS["sne"] = laid("SNE", **SMALL)
STEPS["sne_dense"] = laid("SNE", **SMALL, sparsity=False)
STEPS["cosne"] = laid("COSNE", **SMALL)
STEPS["cosne_dense"] = laid("COSNE", **SMALL, sparsity=False)
STEPS["infotsne"] = laid("InfoTSNE", **SMALL, n_negatives=30)
STEPS["infotsne_dense"] = laid("InfoTSNE", **SMALL, n_negatives=30, sparsity=False)
STEPS["infotsne_without_neighbours"] = laid(
    "InfoTSNE", **SMALL, n_negatives=30, exclude_neighbors_from_negative_sampling=True
)
STEPS["infotsne_by_encoder"] = lambda: laid("InfoTSNE", **SMALL, n_negatives=30, encoder=net())()
STEPS["largevis"] = laid("LargeVis", **SMALL)
STEPS["largevis_told"] = laid("LargeVis", **SMALL, verbose=True)
STEPS["largevis_without_neighbours"] = laid("LargeVis", **SMALL, exclude_neighbors_from_negative_sampling=True)
STEPS["largevis_by_encoder"] = lambda: laid("LargeVis", **SMALL, encoder=net())()
STEPS["umap"] = laid("UMAP", n_neighbors=10)
STEPS["umap_told"] = laid("UMAP", n_neighbors=10, verbose=True)
STEPS["umap_without_neighbours"] = laid("UMAP", n_neighbors=10, exclude_neighbors_from_negative_sampling=True)
STEPS["umap_spread"] = laid("UMAP", n_neighbors=10, min_dist=0.5, negative_sample_rate=10)
STEPS["umap_by_encoder"] = lambda: laid("UMAP", n_neighbors=10, encoder=net())()
STEPS["pacmap"] = laid("PACMAP", n_neighbors=10)
STEPS["pacmap_without_neighbours"] = laid("PACMAP", n_neighbors=10, exclude_neighbors_from_negative_sampling=True)
STEPS["tsnekhorn"] = laid("TSNEkhorn", **SMALL, before=0, max_iter_affinity_in=8)
STEPS["tsnekhorn_unrolled"] = laid("TSNEkhorn", **SMALL, unrolling=True, max_iter_affinity_in=8)


def matched(affinity_in, affinity_out, **more):
    """What is near by one measure is to be near by another."""

    def make():
        held = torchdr.AffinityMatcher(affinity_in(), affinity_out(), device=D, max_iter=40, backend=None, **more)
        return loop(lambda: held.fit_transform(cloud()))

    return make


STEPS["matched_entropic"] = matched(
    lambda: torchdr.EntropicAffinity(perplexity=10, sparsity=False, device=D),
    lambda: torchdr.NormalizedStudentAffinity(device=D),
    loss_fn="cross_entropy_loss",
)


@step
def batches_of_principal_axes():
    held = torchdr.IncrementalPCA(n_components=2, device=D)
    rows = torch.from_numpy(cloud()).to(D)
    return lambda: held.partial_fit(rows)


@step
def batches_of_exact_principal_axes():
    held = torchdr.ExactIncrementalPCA(n_components=2, device=D)
    rows = torch.from_numpy(cloud()).to(D)
    held.compute_mean([rows])
    return lambda: held.partial_fit(rows)
