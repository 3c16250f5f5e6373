"""Training steps over SLEAP-NN 0.3.5: networks of animals' poses, each kind of model by the step that Lightning calls, on a small U-Net."""

absent("jupyter textual wandb")

from omegaconf import OmegaConf
from sleap_nn.training import lightning_modules as M

SIZE, ROWS = 64, 3
PARTS = ["head", "thorax", "tail"]


def unet(stride):
    return OmegaConf.create(
        {
            "unet": {
                "in_channels": 1,
                "kernel_size": 3,
                "filters": 4,
                "filters_rate": 1.5,
                "max_stride": 8,
                "stem_stride": None,
                "middle_block": True,
                "up_interpolate": True,
                "stacks": 1,
                "convs_per_block": 2,
                "output_stride": stride,
            }
        }
    )


def images():
    return torch.randint(0, 255, (ROWS, 1, 1, SIZE, SIZE), dtype=torch.uint8)


def maps(channels, stride=2, whole=False):
    """Maps of where something is: a blob here and there."""
    held = torch.rand(ROWS, 1, channels, SIZE // stride, SIZE // stride).pow(8)
    return held.squeeze(1) if whole else held


def trained(kind, model_type, heads, batch, stride=2, optimizer="Adam", negatives=None, scheduler=None, **more):
    """A step is a batch that a loader has brought to the device, and the model's own step."""

    def make():
        model = kind(
            model_type=model_type,
            backbone_type="unet",
            backbone_config=unet(stride),
            head_configs=OmegaConf.create({model_type: heads}),
            optimizer=optimizer,
            **more,
        )
        model = model.to(D).train()
        model.log = lambda *_, **__: None
        held = model.configure_optimizers()
        stepping = held["optimizer"] if isinstance(held, dict) else held

        def go():
            given = batch() | ({"is_negative": torch.arange(ROWS) < negatives} if negatives else {})
            given = {name: each.to(D) if torch.is_tensor(each) else each for name, each in given.items()}
            loss = model.training_step(given, 0)
            stepping.zero_grad()
            loss.backward()
            stepping.step()
            model.on_train_batch_end(loss, given, 0)

        return go

    return make


CONFMAPS = {"part_names": PARTS, "sigma": 1.5, "output_stride": 2, "loss_weight": 1.0}
ANCHORED = {**CONFMAPS, "anchor_part": None}
MINED = {"online_mining": True, "min_hard_keypoints": 1, "max_hard_keypoints": 2}


def posed(name="image", **beside):
    return lambda: {
        name: images(),
        "confidence_maps": maps(len(PARTS)),
        **{each: make() for each, make in beside.items()},
    }


single = {"confmaps": CONFMAPS}
STEPS["single"] = trained(M.SingleInstanceLightningModule, "single_instance", single, posed())
STEPS["single_mined"] = trained(M.SingleInstanceLightningModule, "single_instance", single, posed(), **MINED)
STEPS["single_with_negatives"] = trained(
    M.SingleInstanceLightningModule, "single_instance", single, posed(), negatives=1, negative_loss_weight=0.5
)
STEPS["single_adamw"] = trained(
    M.SingleInstanceLightningModule, "single_instance", single, posed(), optimizer="AdamW", amsgrad=True
)
STEPS["centered"] = trained(
    M.TopDownCenteredInstanceLightningModule, "centered_instance", {"confmaps": ANCHORED}, posed("instance_image")
)
STEPS["centered_mined"] = trained(
    M.TopDownCenteredInstanceLightningModule,
    "centered_instance",
    {"confmaps": ANCHORED},
    posed("instance_image"),
    **MINED,
)


def centers():
    return {"image": images(), "centroids_confidence_maps": maps(1)}


CENTROID = {"confmaps": {"anchor_part": None, "sigma": 1.5, "output_stride": 2, "use_sigmoid_activation": False}}
SIGMOID = {"confmaps": {**CENTROID["confmaps"], "use_sigmoid_activation": True}}
STEPS["centroid"] = trained(M.CentroidLightningModule, "centroid", CENTROID, centers)
STEPS["centroid_focal"] = trained(
    M.CentroidLightningModule, "centroid", SIGMOID, centers, centroid_focal_loss_alpha=2.0
)
STEPS["centroid_focal_negatives"] = trained(
    M.CentroidLightningModule,
    "centroid",
    SIGMOID,
    centers,
    negatives=2,
    negative_loss_weight=0.2,
    centroid_focal_loss_alpha=2.0,
)

EDGES = [["head", "thorax"], ["thorax", "tail"]]
bottomup = {"confmaps": CONFMAPS, "pafs": {"edges": EDGES, "sigma": 4.0, "output_stride": 4, "loss_weight": 1.0}}
fields = posed(part_affinity_fields=lambda: maps(4, 4, whole=True))
STEPS["bottomup"] = trained(M.BottomUpLightningModule, "bottomup", bottomup, fields)
STEPS["bottomup_mined"] = trained(M.BottomUpLightningModule, "bottomup", bottomup, fields, **MINED)
STEPS["bottomup_with_negatives"] = trained(M.BottomUpLightningModule, "bottomup", bottomup, fields, negatives=1)

classed = {
    "confmaps": CONFMAPS,
    "class_maps": {"classes": ["a", "b"], "sigma": 4.0, "output_stride": 2, "loss_weight": 1.0},
}
STEPS["bottomup_of_classes"] = trained(
    M.BottomUpMultiClassLightningModule,
    "multi_class_bottomup",
    classed,
    posed(
        class_maps=lambda: maps(2),
        instances=lambda: torch.rand(ROWS, 1, 2, len(PARTS), 2) * SIZE,
        num_instances=lambda: torch.tensor([2, 1, 2]),
    ),
)
vectors = {
    "confmaps": ANCHORED,
    "class_vectors": {
        "classes": ["a", "b"],
        "num_fc_layers": 1,
        "num_fc_units": 8,
        "global_pool": True,
        "output_stride": 8,
        "loss_weight": 1.0,
    },
}
STEPS["centered_of_classes"] = trained(
    M.TopDownCenteredInstanceMultiClassLightningModule,
    "multi_class_topdown",
    vectors,
    posed("instance_image", class_vectors=lambda: torch.eye(2)[torch.randint(0, 2, (ROWS,))]),
)


def blobs(channels=1):
    return (maps(channels) > 0.2).float()


SEGMENTED = {"output_stride": 2, "loss_weight": 1.0, "bce_weight": 0.5, "dice_weight": 0.5, "bce_pos_weight": None}
parts = {
    "segmentation": SEGMENTED,
    "center": {"sigma": 2.0, "output_stride": 2, "loss_weight": 1.0},
    "offsets": {"output_stride": 2, "loss_weight": 0.1},
}
STEPS["segmented"] = trained(
    M.BottomUpSegmentationLightningModule,
    "bottomup_segmentation",
    parts,
    lambda: {
        "image": images(),
        "foreground_mask": blobs(),
        "center_heatmap": maps(1),
        "center_offsets": torch.randn(ROWS, 1, 2, SIZE // 2, SIZE // 2),
        "foreground_weight": blobs(),
    },
)
STEPS["segmented_centered"] = trained(
    M.TopDownCenteredInstanceSegmentationLightningModule,
    "centered_instance_segmentation",
    {"segmentation": {**SEGMENTED, "anchor_part": None}},
    lambda: {"instance_image": images(), "foreground_mask": blobs()},
)
STEPS["segmented_by_meaning"] = trained(
    M.SemanticSegmentationLightningModule,
    "semantic_segmentation",
    {"segmentation": {**SEGMENTED, "bce_pos_weight": 3.0}},
    lambda: {"image": images(), "foreground_mask": blobs()},
)


def embedded(loss="supcon", scope="global_id", **more):
    """Pictures of one animal near each other; two views of each."""
    leaf = {
        "embedding_dim": 8,
        "normalize": True,
        "pool": "avg",
        "output_stride": 8,
        "freeze_backbone": False,
        "num_fc_layers": 1,
        "num_fc_units": 8,
        "loss_weight": 1.0,
        "objective": {
            "loss": {"name": loss, "temperature": 0.1, "margin": 0.2},
            "positives": {"scope": scope, "aug_views": 2},
            **more,
        },
    }

    def batch():
        return {
            "instance_image": images(),
            "instance_mask": torch.ones(ROWS, 1, 1, SIZE, SIZE),
            "instance_image_view2": images(),
            "instance_mask_view2": torch.ones(ROWS, 1, 1, SIZE, SIZE),
            "item_id": torch.arange(ROWS),
            "video_id": torch.zeros(ROWS, dtype=torch.long),
            "frame_idx": torch.arange(ROWS),
            "group_id": torch.tensor([0, 0, 1]),
        }

    return trained(M.EmbeddingLightningModule, "embedding", {"embedding": leaf}, batch)


for loss in ("supcon", "infonce", "triplet"):
    STEPS[f"embedded_{loss}"] = embedded(loss)
STEPS["embedded_views"] = embedded(scope="aug_view")


def boxes():
    """Where the center of each box lies, how large it is, and where in its cell."""
    grid = SIZE // 4
    return {
        "image": images(),
        "center_heatmap": torch.rand(ROWS, 1, grid, grid).pow(8).round(decimals=1),
        "size_target": torch.rand(ROWS, 2, grid, grid),
        "offset_target": torch.rand(ROWS, 2, grid, grid),
        "reg_mask": (torch.rand(ROWS, 1, grid, grid) > 0.9).float(),
    }


centernet = {
    "center": {
        "categories": ["a"],
        "sigma": None,
        "min_overlap": 0.7,
        "output_stride": 4,
        "loss_weight": 1.0,
        "focal_alpha": 2.0,
        "focal_beta": 4.0,
    },
    "size": {"output_stride": 4, "loss_weight": 0.1},
    "offset": {"output_stride": 4, "loss_weight": 1.0},
}
STEPS["boxes_by_centers"] = trained(M.BBoxCenterNetLightningModule, "bbox_centernet", centernet, boxes, stride=4)

ANCHORS = 9 * sum((SIZE // stride) ** 2 for stride in (4, 8))
ssd = {
    "ssd": {
        "categories": ["a"],
        "output_stride": 4,
        "num_levels": 2,
        "anchor_sizes": [8.0, 16.0],
        "anchor_scales": [1.0, 1.26, 1.587],
        "aspect_ratios": [0.5, 1.0, 2.0],
        "pos_iou_threshold": 0.5,
        "neg_iou_threshold": 0.4,
        "neg_pos_ratio": 3.0,
        "box_variances": [0.1, 0.1, 0.2, 0.2],
        "head_channels": 8,
        "head_convs": 1,
        "loss_weight": 1.0,
    }
}
STEPS["boxes_by_anchors"] = trained(
    M.BBoxSSDLightningModule,
    "bbox_ssd",
    ssd,
    lambda: {
        "image": images(),
        "ssd_cls_target": torch.randint(-1, 2, (ROWS, ANCHORS)),
        "ssd_box_target": torch.randn(ROWS, ANCHORS, 4),
    },
    stride=4,
)
