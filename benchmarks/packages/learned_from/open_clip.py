"""Training steps over open_clip_torch 3.3.0: small CLIP, SigLIP and CoCa models, by its `train_one_epoch`."""

import sys
import types

sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("none"))  # where its operators are not built
for absent in ("webdataset", "braceexpand"):
    sys.modules.setdefault(absent, types.ModuleType(absent))
sys.modules["webdataset"].__dict__.update(dict.fromkeys(("DataPipeline", "PytorchShardList"), object))

import open_clip
from open_clip import CLIP, CLIPTextCfg, CLIPVisionCfg, CoCa, CustomTextCLIP, SimpleTokenizer, create_loss
from open_clip.coca_model import MultimodalCfg
from open_clip_train import scheduler as schedules
from open_clip_train.params import parse_args
from open_clip_train.train import train_one_epoch
from torch.utils.data import DataLoader, TensorDataset

VOCABULARY, CONTEXT = 200, 12
VISION = {"layers": 2, "width": 32, "head_width": 16, "patch_size": 16, "image_size": 64}
TEXT = {"context_length": CONTEXT, "vocab_size": VOCABULARY, "width": 32, "heads": 2, "layers": 2}


def clip(vision=None, text=None, kind=CLIP, **more):
    """A small model, as `create_model` makes one of a configuration."""
    vision, text = CLIPVisionCfg(**{**VISION, **(vision or {})}), CLIPTextCfg(**{**TEXT, **(text or {})})
    return kind(embed_dim=32, vision_cfg=vision, text_cfg=text, output_dict=True, **more)


def pairs(context=CONTEXT):
    """Pictures and their captions, the last word of which has the largest number."""
    texts = torch.randint(1, VOCABULARY - 1, (16, context))
    texts[:, -1] = VOCABULARY - 1
    return TensorDataset(torch.randn(16, 3, 64, 64), texts)


class Data:
    """What the package's `DataInfo` holds."""

    def __init__(self, data, batch_size):
        self.dataloader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
        self.dataloader.num_samples, self.dataloader.num_batches = len(data), len(self.dataloader)

    def set_epoch(self, _epoch):
        pass


def epochs(model, *options, name="ViT-B-32", data=None, teacher=None):
    """A step is an epoch of two or four batches; each batch is logged."""
    args = parse_args(["--model", name, "--batch-size", "4", "--log-every-n-steps", "1", *options])
    args.device, args.distributed, args.rank, args.world_size = D, False, 0, 1
    args.horovod, args.wandb, args.distill = False, False, teacher is not None
    model = model.to(D)
    if args.grad_checkpointing:
        model.set_grad_checkpointing()
    loss = create_loss(args)
    kept = [each for each in model.parameters() if each.requires_grad]
    groups = [
        {"params": [each for each in kept if each.ndim < 2], "weight_decay": 0.0},
        {"params": [each for each in kept if each.ndim >= 2], "weight_decay": args.wd},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.98), eps=1e-6)
    scaler = torch.amp.GradScaler(device=D) if args.precision == "amp" else None
    made = {
        "cosine": lambda: schedules.cosine_lr(optimizer, 1e-4, 10, 1000),
        "const": lambda: schedules.const_lr(optimizer, 1e-4, 10, 1000),
        "const-cooldown": lambda: schedules.const_lr_cooldown(optimizer, 1e-4, 10, 1000, 100, 1.0, 0.0),
    }
    schedule = made[args.lr_scheduler]()
    held = {"train": Data(data or pairs(), args.batch_size)}
    if teacher is not None:
        teacher = teacher.to(D)
    return lambda: train_one_epoch(model, held, loss, 0, optimizer, scaler, schedule, teacher, args)


FULL = ("--precision", "fp32")


@step
def vit():
    return epochs(clip(), *FULL)


@step
def vit_amp():
    return epochs(clip())


@step
def vit_amp_bf16_clipped():
    return epochs(clip(quick_gelu=True), "--precision", "amp_bf16", "--grad-clip-norm", "1.0")


@step
def vit_amp_clipped():
    return epochs(clip(), "--grad-clip-norm", "1.0", "--lr-scheduler", "const")


