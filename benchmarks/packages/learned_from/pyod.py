"""Training steps over PyOD 3.6.7: epochs of its deep detectors of anomalies in tables, series and graphs."""

from pyod.models.ae1svm import AE1SVM
from pyod.models.alad import ALAD
from pyod.models.anogan import AnoGAN
from pyod.models.auto_encoder import AutoEncoder
from pyod.models.dif import DIF
from pyod.models.lunar import LUNAR
from pyod.models.mo_gaal import MO_GAAL
from pyod.models.so_gaal_new import SO_GAAL as NEW_SO_GAAL
from pyod.models.ts_anomaly_transformer import AnomalyTransformer
from pyod.models.vae import VAE
from pyod.utils.torch_utility import TorchDataset

ROWS, WIDTH = 64, 6


def table():
    return np.random.randn(ROWS, WIDTH)


def epochs(kind, **more):
    """A step is an epoch of training, as `fit` has it: nothing is scored."""

    def make():
        found = kind(epoch_num=1, batch_size=16, verbose=2, device=D, **more)
        x = table()
        found.data_num, found.feature_size = x.shape
        found.build_model()
        found.training_prepare()
        rows = TorchDataset(X=x, y=None, mean=x.mean(0), std=x.std(0))
        loader = torch.utils.data.DataLoader(rows, batch_size=16, shuffle=True, drop_last=True)
        return lambda: found.train(loader)

    return make


def fitted(kind, data=table, **more):
    """A step is all of `fit`, with an epoch, and without the scores of the rows that it was fitted to."""

    def make():
        found, x = kind(**more), data()
        found.decision_function = lambda rows: np.random.rand(len(rows))
        return lambda: found.fit(x)

    return make


small = {"hidden_neuron_list": [8, 4]}
STEPS["auto_encoder"] = epochs(AutoEncoder, **small)
STEPS["auto_encoder_without_norm"] = epochs(AutoEncoder, batch_norm=False, hidden_activation_name="tanh", **small)
STEPS["auto_encoder_sgd"] = epochs(AutoEncoder, optimizer_name="sgd", optimizer_params={}, **small)
sides = {"encoder_neuron_list": [8, 4], "decoder_neuron_list": [4, 8]}
STEPS["vae"] = epochs(VAE, **sides)
STEPS["vae_of_capacity"] = epochs(VAE, beta=2.0, capacity=0.5, **sides)
STEPS["vae_with_norm"] = epochs(VAE, batch_norm=True, output_activation_name="sigmoid", **sides)


@step
def so_gaal_new():
    found = NEW_SO_GAAL(epoch_num=1, verbose=2, device=D)
    found.batch_size = 16
    x = table()
    found.data_num, found.feature_size = x.shape
    found.build_model()
    found.training_prepare()
    rows = TorchDataset(X=x, y=None, mean=x.mean(0), std=x.std(0))
    loader = torch.utils.data.DataLoader(rows, batch_size=16, shuffle=True, drop_last=True)
    return lambda: found.train(loader)


STEPS["ae1svm"] = fitted(AE1SVM, hidden_neurons=[8, 4], epochs=1, batch_size=16, kernel_approx_features=16)
STEPS["ae1svm_without_norm"] = fitted(
    AE1SVM, hidden_neurons=[8, 4], epochs=1, batch_size=16, kernel_approx_features=16, batch_norm=False, nu=0.2
)
STEPS["anogan"] = fitted(AnoGAN, device=D, epochs=1, epochs_query=2, batch_size=16)
STEPS["anogan_preprocessed"] = fitted(AnoGAN, device=D, epochs=1, epochs_query=1, batch_size=32, preprocessing=True)


def alad(**more):
    def make():
        found = ALAD(epochs=2, batch_size=16, **more)
        found.get_outlier_scores = lambda rows: np.random.rand(len(rows))
        x = table()
        return lambda: found.fit(x)

    return make


STEPS["alad"] = alad()
STEPS["alad_reconstructing"] = alad(add_recon_loss=True, lambda_recon_loss=0.1, add_disc_zz_loss=True)
STEPS["alad_normalized"] = alad(spectral_normalization=True)
STEPS["dif"] = fitted(DIF, batch_size=16, hidden_neurons=[8], representation_dim=4, n_ensemble=2, device=D)
STEPS["lunar"] = fitted(LUNAR, n_epochs=1)
STEPS["lunar_of_scores"] = fitted(LUNAR, model_type="SCORE", n_epochs=2, verbose=1)
STEPS["mo_gaal"] = fitted(MO_GAAL, k=2, stop_epochs=1)


def series():
    return np.random.randn(80, 2)


def trained_transformer():
    found = AnomalyTransformer(window_size=8, d_model=8, n_heads=2, n_layers=1, epochs=1, batch_size=16, device=D)
    found.decision_function = lambda rows: np.random.rand(len(rows))
    x = series()
    return lambda: found.fit(x)


STEPS["anomaly_transformer"] = trained_transformer
