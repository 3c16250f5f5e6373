"""Training steps over LeRobot 0.4.4: the updates of its imitating policies, with their processors, and its SAC learner."""

import sys
from unittest import mock

for absent in ("rerun", "pynput", "grpc"):
    try:
        __import__(absent)
    except (ImportError, OSError, RuntimeError):
        sys.modules[absent] = mock.MagicMock()

from accelerate import Accelerator
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy
from lerobot.policies.factory import make_pre_post_processors
from lerobot.policies.sac.configuration_sac import ActorNetworkConfig, CriticNetworkConfig, SACConfig
from lerobot.policies.sac.modeling_sac import SACPolicy
from lerobot.policies.tdmpc.configuration_tdmpc import TDMPCConfig
from lerobot.policies.tdmpc.modeling_tdmpc import TDMPCPolicy
from lerobot.policies.vqbet.configuration_vqbet import VQBeTConfig
from lerobot.policies.vqbet.modeling_vqbet import VQBeTPolicy
from lerobot.rl.buffer import ReplayBuffer, concatenate_batch_transitions
from lerobot.rl.learner import check_nan_in_transition, get_observation_features
from lerobot.scripts.lerobot_train import update_policy
from lerobot.utils.logging_utils import AverageMeter, MetricsTracker

BATCH, STATE, ACT, ENV, SIDE = 4, 3, 2, 4, 32
SEEN, WORLD, ACTION = "observation.state", "observation.environment_state", "action"


def features(cameras=1, env=False, side=SIDE):
    seen = {SEEN: PolicyFeature(FeatureType.STATE, (STATE,))}
    for i in range(cameras):
        key = "observation.image" if cameras == 1 else f"observation.images.{i}"
        seen[key] = PolicyFeature(FeatureType.VISUAL, (3, side, side))
    if env:
        seen[WORLD] = PolicyFeature(FeatureType.ENV, (ENV,))
    return {"input_features": seen, "output_features": {ACTION: PolicyFeature(FeatureType.ACTION, (ACT,))}}


def statistics(config):
    found = {}
    for key, each in {**config.input_features, **config.output_features}.items():
        shape = (3, 1, 1) if each.type is FeatureType.VISUAL else each.shape
        found[key] = {
            "mean": torch.zeros(shape),
            "std": torch.ones(shape),
            "min": -torch.ones(shape),
            "max": torch.ones(shape),
        }
    return found


def sampled(config, padded=False):
    """A batch as its loader collates one: of as many times as the policy asks for."""
    seen, done = config.observation_delta_indices, config.action_delta_indices
    batch = {}
    for key, each in config.input_features.items():
        times = () if seen is None else (len(seen),)
        batch[key] = torch.rand(BATCH, *times, *each.shape)
        if seen is not None:
            batch[f"{key}_is_pad"] = torch.zeros(BATCH, len(seen), dtype=torch.bool)
    batch[ACTION] = torch.rand(BATCH, len(done), ACT) * 2 - 1
    batch[f"{ACTION}_is_pad"] = torch.zeros(BATCH, len(done), dtype=torch.bool)
    if padded:
        batch[f"{ACTION}_is_pad"][:, -2:] = True
    if config.reward_delta_indices is not None:
        batch["next.reward"] = torch.rand(BATCH, len(config.reward_delta_indices))
        batch["next.reward_is_pad"] = torch.zeros(BATCH, len(config.reward_delta_indices), dtype=torch.bool)
    batch["index"], batch["task"] = torch.arange(BATCH), ["push"] * BATCH
    return batch


def updated(policy, config, before=None, padded=False, clip=10.0, **about):
    """A step is what its training script does with a batch: the processor, and `update_policy`."""

    def make():
        cfg = config(device="cuda", push_to_hub=False, **about)
        net = policy(cfg).to(D)
        if before:
            before(net)
        process, _ = make_pre_post_processors(policy_cfg=cfg, dataset_stats=statistics(cfg))
        optimizer = cfg.get_optimizer_preset().build(net.get_optim_params())
        preset = cfg.get_scheduler_preset()
        scheduler = preset.build(optimizer, 1000) if preset else None
        meters = {name: AverageMeter(name, ":.3f") for name in ("loss", "grad_norm", "lr", "update_s", "dataloading_s")}
        tracker = MetricsTracker(BATCH, 100, 10, meters)
        accelerator = Accelerator(cpu=True)

        def go():
            batch = process(sampled(cfg, padded))
            update_policy(tracker, net, batch, optimizer, clip, accelerator, lr_scheduler=scheduler)
            tracker.step()

        return go

    return make


