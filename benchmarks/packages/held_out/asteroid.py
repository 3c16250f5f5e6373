"""Training steps over asteroid 0.7.0: its system's steps, of each of its separators of voices, and of losses that do not know who is who."""

absent("pb_bss_eval torch_stoi librosa torch_optimizer")

import asteroid.losses as L
import asteroid.models as models
from asteroid.engine.system import System
from asteroid.losses import MixITLossWrapper, PITLossWrapper, SinkPITLossWrapper
from asteroid.losses.soft_f1 import F1_loss

VOICES, LONG = 2, 1600


def separated(
    net,
    loss=lambda: PITLossWrapper(L.pairwise_neg_sisdr, pit_from="pw_mtx"),
    of=None,
    voices=VOICES,
    long=LONG,
    kind=System,
    batch=2,
):
    """A step of the system's, as lightning runs it, with its gradients clipped as in the recipes."""

    def make():
        held = net().to(D).train()
        optimizer = torch.optim.Adam(held.parameters(), lr=1e-3)
        system = kind(held, optimizer, loss(), None).to(D)
        targets = torch.randn(batch, voices, long, device=D)
        mixed = of(targets) if of else (targets.sum(1), targets)

        def go():
            optimizer.zero_grad()
            value = system.common_step(mixed, 0, train=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(held.parameters(), 5.0)
            optimizer.step()

        return go

    return make


TASNET = dict(n_filters=16, n_blocks=2, n_repeats=1, bn_chan=8, hid_chan=16, skip_chan=8)


def tasnet(voices=VOICES, **more):
    return lambda: models.ConvTasNet(voices, **{**TASNET, **more})


STEPS["tasnet"] = separated(tasnet())
for norm in ("cLN", "cgLN"):
    STEPS[f"tasnet_{norm}"] = separated(tasnet(norm_type=norm))
STEPS["tasnet_causal"] = separated(tasnet(norm_type="cLN", causal=True))
STEPS["tasnet_stft"] = separated(tasnet(fb_name="stft", n_filters=64, kernel_size=64, stride=32))
STEPS["tasnet_analytic"] = separated(tasnet(fb_name="analytic_free"))
STEPS["tasnet_param_sinc"] = separated(tasnet(fb_name="param_sinc", kernel_size=17))
STEPS["dprnn"] = separated(
    lambda: models.DPRNNTasNet(2, bn_chan=8, hid_size=8, chunk_size=20, n_repeats=2, n_filters=16)
)
STEPS["dptnet"] = separated(lambda: models.DPTNet(2, n_heads=4, ff_hid=8, chunk_size=20, n_repeats=1, n_filters=16))
STEPS["lstm_tasnet"] = separated(lambda: models.LSTMTasNet(2, n_layers=1, hid_size=16, n_filters=16))
STEPS["sudormrf"] = separated(lambda: models.SuDORMRFNet(2, bn_chan=8, num_blocks=1, upsampling_depth=2, n_filters=16))
STEPS["sudormrf_improved"] = separated(
    lambda: models.SuDORMRFImprovedNet(2, bn_chan=8, num_blocks=1, upsampling_depth=2, n_filters=16)
)
STEPS["dcunet"] = separated(
    lambda: models.DCUNet("mini", fix_length_mode="pad"), lambda: alone(L.singlesrc_neg_sisdr), voices=1, long=8000
)
STEPS["demask"] = separated(
    lambda: models.DeMask(hidden_dims=(32,), n_filters=64, kernel_size=64, stride=32), lambda: alone(L.singlesrc_neg_sisdr), voices=1
)  # fmt: skip
STEPS["fasnet"] = separated(
    lambda: models.FasNetTAC(2, enc_dim=8, feature_dim=8, hidden_dim=8, n_layers=1, tac_hidden_dim=8),
    of=lambda targets: (torch.randn(2, 3, LONG, device=D), targets),
)


def alone(loss):
    return lambda estimate, target: loss(estimate.reshape(2, -1), target.reshape(2, -1)).mean()


LOSSES = {
    "sdsdr": lambda: PITLossWrapper(L.pairwise_neg_sdsdr, pit_from="pw_mtx"), "snr": lambda: PITLossWrapper(L.pairwise_neg_snr, pit_from="pw_mtx"),
    "mse": lambda: PITLossWrapper(L.pairwise_mse, pit_from="pw_mtx"), "by_points": lambda: PITLossWrapper(L.singlesrc_neg_sisdr, pit_from="pw_pt"),
    "by_permutations": lambda: PITLossWrapper(L.multisrc_neg_sisdr, pit_from="perm_avg"), "sinkhorn": lambda: SinkPITLossWrapper(L.pairwise_neg_sisdr, n_iter=10),
    "spectral": lambda: PITLossWrapper(L.SingleSrcMultiScaleSpectral(), pit_from="pw_pt"),
}  # fmt: skip
for name, loss in LOSSES.items():
    STEPS[f"by_{name}"] = separated(tasnet(), loss, long=4000)
STEPS["by_hungarian"] = separated(tasnet(4), voices=4)
STEPS["by_sinkhorn_of_four"] = separated(
    tasnet(4), lambda: SinkPITLossWrapper(L.pairwise_neg_sisdr, n_iter=10), voices=4
)


def mixtures(targets):
    return targets.sum(1), targets


STEPS["by_mixtures"] = separated(tasnet(4), lambda: MixITLossWrapper(L.multisrc_neg_sisdr), mixtures)
STEPS["by_mixtures_of_three"] = separated(
    tasnet(4), lambda: MixITLossWrapper(L.multisrc_neg_sisdr, generalized=False), mixtures
)


@step
def clustered():
    """Of the recipe for deep clustering."""
    net = torch.nn.LSTM(20, 16, batch_first=True, bidirectional=True)
    head = torch.nn.Linear(32, 20 * 8)
    held = torch.nn.ModuleList([net, head])
    x, who = torch.rand(2, 12, 20, device=D), torch.randint(0, 2, (2, 12, 20), device=D)
    audible = torch.rand(2, 12, 20, device=D) > 0.2

    def loss(held):
        out = held[1](held[0](x)[0]).view(2, 240, 8)
        out = torch.nn.functional.normalize(out, dim=-1)
        return L.deep_clustering_loss(out, who, binary_mask=audible).mean()

    return train(held, loss)


@step
def by_pmsqe():
    net = torch.nn.Linear(257, 257)
    loss = L.SingleSrcPMSQE().to(D)
    x, y = torch.rand(2, 257, 12, device=D), torch.rand(2, 257, 12, device=D)
    return train(net, lambda net: loss(net(x.transpose(1, 2)).relu().transpose(1, 2) + 1e-3, y).mean())


@step
def heard():
    """Of the recipe for voice activity."""
    from asteroid.models.conv_tasnet import VADNet

    net = VADNet(1, **TASNET)
    x, y = torch.randn(2, LONG, device=D), torch.randint(0, 2, (2, 1, LONG), device=D).float()
    loss = F1_loss()
    return train(net, lambda net: loss(net(x)[..., :LONG], y[..., : net(x).shape[-1]]))
