"""Training steps over VoxelMorph 0.3.4: networks that register pictures to each other, made of pictures that are warped as they train."""

import neurite as ne
import voxelmorph as vxm

SIZE = (16, 16)
CUBE = (8, 8, 8)


def pictures(shape=SIZE, count=2):
    return torch.rand(count, 1, *shape, device=D)


def registered(similarity=lambda a, b: (a - b).pow(2).mean(), shape=SIZE, asked=None, moved=None, **more):
    """A step registers a pair of pictures: how alike they are once one is warped, and how smooth the warp is."""

    def make():
        net = vxm.nn.models.VxmPairwise(
            ndim=len(shape), source_channels=1, target_channels=1, nb_features=(4, 4, 4), device=D, **more
        )

        def loss(model):
            source, target = pictures(shape), pictures(shape)
            if moved:
                source = moved(target)
            flow, *warped = model(source, target, **(asked or {"return_warped_source": True}))
            smooth = sum(each.pow(2).mean() for each in torch.gradient(flow, dim=tuple(range(2, flow.ndim))))
            alike = sum(similarity(a, b) for a, b in zip(warped, (target, source)))
            return alike + 0.01 * smooth

        return train(net, loss)

    return make


STEPS["pairwise"] = registered()
STEPS["pairwise_of_volumes"] = registered(shape=CUBE)
STEPS["pairwise_without_integration"] = registered(integration_steps=0)
STEPS["both_ways"] = registered(asked={"return_warped_source": True, "return_warped_target": True})
STEPS["of_velocities"] = registered(
    asked={"return_warped_source": True, "return_warped_target": True, "return_field_type": "svf"}, integration_steps=7
)
STEPS["correlated"] = registered(ne.nn.modules.NCC())
STEPS["mean_squared"] = registered(ne.nn.modules.MSE())


def warp(**more):
    def moved(images):
        field = vxm.random_transform(
            (len(images), *images.shape[2:]),
            non_spatial_dims=(0,),
            device=torch.device(D),
            warp_scales_range=(4, 6),
            **more,
        )
        return vxm.spatial_transform(images, field, non_spatial_dims=(0, 1))

    return moved


STEPS["warped_at_random"] = registered(moved=warp())
STEPS["warped_by_affine_alone"] = registered(moved=warp(warp_probability=0.0))
STEPS["warped_by_fields_alone"] = registered(moved=warp(affine_probability=0.0, warp_integrations=0))
STEPS["warped_with_blur"] = registered(moved=warp(fractal_mode="blur"))
STEPS["warped_volumes"] = registered(shape=CUBE, moved=warp())
STEPS["warped_to_a_fixed_extent"] = registered(moved=warp(sampling=False))


@step
def affine():
    """A network foretells how far a picture is turned, moved and stretched; it is warped by that."""
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2 * SIZE[0] * SIZE[1], 5))

    def loss(model):
        source, target = pictures(), pictures()
        total = 0
        for image, aim, found in zip(source, target, model(torch.cat([source, target], 1))):
            matrix = vxm.params_to_affine(
                2, translation=found[:2], rotation=found[2:3], scale=1 + 0.1 * found[3:5], device=torch.device(D)
            )
            total = total + (vxm.spatial_transform(image, matrix, non_spatial_dims=(0,)) - aim).pow(2).mean()
        return total

    return train(net, loss)


@step
def composed():
    """Two warps in turn, made one, and a field that is made coordinates and back."""
    net = torch.nn.Conv2d(2, 4, 3, padding=1)

    def loss(model):
        source, target = pictures(), pictures()
        fields = model(torch.cat([source, target], 1))
        total = 0
        for image, aim, field in zip(source, target, fields):
            shift = vxm.affine_to_disp(vxm.random_affine(2, 2, 5, 1.1, device=torch.device(D)), shape=SIZE)
            both = vxm.compose([field[:2], field[2:], shift], shape=SIZE)
            total = total + (vxm.spatial_transform(image, both, non_spatial_dims=(0,)) - aim).pow(2).mean()
        return total

    return train(net, loss)


@step
def integrated():
    """A velocity is integrated at half the size, and made larger."""
    net = torch.nn.Conv2d(2, 2, 3, padding=1)
    larger = vxm.nn.modules.ResizeDisplacementField(scale_factor=2.0)
    integrate = vxm.nn.modules.IntegrateVelocityField(steps=5)
    transformer = vxm.nn.modules.SpatialTransformer()

    def loss(model):
        source, target = pictures(), pictures()
        half = torch.nn.functional.avg_pool2d(torch.cat([source, target], 1), 2)
        return (transformer(source, larger(integrate(model(half)))) - target).pow(2).mean()

    return train(net, loss)