def act(cameras=1, env=False, **more):
    small = {
        "chunk_size": 6,
        "n_action_steps": 6,
        "dim_model": 16,
        "n_heads": 2,
        "dim_feedforward": 16,
        "n_encoder_layers": 1,
        "n_vae_encoder_layers": 1,
        "latent_dim": 4,
        "pretrained_backbone_weights": None,
    }
    return {"policy": ACTPolicy, "config": ACTConfig, **features(cameras, env), **small, **more}


STEPS["act"] = updated(**act())
STEPS["act_of_two_cameras"] = updated(**act(2))
STEPS["act_without_vae"] = updated(**act(use_vae=False), padded=True)
STEPS["act_of_a_world"] = updated(**act(0, True))
STEPS["act_normed_before"] = updated(**act(1, True, pre_norm=True, feedforward_activation="gelu"), clip=0.0)


def diffusion(cameras=1, env=False, **more):
    small = {
        "horizon": 8,
        "n_action_steps": 4,
        "down_dims": (8, 16),
        "n_groups": 4,
        "diffusion_step_embed_dim": 8,
        "spatial_softmax_num_keypoints": 4,
        "drop_n_last_frames": 3,
    }
    return {"policy": DiffusionPolicy, "config": DiffusionConfig, **features(cameras, env), **small, **more}


STEPS["diffusion"] = updated(**diffusion())
STEPS["diffusion_of_samples"] = updated(**diffusion(prediction_type="sample"))
STEPS["diffusion_masked"] = updated(**diffusion(do_mask_loss_for_padding=True), padded=True)
STEPS["diffusion_of_two_cameras"] = updated(**diffusion(2))
STEPS["diffusion_of_cameras_apart"] = updated(**diffusion(2, use_separate_rgb_encoder_per_camera=True))
STEPS["diffusion_of_a_world"] = updated(**diffusion(0, True))
STEPS["diffusion_cropped"] = updated(**diffusion(crop_shape=(28, 28)))
STEPS["diffusion_ddim"] = updated(**diffusion(noise_scheduler_type="DDIM", use_film_scale_modulation=False))


def tdmpc(cameras=1, env=False, **more):
    small = {
        "latent_dim": 8,
        "mlp_dim": 16,
        "q_ensemble_size": 3,
        "state_encoder_hidden_dim": 16,
        "image_encoder_hidden_dim": 8,
        "horizon": 3,
    }
    return {"policy": TDMPCPolicy, "config": TDMPCConfig, **features(cameras, env, 84), **small, **more}


STEPS["tdmpc"] = updated(**tdmpc())
STEPS["tdmpc_of_a_world"] = updated(**tdmpc(0, True))
STEPS["tdmpc_unshifted"] = updated(**tdmpc(max_random_shift_ratio=0.0))


def vqbet(**more):
    small = {
        "crop_shape": None,
        "vqvae_embedding_dim": 8,
        "vqvae_enc_hidden_dim": 8,
        "gpt_input_dim": 16,
        "gpt_output_dim": 16,
        "gpt_n_layer": 1,
        "gpt_n_head": 2,
        "gpt_hidden_dim": 16,
        "spatial_softmax_num_keypoints": 4,
        "n_obs_steps": 2,
        "n_action_pred_token": 2,
        "action_chunk_size": 2,
    }
    return {"policy": VQBeTPolicy, "config": VQBeTConfig, **features(), **small, **more}


def discretized(net):
    """The second phase, after the codes are learned."""
    net.vqbet.action_head.vqvae_model.discretized = torch.tensor(True).to(D)


STEPS["vqbet_of_codes"] = updated(**vqbet())
STEPS["vqbet"] = updated(**vqbet(), before=discretized)
STEPS["vqbet_one_after_the_other"] = updated(**vqbet(sequentially_select=True), before=discretized)
STEPS["vqbet_cropped"] = updated(**vqbet(crop_shape=(28, 28)), before=discretized)


