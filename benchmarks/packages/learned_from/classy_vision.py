"""Training steps over Classy Vision 0.7.0: its task trains some batches, with its models, losses, meters and hooks."""

absent("visdom tensorboardX progressbar")

from classy_vision.dataset import ClassyDataset
from classy_vision.dataset.transforms.mixup import MixupTransform
from classy_vision.hooks import ExponentialMovingAverageModelHook, LossLrMeterLoggingHook, PreciseBatchNormHook
from classy_vision.losses import build_loss
from classy_vision.meters import AccuracyMeter, PrecisionAtKMeter, RecallAtKMeter, VideoAccuracyMeter
from classy_vision.models import build_model
from classy_vision.optim import build_optimizer
from classy_vision.optim.param_scheduler import build_param_scheduler
from classy_vision.tasks import ClassificationTask

CLASSES, BATCH = 5, 4


class Rows(torch.utils.data.Dataset):
    """Inputs at random."""

    def __init__(self, shape, one_hot):
        self.shape, self.one_hot = shape, one_hot

    def __len__(self):
        return 2 * BATCH

    def __getitem__(self, at):
        kind = torch.tensor(at % CLASSES)
        target = torch.nn.functional.one_hot(kind, CLASSES).float() if self.one_hot else kind
        return {"input": torch.rand(self.shape), "target": target}


class Held(ClassyDataset):
    def __init__(self, shape, one_hot):
        super().__init__(Rows(shape, one_hot), BATCH, True, None, 2 * BATCH)

    def iterator(self, *args, **kwargs):
        return super().iterator(*args, **{**kwargs, "num_workers": 0, "multiprocessing_context": None})


IMAGE = (3, 32, 32)
SMOOTH = {"name": "label_smoothing_cross_entropy", "ignore_index": -1, "reduction": "mean", "smoothing_param": 0.1}
HEAD = {"name": "fully_connected", "num_classes": CLASSES, "in_plane": 16, "unique_id": "head"}


def small_net(**more):
    return {"name": "mlp", "input_dim": 3 * 32 * 32, "output_dim": CLASSES, "hidden_dims": [8], **more}


def residual(**more):
    heads = [{**HEAD, "fork_block": "block1-0", "zero_init_bias": True}]
    return {
        "name": "resnext",
        "num_blocks": [1, 1],
        "init_planes": 8,
        "small_input": True,
        "basic_layer": True,
        "heads": heads,
        **more,
    }


def tasked(
    model, loss=None, shape=IMAGE, meters=(), hooks=(), optimizer=None, one_hot=False, tested=False, change=None
):
    """A step is two batches in its task, and the turn of an epoch."""

    def make():
        task = ClassificationTask().set_num_epochs(1000)
        task.set_dataset(Held(shape, one_hot), "train")
        if tested:
            task.set_dataset(Held(shape, one_hot), "test")
        task.set_model(build_model(model()))
        task.set_loss(build_loss(loss or {"name": "CrossEntropyLoss"}))
        task.set_optimizer(build_optimizer(optimizer or {"name": "sgd", "momentum": 0.9}))
        schedule = {"name": "cosine", "start_value": 0.01, "end_value": 0.0001}
        task.set_optimizer_schedulers({"lr": build_param_scheduler(schedule)})
        task.set_meters([each() for each in meters]).set_hooks([each() for each in hooks])
        task.set_use_gpu(True)
        if change:
            change(task)
        task.prepare()
        task.on_start()

        def go():
            for _ in range(2 if tested else 1):
                task.on_phase_start()
                while True:
                    try:
                        task.step()
                    except StopIteration:
                        break
                task.on_phase_end()

        return go

    return make


