import functools

import torch
import torch.nn as nn
from torch.nn import init


def init_weights(net, init_gain=0.02):
    def init_func(m):
        classname = m.__class__.__name__
        if hasattr(m, "weight") and (classname.find("Conv") != -1 or classname.find("Linear") != -1):
            init.normal_(m.weight.data, 0.0, init_gain)
            if hasattr(m, "bias") and m.bias is not None:
                init.constant_(m.bias.data, 0.0)

    net.apply(init_func)
    return net


def init_net(net, gpu_ids=()):
    if len(gpu_ids) > 0:
        assert torch.cuda.is_available()
        net.to(gpu_ids[0])
    return init_weights(net)


class GANLoss(nn.Module):
    """Creates the target label tensor of the same size as the input."""

    def __init__(self, gan_mode, target_real_label=1.0, target_fake_label=0.0):
        super(GANLoss, self).__init__()
        self.register_buffer("real_label", torch.tensor(target_real_label))
        self.register_buffer("fake_label", torch.tensor(target_fake_label))
        self.gan_mode = gan_mode
        self.loss = {"lsgan": nn.MSELoss(), "vanilla": nn.BCEWithLogitsLoss(), "wgangp": None}[gan_mode]

    def get_target_tensor(self, prediction, target_is_real):
        target_tensor = self.real_label if target_is_real else self.fake_label
        return target_tensor.expand_as(prediction)

    def __call__(self, prediction, target_is_real):
        if self.loss is not None:
            return self.loss(prediction, self.get_target_tensor(prediction, target_is_real))
        return -prediction.mean() if target_is_real else prediction.mean()


def cal_gradient_penalty(netD, real_data, fake_data, device, constant=1.0, lambda_gp=10.0):
    alpha = torch.rand(real_data.shape[0], 1, device=device)
    alpha = (
        alpha.expand(real_data.shape[0], real_data.nelement() // real_data.shape[0]).contiguous().view(*real_data.shape)
    )
    interpolatesv = (alpha * real_data + ((1 - alpha) * fake_data)).requires_grad_(True)
    disc = netD(interpolatesv)
    gradients = torch.autograd.grad(
        outputs=disc,
        inputs=interpolatesv,
        grad_outputs=torch.ones(disc.size()).to(device),
        create_graph=True,
        retain_graph=True,
    )[0]
    gradients = gradients.view(real_data.size(0), -1)
    return (((gradients + 1e-16).norm(2, dim=1) - constant) ** 2).mean() * lambda_gp


class ResnetBlock(nn.Module):
    def __init__(self, dim, norm_layer):
        super().__init__()
        self.conv_block = nn.Sequential(
            nn.Conv2d(dim, dim, 3, padding=1), norm_layer(dim), nn.ReLU(True), nn.Conv2d(dim, dim, 3, padding=1)
        )

    def forward(self, x):
        return x + self.conv_block(x)


def define_G(input_nc, output_nc, ngf, gpu_ids=()):
    norm_layer = functools.partial(nn.InstanceNorm2d, affine=False, track_running_stats=False)
    net = nn.Sequential(
        nn.Conv2d(input_nc, ngf, 5, padding=2),
        nn.ReLU(True),
        ResnetBlock(ngf, norm_layer),
        nn.Conv2d(ngf, output_nc, 3, padding=1),
        nn.Tanh(),
    )
    return init_net(net, gpu_ids)


def define_D(input_nc, ndf, gpu_ids=()):
    net = nn.Sequential(nn.Conv2d(input_nc, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(ndf, 1, 4, 1, 1))
    return init_net(net, gpu_ids)
