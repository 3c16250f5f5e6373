"""Training steps over bpnet-lite 1.1.0: profiles of what binds to the genome, batches of `fit`, from its own generators of data."""

absent("tangermeme numba pyBigWig pyfaidx modisco macs3 bam2bw joblib")

from bpnetlite import bpnet, io, losses

WINDOW, TRIMMED, PEAKS, JITTER = 160, 20, 40, 4


def one_hot(count, length):
    return torch.nn.functional.one_hot(torch.randint(0, 4, (count, length)), 4).permute(0, 2, 1).to(torch.int8)


def reads(count, strands, length):
    return torch.poisson(torch.ones(count, strands, length))


def peaks(strands, controls, jitter=JITTER):
    """Peaks, and places where there is none, as `PeakGenerator` draws them from files."""
    wide, out = WINDOW + 2 * jitter, WINDOW - 2 * TRIMMED + 2 * jitter
    more = {}
    if controls:
        more = {"peak_controls": reads(PEAKS, controls, wide), "negative_controls": reads(PEAKS, controls, wide)}
    data = io.PeakNegativeSampler(
        one_hot(PEAKS, wide), reads(PEAKS, strands, out), one_hot(PEAKS, wide), reads(PEAKS, strands, out), **more,
        negative_ratio=0.3, in_window=WINDOW, out_window=WINDOW - 2 * TRIMMED, max_jitter=jitter,
        reverse_complement=True, random_state=0,
    )  # fmt: skip
    return torch.utils.data.DataLoader(data, batch_size=4)


def fitted(
    kind=bpnet.BPNet,
    strands=2,
    controls=2,
    validated=False,
    schedule=False,
    optimizer=torch.optim.AdamW,
    fit=None,
    **more,
):
    """A step is a batch of `fit`."""

    def make():
        model = kind(
            n_filters=4,
            n_layers=2,
            n_outputs=strands,
            n_control_tracks=controls,
            trimming=TRIMMED,
            verbose=False,
            **more,
        )
        model = model.to(D)
        stepping = optimizer(model.parameters(), lr=1e-3)
        given = {"device": D, "max_epochs": 2, "batch_size": 4, **(fit or {})}
        if schedule:
            given["scheduler"] = torch.optim.lr_scheduler.CosineAnnealingLR(stepping, 10)
        if validated:
            given |= {
                "X_valid": one_hot(8, WINDOW).float(),
                "y_valid": reads(8, strands, WINDOW - 2 * TRIMMED),
                "X_ctl_valid": reads(8, controls, WINDOW) if controls else None,
            }
        data = peaks(strands, controls)
        return loop(lambda: model.fit(data, stepping, **given))

    return make


STEPS["bpnet"] = fitted()
STEPS["bpnet_without_controls"] = fitted(strands=1, controls=0)
STEPS["bpnet_weighted_counts"] = fitted(count_loss_weight=10, profile_output_bias=False, count_output_bias=False)
STEPS["bpnet_scheduled"] = fitted(schedule=True)
STEPS["bpnet_half"] = fitted(fit={"dtype": "bfloat16"})
STEPS["bpnet_sgd"] = fitted(optimizer=torch.optim.SGD)


def basepairs(controls):
    """The other network is trained by a loop of the user's own."""

    def make():
        net = bpnet.BasePairNet(
            n_filters=4, n_layers=2, n_outputs=2, n_control_tracks=controls, trimming=TRIMMED, verbose=False
        )
        batches = iter(lambda: next(iter(peaks(2, controls))), None)

        def loss(model):
            x, *control, y, labels = (each.to(D).float() for each in next(batches))
            profile, counts = model(x, *control)
            return losses._mixture_loss(y, profile, counts, 1.0, labels)[2]

        return train(net, loss)

    return make


STEPS["basepairnet"] = basepairs(2)
STEPS["basepairnet_without_controls"] = basepairs(0)


@step
def wrapped():
    """A loop of the user's own: profiles alone, controls of zeroes, counts read through the wrapper."""
    net = bpnet.ControlWrapper(bpnet.BPNet(n_filters=4, n_layers=2, trimming=TRIMMED, verbose=False))

    def loss(model):
        profile, counts = model(one_hot(4, WINDOW).float().to(D))
        y = reads(4, 2, WINDOW - 2 * TRIMMED).to(D)
        return sum(losses._mixture_loss(y, profile, counts, 1.0)[:2])

    return train(net, loss)


@step
def sampled_by_weight():
    """The generator that draws by how probable each place is."""
    data = io.DataGenerator(
        one_hot(PEAKS, WINDOW), reads(PEAKS, 2, WINDOW - 2 * TRIMMED), reads(PEAKS, 2, WINDOW), p=np.ones(PEAKS) / PEAKS,
        in_window=WINDOW, out_window=WINDOW - 2 * TRIMMED, reverse_complement=True, random_state=0,
    )  # fmt: skip
    batches = iter(lambda: next(iter(torch.utils.data.DataLoader(data, batch_size=4))), None)

    def loss(model):
        x, controls, y = (each.to(D).float() for each in next(batches)[:3])
        profile, counts = model(x, controls)
        return (
            losses.MNLLLoss(profile.flatten(1).log_softmax(-1), y.flatten(1)).mean()
            + losses.log1pMSELoss(counts, y.sum((1, 2))[:, None]).mean()
        )

    return train(bpnet.BPNet(n_filters=4, n_layers=2, trimming=TRIMMED, verbose=False), loss)
