"""Training steps over torchtuples 0.2.2: batches of `fit`, which trains a network on arrays or tensors, with what it calls back."""

import tempfile
import torchtuples as tt
from torchtuples import callbacks as C
from torchtuples import optim as O
from torchtuples.practical import MixedInputMLP, MLPVanilla

ROWS, WIDTH, BATCH = 200, 6, 16
F = torch.nn.functional


def rows(tensors=True):
    x, y = np.random.randn(ROWS, WIDTH).astype("float32"), np.random.randn(ROWS, 1).astype("float32")
    return (torch.from_numpy(x), torch.from_numpy(y)) if tensors else (x, y)


def mlp(**more):
    return MLPVanilla(WIDTH, [8, 8], 1, True, 0.1, **more)


def fitted(net=mlp, optimizer=None, data=rows, loss=F.mse_loss, callbacks=list, **more):
    """A step is a batch of `fit`."""

    def make():
        model = tt.Model(net(), loss, optimizer() if optimizer else tt.optim.AdamW, device=torch.device(D))
        x, y = data()
        return loop(lambda: model.fit(x, y, BATCH, 2, callbacks=callbacks(), verbose=False, **more))

    return make


STEPS["of_tensors"] = fitted()
STEPS["of_arrays"] = fitted(data=lambda: rows(False))
STEPS["of_loader"] = fitted(torch_ds_dl=True)
STEPS["in_order"] = fitted(shuffle=False)
STEPS["with_metrics"] = fitted(metrics={"l1": F.l1_loss, "huber": F.smooth_l1_loss})
STEPS["with_a_bound"] = fitted(net=lambda: mlp(output_activation=torch.nn.Sigmoid()))
STEPS["sgd"] = fitted(optimizer=lambda: O.SGD(0.01, momentum=0.9))
STEPS["rmsprop"] = fitted(optimizer=lambda: O.RMSprop(0.01))
STEPS["adam_with_cycles"] = fitted(
    optimizer=lambda: O.AdamWR(0.01, decoupled_weight_decay=0.01, cycle_eta_multiplier=0.8)
)
STEPS["adam_decoupled"] = fitted(optimizer=lambda: O.Adam(0.01), callbacks=lambda: [C.DecoupledWeightDecay(0.01)])
STEPS["adam_normalized_decay"] = fitted(optimizer=lambda: O.AdamW(0.01, decoupled_weight_decay=0.1))
STEPS["of_torch"] = fitted(optimizer=lambda: lambda params: torch.optim.Adam(params, 0.01))
STEPS["cosine"] = fitted(callbacks=lambda: [C.LRCosineAnnealing()])
STEPS["range_of_rates"] = fitted(callbacks=lambda: [C.LRFinder(1e-6, 1.0, 50)])
STEPS["stopped_where_it_explodes"] = fitted(callbacks=lambda: [C.StopIfExplodeOrNan()])
STEPS["accuracy_read"] = fitted(
    net=lambda: MLPVanilla(WIDTH, [8], 3, False, 0.0),
    data=lambda: (torch.randn(ROWS, WIDTH), torch.randint(0, 3, (ROWS,))),
    loss=F.cross_entropy,
    metrics={"accuracy": tt.practical.accuracy_argmax},
)


@step
def clipped():
    """The norm of the gradient is bounded before each step of the optimizer."""
    model = tt.Model(mlp(), F.mse_loss, O.Adam(0.01), device=torch.device(D))
    x, y = rows()
    bound = C.ClipGradNorm(model.net, 1.0)
    return loop(lambda: model.fit(x, y, BATCH, 2, callbacks=[bound], verbose=False))


@step
def mixed():
    """Numbers, and categories that are embedded; the tree of what goes in is walked to bring it to the device."""
    net = MixedInputMLP(WIDTH, [5, 7], [2, 3], [8, 8], 1, True, 0.1)
    model = tt.Model(net, F.mse_loss, device=torch.device(D))
    categories = torch.stack([torch.randint(0, 5, (ROWS,)), torch.randint(0, 7, (ROWS,))], 1)
    x, y = rows()
    return loop(lambda: model.fit((x, categories), y, BATCH, 2, verbose=False))


@step
def epochs_of_one_batch():
    """All rows are a batch: each step is an epoch, with what is told of it, and the best weights kept by what was held back."""
    model = tt.Model(mlp(), F.mse_loss, O.AdamW(0.01), device=torch.device(D))
    x, y = rows()
    stop = C.EarlyStopping(file_path=tempfile.mktemp(), patience=100)
    return loop(lambda: model.fit(x, y, ROWS, 20, callbacks=[stop], verbose=False, val_data=rows()))


@step
def scores_of_batches():
    """A loader of the package, that gives a batch at once, and a score of each batch in between."""
    model = tt.Model(mlp(), F.mse_loss, O.SGD(0.01), device=torch.device(D))
    batches = tt.make_dataloader(tt.tuplefy(*rows()), BATCH, True)

    def go():
        for batch in batches:
            model.optimizer.zero_grad()
            loss = model.compute_metrics(batch)["loss"]
            loss.backward()
            model.optimizer.step()
            break
        return model.score_in_batches_dataloader([batch])

    return go
