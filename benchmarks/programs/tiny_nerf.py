"""Tiny NeRF: a radiance field of a coloured ball, stratified and hierarchical sampling, PSNR on a held-out view."""

import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

H = W = 16
FOCAL = 20.0
N_SAMPLES, N_IMPORTANCE = 8, 8
N_RAND = 64
N_ITERS = 45
I_PRINT, I_IMG, I_WEIGHTS = 10, 20, 40

img2mse = lambda x, y: torch.mean((x - y) ** 2)
mse2psnr = lambda x: -10.0 * torch.log(x) / torch.log(torch.Tensor([10.0]).to(device))
to8b = lambda x: (255 * np.clip(x, 0, 1)).astype(np.uint8)


class Embedder:
    def __init__(self, n_freqs):
        self.freqs = 2.0 ** torch.linspace(0.0, n_freqs - 1, n_freqs)

    def __call__(self, x):
        return torch.cat([x] + [fn(x * f) for f in self.freqs for fn in (torch.sin, torch.cos)], -1)


class NeRF(nn.Module):
    def __init__(self, D=3, width=32, input_ch=27, skips=(1,)):
        super().__init__()
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(input_ch, width)]
            + [nn.Linear(width + (input_ch if i in skips else 0), width) for i in range(D - 1)]
        )
        self.output_linear = nn.Linear(width, 4)

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i in self.skips:
                h = torch.cat([x, h], -1)
        return self.output_linear(h)


def get_rays(H, W, focal, c2w):
    i, j = torch.meshgrid(torch.linspace(0, W - 1, W), torch.linspace(0, H - 1, H), indexing="ij")
    i, j = i.t().to(device), j.t().to(device)
    dirs = torch.stack([(i - W * 0.5) / focal, -(j - H * 0.5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., np.newaxis, :] * c2w[:3, :3], -1)
    rays_o = c2w[:3, -1].expand(rays_d.shape)
    return rays_o, rays_d


def raw2outputs(raw, z_vals, rays_d, raw_noise_std=0.0, white_bkgd=False):
    dists = z_vals[..., 1:] - z_vals[..., :-1]
    dists = torch.cat([dists, torch.Tensor([1e10]).to(device).expand(dists[..., :1].shape)], -1)
    dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
    rgb = torch.sigmoid(raw[..., :3])
    noise = 0.0
    if raw_noise_std > 0.0:
        noise = torch.randn(raw[..., 3].shape, device=raw.device) * raw_noise_std
    alpha = 1.0 - torch.exp(-F.relu(raw[..., 3] + noise) * dists)
    weights = (
        alpha
        * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1), device=device), 1.0 - alpha + 1e-10], -1), -1)[
            :, :-1
        ]
    )
    rgb_map = torch.sum(weights[..., None] * rgb, -2)
    acc_map = torch.sum(weights, -1)
    if white_bkgd:
        rgb_map = rgb_map + (1.0 - acc_map[..., None])
    return rgb_map, acc_map, weights


def sample_pdf(bins, weights, n_samples, det=False):
    weights = weights + 1e-5
    pdf = weights / torch.sum(weights, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    if det:
        u = torch.linspace(0.0, 1.0, steps=n_samples).to(device)
        u = u.expand(list(cdf.shape[:-1]) + [n_samples])
    else:
        u = torch.rand(list(cdf.shape[:-1]) + [n_samples]).to(device)
    u = u.contiguous()
    inds = torch.searchsorted(cdf, u, right=True)
    below = torch.max(torch.zeros_like(inds - 1), inds - 1)
    above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
    inds_g = torch.stack([below, above], -1)
    matched_shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
    cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched_shape), 2, inds_g)
    bins_g = torch.gather(bins.unsqueeze(1).expand(matched_shape), 2, inds_g)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
    return bins_g[..., 0] + (u - cdf_g[..., 0]) / denom * (bins_g[..., 1] - bins_g[..., 0])


DEBUG = False


def render_rays(rays_o, rays_d, network_fn, network_fine, embed, perturb=1.0):
    t_vals = torch.linspace(0.0, 1.0, steps=N_SAMPLES, device=device)
    z_vals = (2.0 * (1.0 - t_vals) + 6.0 * t_vals).expand([rays_o.shape[0], N_SAMPLES])
    if perturb > 0.0:
        z_vals = z_vals + torch.rand(z_vals.shape).to(device) * 0.5
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
    rgb0, _, weights = raw2outputs(network_fn(embed(pts)), z_vals, rays_d)

    z_mid = 0.5 * (z_vals[..., 1:] + z_vals[..., :-1])
    z_samples = sample_pdf(z_mid, weights[..., 1:-1], N_IMPORTANCE, det=(perturb == 0.0)).detach()
    z_vals, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
    rgb, acc, _ = raw2outputs(network_fine(embed(pts)), z_vals, rays_d, raw_noise_std=0.1 if perturb else 0.0)
    ret = {"rgb": rgb, "rgb0": rgb0, "acc": acc}
    for k in ret:
        if (torch.isnan(ret[k]).any() or torch.isinf(ret[k]).any()) and DEBUG:
            print(f"! [Numerical Error] {k} contains nan or inf.")
    return ret


