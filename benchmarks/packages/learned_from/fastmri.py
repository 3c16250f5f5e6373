"""Training steps over fastMRI 0.3.0: networks that reconstruct pictures of magnetic resonance, by the steps that Lightning calls."""

absent("skimage")

import fastmri
from fastmri.data import transforms as T
from fastmri.data.subsample import EquispacedMaskFractionFunc, RandomMaskFunc
from fastmri.models import Unet, VarNet
from fastmri.models.varnet import NormUnet, SensitivityModel
from fastmri.models.adaptive_varnet import AdaptiveVarNet
from fastmri.pl_modules import UnetModule, VarNetModule

SLICES, COILS, SIZE = 1, 3, 32


def mask(kind=RandomMaskFunc):
    return kind(center_fractions=[0.2], accelerations=[2])


def kspace():
    return torch.randn(SLICES, COILS, SIZE, SIZE, 2)


def sampled(masking, low=False):
    """What the loader gives: the k-space that was measured, the mask, and the picture that is sought, brought to the device."""
    measured, chosen, lines = T.apply_mask(kspace(), masking)
    target = torch.rand(SLICES, SIZE, SIZE)
    return T.VarNetSample(
        masked_kspace=measured.to(D),
        mask=chosen.bool().to(D),
        num_low_frequencies=(torch.tensor([lines] * SLICES) if low else torch.zeros(SLICES, dtype=torch.int)).to(D),
        target=target.to(D),
        fname=["a"] * SLICES,
        slice_num=torch.arange(SLICES).to(D),
        max_value=target.amax((1, 2)).to(D),
        crop_size=(SIZE, SIZE),
    )


def stepped(module, batch):
    def make():
        model = module().to(D).train()
        model.log = lambda *_, **__: None
        optimizer = model.configure_optimizers()[0][0]

        def go():
            loss = model.training_step(batch(), 0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return go

    return make


def images():
    measured, _, _ = T.apply_mask(kspace(), mask())
    picture = fastmri.rss(fastmri.complex_abs(fastmri.ifft2c(measured)), dim=1)
    picture, mean, std = T.normalize_instance(picture, eps=1e-11)
    return T.UnetSample(
        image=picture.to(D),
        target=torch.rand(SLICES, SIZE, SIZE).to(D),
        mean=mean.to(D),
        std=std.to(D),
        fname=["a"] * SLICES,
        slice_num=torch.arange(SLICES),
        max_value=torch.ones(SLICES),
    )


STEPS["unet"] = stepped(lambda: UnetModule(chans=4, num_pool_layers=2, drop_prob=0.1), images)


def varnet(**more):
    return VarNetModule(num_cascades=2, pools=2, chans=4, sens_pools=2, sens_chans=4, **more)


STEPS["varnet"] = stepped(varnet, lambda: sampled(mask()))
STEPS["varnet_low_frequencies"] = stepped(varnet, lambda: sampled(mask(), low=True))
STEPS["varnet_equispaced"] = stepped(varnet, lambda: sampled(mask(EquispacedMaskFractionFunc)))


@step
def varnet_without_center():
    net = VarNet(num_cascades=1, sens_chans=4, sens_pools=2, chans=4, pools=2, mask_center=False)

    def loss(model):
        batch = sampled(mask())
        return (model(batch.masked_kspace, batch.mask) - batch.target).abs().mean()

    return train(net, loss)


@step
def ssim():
    """A network of pictures that is trained by SSIM, on what is measured and reconstructed on the device."""
    similarity = fastmri.SSIMLoss().to(D)

    def loss(net):
        measured, _, _ = T.apply_mask(kspace().to(D), mask())
        picture = fastmri.rss_complex(fastmri.ifft2c(measured), dim=1)
        target = torch.rand(SLICES, 1, SIZE, SIZE, device=D)
        found, target = T.center_crop_to_smallest(net(picture.unsqueeze(1)), target)
        return similarity(found, target, data_range=target.amax((1, 2, 3)))

    return train(Unet(1, 1, chans=4, num_pool_layers=2), loss)


def adaptive(**more):
    """The mask is learned with the network."""

    def make():
        net = AdaptiveVarNet(
            budget=8,
            num_cascades=2,
            sens_chans=4,
            sens_pools=2,
            chans=4,
            pools=2,
            num_actions=SIZE,
            crop_size=(SIZE, SIZE),
            **more,
        )
        similarity = fastmri.SSIMLoss().to(D)

        def loss(model):
            batch = sampled(mask())
            full = kspace().to(D)
            found, *_ = model(full, batch.masked_kspace, batch.mask.expand(SLICES, 1, 1, SIZE, 1).float())
            target, found = T.center_crop_to_smallest(batch.target, found)
            return similarity(found.unsqueeze(1), target.unsqueeze(1), data_range=batch.max_value)

        return train(net, loss)

    return make


STEPS["loupe"] = adaptive(loupe_mask=True)
STEPS["loupe_hard"] = adaptive(loupe_mask=True, hard_dc=True, dc_mode="first", st_clamp=True)
STEPS["policy"] = adaptive(num_sense_lines=4)
STEPS["policy_of_two_cascades"] = adaptive(num_sense_lines=4, cascades_per_policy=1)


@step
def normalized_unet():
    """A network of complex pictures, which it normalizes itself."""

    def loss(net):
        measured, _, _ = T.apply_mask(kspace(), mask())
        picture = fastmri.ifft2c(measured.to(D))[:, :1]
        return fastmri.complex_abs(net(picture) - picture).mean()

    return train(NormUnet(4, 2), loss)


@step
def sensitivities():
    """The maps of how much each coil sees, alone."""

    def loss(net):
        batch = sampled(mask())
        return fastmri.complex_abs_sq(net(batch.masked_kspace, batch.mask)).mean()

    return train(SensitivityModel(4, 2), loss)