STEPS["mlp"] = tasked(small_net)
STEPS["mlp_metered"] = tasked(small_net, meters=[lambda: AccuracyMeter([1, 3])], hooks=[LossLrMeterLoggingHook])
STEPS["mlp_tested"] = tasked(small_net, meters=[lambda: AccuracyMeter([1])], tested=True)
STEPS["mlp_of_precision_and_recall"] = tasked(
    small_net,
    loss={"name": "soft_target_cross_entropy"},
    meters=[lambda: PrecisionAtKMeter([1, 2]), lambda: RecallAtKMeter([1, 2])],
    one_hot=True,
)
STEPS["mlp_smoothed"] = tasked(
    small_net,
    loss=SMOOTH,
)
STEPS["mlp_summed"] = tasked(
    small_net,
    loss={"name": "sum_arbitrary", "losses": [SMOOTH, {**SMOOTH, "smoothing_param": 0.3}], "weights": [1.0, 0.5]},
)
STEPS["mlp_of_several_outputs"] = tasked(
    small_net, loss={"name": "multi_output_sum_loss", "loss": {"name": "CrossEntropyLoss"}}
)
STEPS["mlp_mixed"] = tasked(
    small_net,
    loss={"name": "soft_target_cross_entropy"},
    change=lambda task: task.set_mixup_transform(MixupTransform(0.4, CLASSES)),
)
STEPS["residual_cut_and_mixed"] = tasked(
    residual,
    loss={"name": "soft_target_cross_entropy"},
    change=lambda task: task.set_mixup_transform(MixupTransform(0.4, CLASSES, cutmix_alpha=1.0, mode="batch")),
)
STEPS["residual_mixed_by_pairs"] = tasked(
    residual,
    loss={"name": "soft_target_cross_entropy"},
    change=lambda task: task.set_mixup_transform(MixupTransform(0.4, CLASSES, cutmix_alpha=1.0, mode="elem")),
)
STEPS["residual_squeezed"] = tasked(
    lambda: residual(use_se=True, se_reduction_ratio=4), hooks=[lambda: LossLrMeterLoggingHook(1)]
)
STEPS["residual_clipped"] = tasked(residual, change=lambda task: task.set_clip_grad_norm(1.0))
STEPS["residual_gathered"] = tasked(residual, change=lambda task: task.set_simulated_global_batchsize(2 * BATCH))
STEPS["residual_averaged"] = tasked(
    residual, hooks=[lambda: ExponentialMovingAverageModelHook(0.9, device="gpu")], meters=[lambda: AccuracyMeter([1])]
)
STEPS["residual_averaged_on_host"] = tasked(
    residual, hooks=[lambda: ExponentialMovingAverageModelHook(0.9, device="cpu")]
)
STEPS["residual_of_precise_norms"] = tasked(residual, hooks=[lambda: PreciseBatchNormHook(8, True)])
STEPS["residual_without_decay_of_norms"] = tasked(residual, change=lambda task: task.set_bn_weight_decay(False))
STEPS["residual_adamw"] = tasked(residual, optimizer={"name": "adamw", "weight_decay": 0.01})
STEPS["residual_rmsprop"] = tasked(residual, optimizer={"name": "rmsprop_tf", "momentum": 0.9})
STEPS["residual_halved"] = tasked(residual, change=lambda task: task.set_amp_args({"amp_type": "pytorch"}))


def dense():
    heads = [{**HEAD, "fork_block": "trunk_output"}]
    return {
        "name": "densenet",
        "num_blocks": [1, 1],
        "num_classes": CLASSES,
        "init_planes": 8,
        "growth_rate": 8,
        "expansion": 2,
        "small_input": True,
        "final_bn_relu": True,
        "heads": heads,
    }


STEPS["dense"] = tasked(dense)


def transformer():
    heads = [
        {
            "name": "vision_transformer_head",
            "num_classes": CLASSES,
            "in_plane": 16,
            "unique_id": "head",
            "fork_block": "trunk_output",
        }
    ]
    return {
        "name": "vision_transformer",
        "image_size": 32,
        "patch_size": 8,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 16,
        "mlp_dim": 16,
        "dropout_rate": 0.1,
        "attention_dropout_rate": 0.0,
        "classifier": "token",
        "heads": heads,
    }


STEPS["transformer"] = tasked(transformer, meters=[lambda: AccuracyMeter([1])])


def video():
    heads = [
        {
            "name": "fully_convolutional_linear",
            "unique_id": "head",
            "pool_size": [2, 8, 8],
            "activation_func": "softmax",
            "num_classes": CLASSES,
            "fork_block": "pathway0-stage2-block0",
            "in_plane": 16,
            "use_dropout": True,
        }
    ]
    return {
        "name": "resnext3d",
        "frames_per_clip": 2,
        "input_planes": 3,
        "clip_crop_size": 32,
        "skip_transformation_type": "postactivated_shortcut",
        "residual_transformation_type": "basic_transformation",
        "num_blocks": [1, 1],
        "stem_name": "resnext3d_stem",
        "stem_planes": 8,
        "stem_temporal_kernel": 3,
        "stem_maxpool": False,
        "stage_planes": 8,
        "stage_temporal_kernel_basis": [[3], [3]],
        "temporal_conv_1x1": [False, False],
        "stage_temporal_stride": [1, 1],
        "stage_spatial_stride": [1, 2],
        "num_groups": 1,
        "width_per_group": 8,
        "num_classes": CLASSES,
        "heads": heads,
    }


STEPS["video"] = tasked(video, shape=(3, 2, 32, 32), meters=[lambda: VideoAccuracyMeter([1], 1, 1)])
