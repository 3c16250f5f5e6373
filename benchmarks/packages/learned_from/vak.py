"""Training steps over vak 1.0.4: birds' songs, frame by frame, and embeddings of their syllables, by the steps that Lightning calls."""

import warnings

absent("numba crowsetta pynndescent umap soundfile evfuncs")

import vak
from vak.models.frame_classification_model import FrameClassificationModel
from vak.models.parametric_umap_model import ParametricUMAPModel
from vak.nn import loss as L
from vak.nn.loss import umap as umap_module

warnings.resetwarnings()  # a warning of what is absent is no class
umap_module.find_ab_params = lambda *_: (1.577, 0.895)  # how UMAP's curve is fitted, once, for the defaults

ROWS, BINS, FRAMES, SYLLABLES = 4, 32, 24, 5
LABELS = {"unlabeled": 0, **{letter: i + 1 for i, letter in enumerate("abcd")}}
TWEETY = {"conv1_filters": 4, "conv2_filters": 4, "hidden_size": 8, "pool1_size": (4, 1), "pool1_stride": (4, 1)}
SMALL = {**TWEETY, "pool2_size": (4, 1), "pool2_stride": (4, 1)}


def stepped(model, batch):
    model = model.to(D).train()
    model.log = lambda *_, **__: None
    optimizer = model.configure_optimizers()

    def go():
        loss = model.training_step(batch(), 0)
        loss = loss["loss"] if isinstance(loss, dict) else loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return go


def sung(loss, target="multi_frame_labels", classes=SYLLABLES, net=None, optimizer=torch.optim.Adam):
    """A step is a batch of windows that a loader has made of arrays, brought to the device."""

    def make():
        network = (net or (lambda: vak.nets.TweetyNet(classes, 1, BINS, **SMALL)))().to(D)
        item = vak.transforms.defaults.frame_classification.TrainItemTransform()

        def batch():
            items = [item(np.random.rand(BINS, FRAMES), np.random.randint(0, classes, FRAMES)) for _ in range(ROWS)]
            frames = torch.stack([each["frames"] for each in items]).to(D)
            return {"frames": frames, target: torch.stack([each["multi_frame_labels"] for each in items]).to(D)}

        model = FrameClassificationModel(LABELS, network, loss(), optimizer(network.parameters(), lr=1e-3), {})
        return stepped(model, batch)

    return make


STEPS["tweetynet"] = sung(L.CrossEntropyLoss)
STEPS["tweetynet_dice"] = sung(L.DiceLoss)
STEPS["tweetynet_binary"] = sung(L.CrossEntropyLoss, "binary_frame_labels", 2)
STEPS["tweetynet_of_bounds"] = sung(L.DiceLoss, "boundary_frame_labels", 2)
STEPS["tweetynet_weighed"] = sung(lambda: L.CrossEntropyLoss(weight=[1.0, 2.0, 2.0, 1.0, 1.0]).to(D))
STEPS["tweetynet_sgd"] = sung(L.CrossEntropyLoss, optimizer=torch.optim.SGD)
STEPS["ed_tcn"] = sung(
    L.CrossEntropyLoss,
    net=lambda: vak.nets.ED_TCN(
        SYLLABLES, 1, BINS, pool1_size=(4, 1), pool1_stride=(4, 1), pool2_size=(4, 1), pool2_stride=(4, 1)
    ),
)


class Both(torch.nn.Module):
    """A network with a head more, for where a syllable begins."""

    def __init__(self):
        super().__init__()
        self.body, self.bounds = (
            vak.nets.TweetyNet(SYLLABLES, 1, BINS, **SMALL),
            torch.nn.Conv1d(SYLLABLES, 2, 3, padding=1),
        )

    def forward(self, x):
        found = self.body(x)
        return found, self.bounds(found)


@step
def of_two_targets():
    """Which syllable, and where it begins; the loss tells its terms apart."""
    network = Both().to(D)
    cross, dice = L.CrossEntropyLoss(), L.DiceLoss()

    def loss(multi, boundary, labels, bounds):
        terms = {"multi": cross(multi, labels), "boundary": dice(boundary, bounds)}
        return {**terms, "loss": sum(terms.values())}

    def batch():
        return {
            "frames": torch.rand(ROWS, 1, BINS, FRAMES).to(D),
            "multi_frame_labels": torch.randint(0, SYLLABLES, (ROWS, FRAMES)).to(D),
            "boundary_frame_labels": torch.randint(0, 2, (ROWS, FRAMES)).to(D),
        }

    return stepped(FrameClassificationModel(LABELS, network, loss, torch.optim.Adam(network.parameters()), {}), batch)


def embedded(decoder=False, **more):
    """A step is a batch of edges of the graph of neighbours."""

    def make():
        shape = (1, 16, 16)
        networks = {"encoder": vak.nets.ConvEncoder(shape, 4, 4, n_features_linear=8)}
        if decoder:
            networks["decoder"] = torch.nn.Sequential(torch.nn.Linear(2, 256), torch.nn.Unflatten(1, shape))
        parameters = [each for net in networks.values() for each in net.parameters()]
        model = ParametricUMAPModel(networks, L.UmapLoss(**more), torch.optim.AdamW(parameters, 1e-3), {})
        return stepped(model, lambda: (torch.rand(6, *shape).to(D), torch.rand(6, *shape).to(D)))

    return make


STEPS["umap"] = embedded()
STEPS["umap_of_more_negatives"] = embedded(negative_sample_rate=8)
STEPS["umap_reconstructed"] = embedded(decoder=True, beta=0.5)
