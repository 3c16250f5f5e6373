import torch
import torch.nn as nn
import torch.nn.functional as F
from config import ModelConfig


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.cos(freqs), torch.sin(freqs)


def apply_rotary(x, cos, sin):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.n_heads, self.head_dim = cfg.n_heads, cfg.dim // cfg.n_heads
        self.wqkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.wo = nn.Linear(cfg.dim, cfg.dim, bias=False)

    def forward(self, x, cos, sin, doc_ids=None):
        b, t, d = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, self.n_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        if doc_ids is not None:
            mask = mask & (doc_ids[:, None, :, None] == doc_ids[:, None, None, :])
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(out.transpose(1, 2).reshape(b, t, d))


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w1, self.w2, self.w3 = (
            nn.Linear(dim, dim * 2, bias=False),
            nn.Linear(dim * 2, dim, bias=False),
            nn.Linear(dim, dim * 2, bias=False),
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class MoE(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.n_experts, self.top_k = cfg.n_experts, cfg.top_k
        self.gate = nn.Linear(cfg.dim, cfg.n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(cfg.dim) for _ in range(cfg.n_experts))
        self.aux_loss = None

    def forward(self, x):
        shape = x.shape
        x = x.view(-1, shape[-1])
        probs = F.softmax(self.gate(x), dim=-1, dtype=torch.float32)
        weights, selected = torch.topk(probs, self.top_k, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        density = F.one_hot(selected, self.n_experts).float().mean((0, 1))
        self.aux_loss = self.n_experts * (density * probs.mean(0)).sum()
        results = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(selected == i)
            if batch_idx.numel() == 0:
                continue
            results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(x[batch_idx])
        return results.view(shape)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn, self.moe = Attention(cfg), MoE(cfg)
        self.norm1, self.norm2 = RMSNorm(cfg.dim), RMSNorm(cfg.dim)

    def forward(self, x, cos, sin, doc_ids):
        x = x + self.attn(self.norm1(x), cos, sin, doc_ids)
        return x + self.moe(self.norm2(x))


class MoETransformer(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.cfg = cfg
        self.tok = nn.Embedding(cfg.vocab_size, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layers))
        self.norm = RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab_size, bias=False)
        self.cos, self.sin = precompute_freqs_cis(cfg.dim // cfg.n_heads, cfg.max_seq_len)

    def forward(self, tokens, targets=None, doc_ids=None):
        t = tokens.size(1)
        self.cos, self.sin = self.cos.to(tokens.device), self.sin.to(tokens.device)
        cos, sin = self.cos[:t], self.sin[:t]
        h = self.tok(tokens)
        for block in self.blocks:
            h = block(h, cos, sin, doc_ids)
        logits = self.head(self.norm(h))
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.float().view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
        return logits, loss

    def aux_loss(self):
        return torch.stack([b.moe.aux_loss for b in self.blocks]).mean()

    @torch.inference_mode()
    def generate(self, tokens, n, temperature=0.8, top_p=0.9, eos=0):
        for _ in range(n):
            logits, _ = self(tokens[:, -self.cfg.max_seq_len :])
            probs = torch.softmax(logits[:, -1] / temperature, -1)
            sorted_probs, idx = probs.sort(descending=True)
            keep = sorted_probs.cumsum(-1) - sorted_probs <= top_p
            next_token = idx.gather(-1, torch.multinomial(sorted_probs * keep, 1))
            tokens = torch.cat([tokens, next_token], -1)
            if (next_token == eos).all():
                break
        return tokens
