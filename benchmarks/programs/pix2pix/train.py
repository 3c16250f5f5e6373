"""General-purpose training script for image-to-image translation."""

import argparse
import os
import time

import numpy as np
import torch
from pix2pix_model import Pix2PixModel, tensor2im
from sklearn.datasets import load_digits


class AlignedDataset(torch.utils.data.Dataset):
    """Outlines and filled digits."""

    def __init__(self, n):
        images = load_digits().images[:n].astype(np.float32) / 8 - 1
        self.B = torch.from_numpy(images)[:, None]
        self.A = torch.where(self.B > 0.3, 1.0, -1.0)

    def __len__(self):
        return len(self.A)

    def __getitem__(self, i):
        return {"A": self.A[i], "B": self.B[i], "A_paths": f"{i}.png"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n_epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--print_freq", type=int, default=20)
    parser.add_argument("--display_freq", type=int, default=40)
    parser.add_argument("--save_epoch_freq", type=int, default=1)
    parser.add_argument("--ngf", type=int, default=8)
    parser.add_argument("--ndf", type=int, default=8)
    parser.add_argument("--pool_size", type=int, default=8)
    parser.add_argument("--gan_mode", default="lsgan")
    parser.add_argument("--lr", type=float, default=0.0002)
    parser.add_argument("--beta1", type=float, default=0.5)
    parser.add_argument("--lambda_L1", type=float, default=10.0)
    parser.add_argument("--direction", default="AtoB")
    parser.add_argument("--checkpoints_dir", default="checkpoints")
    opt = parser.parse_args()
    opt.gpu_ids = [0] if torch.cuda.is_available() else []
    os.makedirs(opt.checkpoints_dir, exist_ok=True)
    torch.manual_seed(0)

    dataset = torch.utils.data.DataLoader(AlignedDataset(100), batch_size=opt.batch_size, shuffle=True)
    print("The number of training images = %d" % len(dataset.dataset))
    model = Pix2PixModel(opt)
    total_iters = 0

    for epoch in range(1, opt.n_epochs + 1):
        epoch_start_time = time.time()
        iter_data_time = time.time()
        epoch_iter = 0
        for i, data in enumerate(dataset):
            iter_start_time = time.time()
            if total_iters % opt.print_freq == 0:
                t_data = iter_start_time - iter_data_time

            total_iters += opt.batch_size
            epoch_iter += opt.batch_size
            model.set_input(data)
            model.optimize_parameters()

            if total_iters % opt.display_freq == 0:
                for label, image in model.get_current_visuals().items():
                    np.save(
                        os.path.join(opt.checkpoints_dir, "epoch%.3d_%s.npy" % (epoch, label)),
                        tensor2im(image.detach()),
                    )

            if total_iters % opt.print_freq == 0:
                losses = model.get_current_losses()
                t_comp = (time.time() - iter_start_time) / opt.batch_size
                message = "(epoch: %d, iters: %d, time: %.3f, data: %.3f) " % (epoch, epoch_iter, t_comp, t_data)
                print(message + " ".join("%s: %.3f" % (k, v) for k, v in losses.items()))

            iter_data_time = time.time()
        if epoch % opt.save_epoch_freq == 0:
            model.save_networks(epoch)
        print("End of epoch %d / %d \t Time Taken: %d sec" % (epoch, opt.n_epochs, time.time() - epoch_start_time))