@step
def vit_gathered():
    return epochs(clip(), *FULL, "--accum-freq", "2", "--skip-scheduler")


@step
def vit_checkpointed():
    return epochs(clip(), *FULL, "--grad-checkpointing", "--lr-scheduler", "const-cooldown")


@step
def vit_with_dropped_patches():
    return epochs(clip({"patch_dropout": 0.5, "ls_init_value": 1e-5}, {"ls_init_value": 1e-5}), *FULL)


@step
def vit_with_pooled_attention():
    vision = {
        "attentional_pool": True,
        "attn_pooler_heads": 2,
        "attn_pooler_queries": 8,
        "pos_embed_type": "sin_cos_2d",
    }
    return epochs(clip(vision), *FULL)


@step
def vit_averaged():
    vision = {"pool_type": "avg", "final_ln_after_pool": True, "no_ln_pre": True}
    return epochs(clip(vision, {"pool_type": "last", "no_causal_mask": True}), *FULL)


@step
def vit_locked():
    model = clip()
    model.lock_image_tower(unlocked_groups=1)
    return epochs(model, *FULL)


@step
def resnet():
    return epochs(clip({"layers": [1, 1, 1, 1], "width": 16, "head_width": 16}), *FULL)


@step
def resnet_locked():
    model = clip({"layers": [1, 1, 1, 1], "width": 16, "head_width": 16})
    model.lock_image_tower(unlocked_groups=0, freeze_bn_stats=True)
    return epochs(model, *FULL)


@step
def timm_tower():
    vision = {"timm_model_name": "resnet18", "timm_pool": "avg", "timm_proj": "linear"}
    return epochs(clip(vision, kind=CustomTextCLIP), *FULL)


@step
def timm_tower_with_dropped_paths():
    vision = {"timm_model_name": "convnext_atto", "timm_pool": "avg", "timm_proj": "mlp", "timm_drop_path": 0.1}
    text = {"pool_type": "last", "proj_bias": True, "no_causal_mask": True}
    return epochs(clip(vision, text, kind=CustomTextCLIP), *FULL)


def siglip():
    return clip(
        {"pool_type": "avg"},
        {"pool_type": "last", "no_causal_mask": True},
        kind=CustomTextCLIP,
        init_logit_scale=float(np.log(10)),
        init_logit_bias=-10.0,
    )


@step
def siglip_loss():
    return epochs(siglip(), *FULL, "--siglip")


@step
def siglip_loss_gathered():
    return epochs(siglip(), "--siglip", "--accum-freq", "2", "--precision", "amp_bf16")


@step
def text_with_class_token():
    return epochs(clip(text={"embed_cls": True, "pad_id": 0}, kind=CustomTextCLIP), *FULL)


def coca():
    several = MultimodalCfg(context_length=CONTEXT, vocab_size=VOCABULARY, width=32, heads=2, layers=2)
    vision = CLIPVisionCfg(
        **VISION, attentional_pool=True, attn_pooler_queries=8, attn_pooler_heads=2, output_tokens=True
    )
    text = CLIPTextCfg(**TEXT, embed_cls=True, output_tokens=True)
    return CoCa(embed_dim=32, multimodal_cfg=several, text_cfg=text, vision_cfg=vision)


@step
def coca_captions():
    return epochs(coca(), *FULL, name="coca_ViT-B-32")


@step
def coca_captions_clipped():
    options = ("--grad-clip-norm", "1.0", "--coca-caption-loss-weight", "2.0", "--coca-contrastive-loss-weight", "1.0")
    return epochs(coca(), *options, name="coca_ViT-B-32")


@step
def distilled():
    return epochs(clip(), *FULL, teacher=clip())


@step
def words_and_pictures():
    """Captions that are tokenized and pictures that are transformed as they are asked for."""
    from PIL import Image

    tokenizer = SimpleTokenizer(context_length=CONTEXT)
    transform = open_clip.image_transform(64, is_train=True)

    class Captioned(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            picture = Image.fromarray(np.random.randint(0, 255, (80, 80, 3), dtype=np.uint8))
            return transform(picture), tokenizer([f"a picture of {index} cats"])[0]

    return epochs(clip(text={"vocab_size": tokenizer.vocab_size}), *FULL, data=Captioned())
