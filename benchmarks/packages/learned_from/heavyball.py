"""Training steps over HeavyBall 3.2.1: a small network, by each of its optimizers, and by what they may be told."""

import heavyball as H

F = torch.nn.functional


def network():
    return torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(24, 12), torch.nn.LayerNorm(12), torch.nn.Linear(12, 3)
    ).to(D)  # fmt: skip


def optimized(optimizer, closure=False, after=None, **more):
    """A step is one of an ordinary loop."""

    def make():
        net = network()
        stepping = optimizer(net.parameters(), **more)

        def forward():
            loss = F.cross_entropy(net(torch.randn(8, 2, 8, device=D)), torch.randint(0, 3, (8,), device=D))
            loss.backward()
            return loss

        def go():
            if closure:
                stepping.step(forward)
            else:
                forward()
                stepping.step()
            stepping.zero_grad()
            if after:
                after(stepping)

        return go

    return make


for name, kind in {
    "sgd": H.SGD,
    "adamw": H.AdamW,
    "nadam": H.NAdam,
    "ademamix": H.AdEMAMix,
    "unscaled_adamw": H.UnscaledAdamW,
    "suds_adamw": H.SUDSAdamW,
    "scion": H.Scion,
    "rmsprop": H.RMSprop,
    "hyperball": H.HyperBallAdamW,
    "muon_adamw": H.MuonAdamW,
    "schedule_free": H.SFAdamW,
    "msam": H.MSAMLaProp,
    "adopt": H.ADOPT,
    "muon": H.Muon,
    "laprop": H.LaProp,
    "sign_laprop": H.SignLaProp,
    "ortho_laprop": H.OrthoLaProp,
    "soap": H.SOAP,
    "kl_shampoo": H.KLShampoo,
    "psgd": H.PSGDKron,
    "lather": H.LATHER,
    "psgd_pro": H.PSGDPRO,
    "psgd_low_rank": H.PSGDLRA,
}.items():
    STEPS[name] = optimized(kind)

STEPS["adamw_decayed"] = optimized(H.AdamW, weight_decay=0.1, warmup_steps=3)
STEPS["adamw_cautious"] = optimized(H.AdamW, weight_decay=0.1, cautious_weight_decay=True)
STEPS["adamw_one_by_one"] = optimized(H.AdamW, multi_tensor=False)
STEPS["adamw_half"] = optimized(H.AdamW, storage_dtype="bfloat16")
STEPS["adamw_clipped"] = optimized(H.AdamW, gradient_clipping="l2_clip_")
STEPS["soap_each_step"] = optimized(H.SOAP, precondition_frequency=1)
STEPS["psgd_always"] = optimized(H.PSGDKron, preconditioner_update_probability=1.0)
STEPS["psgd_closure"] = optimized(H.PSGDKron, closure=True)
STEPS["sharpness"] = optimized(H.SAMWrapper, closure=True)
