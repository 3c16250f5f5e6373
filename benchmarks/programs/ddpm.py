"""Denoising diffusion on the digits, with an EMA of the weights."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def cycle(dl):
    while True:
        yield from dl


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


def cosine_beta_schedule(timesteps, s=0.008):
    steps = timesteps + 1
    t = torch.linspace(0, timesteps, steps, dtype=torch.float64) / timesteps
    alphas_cumprod = torch.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    return torch.clip(1 - (alphas_cumprod[1:] / alphas_cumprod[:-1]), 0, 0.999)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        device = x.device
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.init_conv = nn.Conv2d(1, dim, 3, padding=1)
        self.block1 = nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1), nn.GroupNorm(4, dim), nn.SiLU())
        self.block2 = nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1), nn.GroupNorm(4, dim), nn.SiLU())
        self.final = nn.Conv2d(dim, 1, 1)

    def forward(self, x, t):
        emb = self.time_mlp(t)
        x = self.init_conv(x)
        h = self.block1(x) + emb[:, :, None, None]
        return self.final(self.block2(h) + x)


class GaussianDiffusion(nn.Module):
    def __init__(self, model, image_size=8, timesteps=20):
        super().__init__()
        self.model, self.image_size, self.num_timesteps = model, image_size, timesteps
        betas = cosine_beta_schedule(timesteps)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)

        def register_buffer(name, val):
            self.register_buffer(name, val.to(torch.float32))

        register_buffer("betas", betas)
        register_buffer("alphas_cumprod", alphas_cumprod)
        register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1.0 - alphas_cumprod))
        register_buffer("sqrt_recip_alphas", torch.sqrt(1.0 / alphas))
        register_buffer("posterior_variance", betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod))

    @property
    def device(self):
        return self.betas.device

    @torch.inference_mode()
    def p_sample(self, x, t: int):
        b = x.shape[0]
        batched_times = torch.full((b,), t, device=self.device, dtype=torch.long)
        noise_pred = self.model(x, batched_times)
        coef = extract(self.betas, batched_times, x.shape) / extract(
            self.sqrt_one_minus_alphas_cumprod, batched_times, x.shape
        )
        mean = extract(self.sqrt_recip_alphas, batched_times, x.shape) * (x - coef * noise_pred)
        noise = torch.randn_like(x) if t > 0 else 0.0
        return mean + extract(self.posterior_variance, batched_times, x.shape).sqrt() * noise

    @torch.inference_mode()
    def sample(self, batch_size=4):
        img = torch.randn((batch_size, 1, self.image_size, self.image_size), device=self.device)
        for t in tqdm(reversed(range(0, self.num_timesteps)), desc="sampling loop time step"):
            img = self.p_sample(img, t)
        return (img.clamp(-1, 1) + 1) * 0.5

    def q_sample(self, x_start, t, noise):
        return (
            extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
            + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise
        )

    def forward(self, img):
        b = img.shape[0]
        t = torch.randint(0, self.num_timesteps, (b,), device=img.device).long()
        img = img * 2 - 1
        noise = torch.randn_like(img)
        x = self.q_sample(img, t, noise)
        return F.mse_loss(self.model(x, t), noise)


class EMA:
    def __init__(self, model, beta=0.995):
        self.beta, self.model = beta, copy.deepcopy(model)
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.model.parameters(), model.parameters()):
            ema_p.lerp_(p, 1 - self.beta)


class Trainer:
    def __init__(
        self, diffusion, dataset, *, batch_size=16, lr=1e-3, train_num_steps=24, accumulate=2, sample_every=10
    ):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = diffusion.to(self.device)
        self.dl = cycle(DataLoader(dataset, batch_size=batch_size, shuffle=True, pin_memory=True))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr, betas=(0.9, 0.99))
        self.ema = EMA(self.model)
        self.step = 0
        self.train_num_steps, self.accumulate, self.sample_every = train_num_steps, accumulate, sample_every

    def save(self, milestone):
        data = {"step": self.step, "model": self.model.state_dict(), "opt": self.opt.state_dict()}
        torch.save(data, f"model-{milestone}.pt")

    def load(self, milestone):
        data = torch.load(f"model-{milestone}.pt", map_location=self.device)
        self.model.load_state_dict(data["model"])
        self.step = data["step"]
        self.opt.load_state_dict(data["opt"])

    def train(self):
        with tqdm(initial=self.step, total=self.train_num_steps) as pbar:
            while self.step < self.train_num_steps:
                self.model.train()
                total_loss = 0.0
                for _ in range(self.accumulate):
                    (data,) = next(self.dl)
                    data = data.to(self.device)
                    loss = self.model(data) / self.accumulate
                    total_loss += loss.item()
                    loss.backward()
                pbar.set_description(f"loss: {total_loss:.4f}")
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.opt.zero_grad()
                self.step += 1
                self.ema.update(self.model)
                if self.step != 0 and self.step % self.sample_every == 0:
                    self.ema.model.eval()
                    milestone = self.step // self.sample_every
                    images = self.ema.model.sample(batch_size=4)
                    torch.save(images.cpu(), f"sample-{milestone}.pt")
                    print("sample mean", images.mean().item())
                    self.save(milestone)
                pbar.update(1)
        print("training complete")


if __name__ == "__main__":
    torch.manual_seed(0)
    images = torch.tensor(load_digits().images[:256] / 16.0, dtype=torch.float32).unsqueeze(1)
    trainer = Trainer(GaussianDiffusion(Denoiser()), TensorDataset(images))
    trainer.train()
