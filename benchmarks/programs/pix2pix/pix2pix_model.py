import itertools
import os
from collections import OrderedDict

import networks
import numpy as np
import torch
from image_pool import ImagePool


class Pix2PixModel:
    def __init__(self, opt):
        self.opt = opt
        self.gpu_ids = opt.gpu_ids
        self.device = torch.device("cuda:{}".format(self.gpu_ids[0])) if self.gpu_ids else torch.device("cpu")
        self.loss_names = ["G_GAN", "G_L1", "D_real", "D_fake", "D_gp"]
        self.visual_names = ["real_A", "fake_B", "real_B"]
        self.model_names = ["G", "D"]
        self.netG = networks.define_G(1, 1, opt.ngf, self.gpu_ids)
        self.netD = networks.define_D(2, opt.ndf, self.gpu_ids)
        self.fake_AB_pool = ImagePool(opt.pool_size)
        self.criterionGAN = networks.GANLoss(opt.gan_mode).to(self.device)
        self.criterionL1 = torch.nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(
            itertools.chain(self.netG.parameters()), lr=opt.lr, betas=(opt.beta1, 0.999)
        )
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

    def set_input(self, data):
        AtoB = self.opt.direction == "AtoB"
        self.real_A = data["A" if AtoB else "B"].to(self.device)
        self.real_B = data["B" if AtoB else "A"].to(self.device)

    def forward(self):
        self.fake_B = self.netG(self.real_A)

    def backward_D(self):
        fake_AB = self.fake_AB_pool.query(torch.cat((self.real_A, self.fake_B), 1))
        self.loss_D_fake = self.criterionGAN(self.netD(fake_AB.detach()), False)
        real_AB = torch.cat((self.real_A, self.real_B), 1)
        self.loss_D_real = self.criterionGAN(self.netD(real_AB), True)
        self.loss_D_gp = networks.cal_gradient_penalty(self.netD, real_AB, fake_AB.detach(), self.device, lambda_gp=0.1)
        self.loss_D = (self.loss_D_fake + self.loss_D_real) * 0.5 + self.loss_D_gp
        self.loss_D.backward()

    def backward_G(self):
        fake_AB = torch.cat((self.real_A, self.fake_B), 1)
        self.loss_G_GAN = self.criterionGAN(self.netD(fake_AB), True)
        self.loss_G_L1 = self.criterionL1(self.fake_B, self.real_B) * self.opt.lambda_L1
        self.loss_G = self.loss_G_GAN + self.loss_G_L1
        self.loss_G.backward()

    def set_requires_grad(self, net, requires_grad):
        for param in net.parameters():
            param.requires_grad = requires_grad

    def optimize_parameters(self):
        self.forward()
        self.set_requires_grad(self.netD, True)
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.set_requires_grad(self.netD, False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()

    def get_current_losses(self):
        errors_ret = OrderedDict()
        for name in self.loss_names:
            errors_ret[name] = float(
                getattr(self, "loss_" + name)
            )  # float(...) works for both scalar tensor and float number
        return errors_ret

    def get_current_visuals(self):
        return OrderedDict((name, getattr(self, name)) for name in self.visual_names)

    def save_networks(self, epoch):
        for name in self.model_names:
            path = os.path.join(self.opt.checkpoints_dir, "%s_net_%s.pth" % (epoch, name))
            net = getattr(self, "net" + name)
            if len(self.gpu_ids) > 0 and torch.cuda.is_available():
                torch.save(net.cpu().state_dict(), path)
                net.cuda(self.gpu_ids[0])
            else:
                torch.save(net.cpu().state_dict(), path)


def tensor2im(input_image, imtype=np.uint8):
    """Converts a Tensor array into a numpy image array."""
    image_numpy = input_image[0].cpu().float().numpy()
    if image_numpy.shape[0] == 1:
        image_numpy = np.tile(image_numpy, (3, 1, 1))
    image_numpy = (np.transpose(image_numpy, (1, 2, 0)) + 1) / 2.0 * 255.0
    return image_numpy.astype(imtype)