def make_scene(n_views=6):
    """Poses around the origin and images of a shaded ball."""
    images, poses = [], []
    yy, xx = np.mgrid[:H, :W]
    for a in np.linspace(0, 2 * np.pi, n_views, endpoint=False):
        c, s = np.cos(a), np.sin(a)
        pose = np.eye(4, dtype=np.float32)
        pose[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        pose[:3, 3] = [4 * s, 0, 4 * c]
        inside = ((xx - W / 2) ** 2 + (yy - H / 2) ** 2 < 25)[..., None]
        colour = np.array([0.5 + 0.5 * c, 0.4, 0.5 - 0.5 * s])
        images.append((inside * colour).astype(np.float32))
        poses.append(pose)
    return np.stack(images), np.stack(poses)


def render_path(poses, models, embed, savedir):
    """A video along a path; not part of training."""
    os.makedirs(savedir, exist_ok=True)
    for i, c2w in enumerate(poses):
        rays_o, rays_d = get_rays(H, W, FOCAL, c2w[:3, :4])
        rgb = render_rays(rays_o.reshape(-1, 3), rays_d.reshape(-1, 3), *models, embed, perturb=0.0)["rgb"]
        np.save(os.path.join(savedir, f"{i:03d}.npy"), to8b(rgb.reshape(H, W, 3).cpu().numpy()))


def train():
    np.random.seed(0)
    torch.manual_seed(0)
    images, poses = make_scene()
    testimg, testpose = torch.from_numpy(images[-1]).to(device), torch.from_numpy(poses[-1]).to(device)
    images, poses = torch.Tensor(images[:-1]).to(device), torch.Tensor(poses[:-1]).to(device)
    embed = Embedder(4)
    model, model_fine = NeRF().to(device), NeRF().to(device)
    optimizer = torch.optim.Adam(list(model.parameters()) + list(model_fine.parameters()), lr=5e-3)
    psnrs, iternums = [], []
    t = time.time()

    for i in range(N_ITERS):
        img_i = np.random.choice(images.shape[0])
        target = images[img_i]
        pose = poses[img_i, :3, :4]
        rays_o, rays_d = get_rays(H, W, FOCAL, pose)
        coords = torch.stack(
            torch.meshgrid(torch.linspace(0, H - 1, H), torch.linspace(0, W - 1, W), indexing="ij"), -1
        )
        coords = torch.reshape(coords, [-1, 2])
        select_inds = np.random.choice(coords.shape[0], size=[N_RAND], replace=False)
        select_coords = coords[select_inds].long()
        rays_o = rays_o[select_coords[:, 0], select_coords[:, 1]]
        rays_d = rays_d[select_coords[:, 0], select_coords[:, 1]]
        target_s = target[select_coords[:, 0], select_coords[:, 1]]

        out = render_rays(rays_o, rays_d, model, model_fine, embed)
        optimizer.zero_grad()
        img_loss = img2mse(out["rgb"], target_s)
        loss = img_loss + img2mse(out["rgb0"], target_s)
        psnr = mse2psnr(img_loss)
        loss.backward()
        optimizer.step()

        new_lrate = 5e-3 * (0.1 ** (i / 1000))
        for param_group in optimizer.param_groups:
            param_group["lr"] = new_lrate

        if i % I_PRINT == 0:
            print(f"[TRAIN] Iter: {i} Loss: {loss.item()} PSNR: {psnr.item()} {time.time() - t:.1f}s")
        if i % I_IMG == 0:
            with torch.no_grad():
                rays_o, rays_d = get_rays(H, W, FOCAL, testpose[:3, :4])
                rgb = render_rays(rays_o.reshape(-1, 3), rays_d.reshape(-1, 3), model, model_fine, embed, perturb=0.0)[
                    "rgb"
                ]
                test_loss = torch.mean((rgb.reshape(H, W, 3) - testimg) ** 2)
                psnrs.append(-10.0 * np.log10(test_loss.item()))
                iternums.append(i)
            np.save("view.npy", to8b(rgb.cpu().numpy()))
        if i % I_WEIGHTS == 0:
            torch.save({"fn": model.state_dict(), "fine": model_fine.state_dict()}, "nerf.tar")
    print(list(zip(iternums, psnrs)))


if __name__ == "__main__":
    train()
