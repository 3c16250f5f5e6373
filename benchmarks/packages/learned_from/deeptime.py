"""Training steps over deeptime 0.5.0: networks of the slow dynamics of molecules, by `partial_fit`, an epoch of `fit`, or their scores."""

from deeptime.decomposition.deep import TAE, VAMPNet, koopman_matrix, kvad_score, vamp_score, vampnet_loss
from deeptime.kernels import GaussianKernel
from deeptime.util.data import TrajectoryDataset
from deeptime.util.torch import MLP

ROWS, WIDTH, LAG = 64, 6, 2


def trajectory(rows=ROWS + LAG):
    return np.random.randn(rows, WIDTH).cumsum(0).astype("float32") / 4


def lobe(outputs=3):
    return torch.nn.Sequential(MLP([WIDTH, 12, outputs], nonlinearity=torch.nn.ELU), torch.nn.Softmax(1)).to(D)


def batches(rows=ROWS + LAG, size=32):
    data = TrajectoryDataset(LAG, trajectory(rows))
    return torch.utils.data.DataLoader(data, batch_size=size, shuffle=True, drop_last=True)


def fitted_partly(kind=VAMPNet, twice=False, callback=False, host=False, **more):
    """A step is a `partial_fit` with a batch, of the host as numbers or of the device."""

    def make():
        more_lobes = {"lobe_timelagged": lobe()} if twice else {}
        net = kind(lobe(), device=torch.device(D), learning_rate=1e-3, **more_lobes, **more)
        scores = []

        def keep(step, score):
            scores.append((step, float(score)))

        def go():
            before, after = trajectory(ROWS), trajectory(ROWS)
            data = (before, after) if host else tuple(torch.from_numpy(each).to(D) for each in (before, after))
            net.partial_fit(data, **({"train_score_callback": keep} if callback else {}))

        return go

    return make


STEPS["vampnet"] = fitted_partly()
STEPS["vampnet_of_two_lobes"] = fitted_partly(twice=True)
STEPS["vampnet_of_arrays"] = fitted_partly(host=True)
STEPS["vampnet_watched"] = fitted_partly(callback=True)
STEPS["vampnet_truncated"] = fitted_partly(score_mode="trunc", epsilon=1e-5)
STEPS["vampnet_clamped"] = fitted_partly(score_mode="clamp", optimizer="SGD")
STEPS["vampnet_vamp1"] = fitted_partly(score_method="VAMP1")
STEPS["vampnet_vampe"] = fitted_partly(score_method="VAMPE")


@step
def vampnet_epoch():
    """Two batches, and what the score is of those that were held out."""
    net = VAMPNet(lobe(), device=torch.device(D), learning_rate=1e-3)
    loader, held = batches(), batches()
    scores = []
    return lambda: net.fit(
        loader, n_epochs=1, validation_loader=held, validation_score_callback=lambda *pair: scores.append(pair)
    )


def encoded(kind, make_encoder):
    """A step is an epoch of two batches, and of one that is held out."""

    def make():
        encoder, decoder = make_encoder().to(D), MLP([2, 12, WIDTH]).to(D)
        net = kind(encoder, decoder, device=torch.device(D), learning_rate=1e-3)
        loader, held = batches(), batches(32 + LAG)
        return lambda: net.fit(loader, n_epochs=1, validation_loader=held)

    return make


STEPS["time_lagged_autoencoder"] = encoded(TAE, lambda: MLP([WIDTH, 12, 2]))


def scored(score):
    """A loop of one's own over the package's scores."""

    def make():
        def loss(net):
            before, after = (net(torch.from_numpy(trajectory(ROWS)).to(D)) for _ in range(2))
            return score(before, after)

        return train(lobe(), loss)

    return make


STEPS["vamp2_loss"] = scored(lambda x, y: vampnet_loss(x, y, method="VAMP2"))
STEPS["vamp1_score"] = scored(lambda x, y: -vamp_score(x, y, method="VAMP1", mode="regularize"))
STEPS["koopman_norm"] = scored(lambda x, y: -torch.norm(koopman_matrix(x, y, mode="regularize")))
STEPS["kvad_score"] = scored(lambda x, y: -kvad_score(x, y, kernel=GaussianKernel(1.0)))
STEPS["kvad_score_truncated"] = scored(lambda x, y: -kvad_score(x, y, kernel=GaussianKernel(2.0), mode="trunc"))