def learner(cameras=0, offline=False, utd=1, drq=True, storage="cpu", **more):
    """SAC as its learner goes on: a transition kept, batches of both buffers, and each of the losses."""

    def make():
        small = {
            "latent_dim": 8,
            "state_encoder_hidden_dim": 8,
            "image_encoder_hidden_dim": 4,
            "image_embedding_pooling_dim": 2,
        }
        cfg = SACConfig(
            device="cuda",
            use_torch_compile=False,
            critic_network_kwargs=CriticNetworkConfig([8]),
            actor_network_kwargs=ActorNetworkConfig([8]),
            push_to_hub=False,
            **features(cameras, side=84),
            **{**small, **more},
        )
        cfg.dataset_stats = None
        policy = SACPolicy(cfg).to(D)
        policy.train()
        keys = list(cfg.input_features)
        whole = ACT + (1 if cfg.num_discrete_actions else 0)

        def transition():
            state, following = (
                {key: torch.rand(1, *each.shape) for key, each in cfg.input_features.items()} for _ in range(2)
            )
            action = torch.rand(1, whole) * 2 - 1
            if cfg.num_discrete_actions:
                action[:, -1] = float(torch.randint(cfg.num_discrete_actions, (1,)))
            return {
                "state": state,
                "action": action,
                "reward": float(torch.rand(())),
                "next_state": following,
                "done": False,
                "truncated": False,
                "complementary_info": {"discrete_penalty": torch.tensor([0.1])},
            }

        def buffer():
            made = ReplayBuffer(64, device="cuda", state_keys=keys, storage_device=storage, use_drq=drq)
            for _ in range(16):
                made.add(**transition())
            return made

        online, before = buffer(), buffer() if offline else None
        iterators = [each.get_iterator(4, async_prefetch=False) for each in (online, before) if each is not None]
        optimizers = {
            "actor": torch.optim.Adam(
                [
                    p
                    for n, p in policy.actor.named_parameters()
                    if not cfg.shared_encoder or not n.startswith("encoder")
                ],
                3e-4,
            ),
            "critic": torch.optim.Adam(policy.critic_ensemble.parameters(), 3e-4),
            "temperature": torch.optim.Adam([policy.log_alpha], 3e-4),
        }
        if cfg.num_discrete_actions:
            optimizers["discrete_critic"] = torch.optim.Adam(policy.discrete_critic.parameters(), 3e-4)
        parts = {
            "actor": policy.actor.parameters,
            "critic": policy.critic_ensemble.parameters,
            "temperature": lambda: [policy.log_alpha],
            "discrete_critic": lambda: policy.discrete_critic.parameters(),
        }

        def stepped(batch, name):
            loss = policy.forward(batch, model=name)[f"loss_{name}"]
            optimizers[name].zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parts[name](), 40.0).item()
            optimizers[name].step()
            return loss

        def go():
            online.add(**transition())
            for i in range(utd):
                batch = next(iterators[0])
                if offline:
                    batch = concatenate_batch_transitions(batch, next(iterators[1]))
                state, following = batch["state"], batch["next_state"]
                check_nan_in_transition(observations=state, actions=batch[ACTION], next_state=following)
                seen, then = get_observation_features(policy=policy, observations=state, next_observations=following)
                batch = {**batch, "observation_feature": seen, "next_observation_feature": then}
                stepped(batch, "critic").item()
                if cfg.num_discrete_actions:
                    stepped(batch, "discrete_critic").item()
                if i == utd - 1:
                    stepped(batch, "actor").item()
                    stepped(batch, "temperature").item()
                policy.temperature
                policy.update_target_networks()

        return go

    return make


STEPS["sac"] = learner()
STEPS["sac_of_a_camera"] = learner(1)
STEPS["sac_of_both_buffers"] = learner(1, offline=True)
STEPS["sac_of_many_updates"] = learner(utd=2, num_critics=4, num_subsample_critics=2)
STEPS["sac_of_encoders_apart"] = learner(1, shared_encoder=False, drq=False)
STEPS["sac_of_discrete_actions_too"] = learner(num_discrete_actions=3)
STEPS["sac_kept_on_the_device"] = learner(storage="cuda", use_backup_entropy=False)
