from dataclasses import dataclass, field


@dataclass
class ModelConfig:
    vocab_size: int = 50
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 2
    n_experts: int = 4
    top_k: int = 2
    max_seq_len: int = 24


@dataclass
class TrainConfig:
    model: ModelConfig = field(default_factory=ModelConfig)
    batch_size: int = 4
    grad_accum: int = 2
    lr: float = 3e-4
    weight_decay: float = 0.1
    max_steps: int = 24
    aux_weight: float = 0.01
    log_every: int = 8
    eval_every: int = 12
    max_norm: float = 1.0
    skip_norm: float = 50.0
    dtype: str = "bfloat16"
    out_dir: str = "ckpt"
