"""Training steps over pytorch-accelerated 0.1.61: batches of its trainer, with its callbacks, schedulers, averages and frozen layers."""

from functools import partial

from pytorch_accelerated import Trainer
from pytorch_accelerated.callbacks import (
    LimitBatchesCallback,
    ModelEmaCallback,
    TerminateOnNaNCallback,
    TrainerCallback,
)
from pytorch_accelerated.finetuning import ModelFreezer
from pytorch_accelerated.schedulers import CosineLrScheduler, WSDLrScheduler
from pytorch_accelerated.trainer import DEFAULT_CALLBACKS, TrainerPlaceholderValues, TrainerWithTimmScheduler
from pytorch_accelerated.utils import ModelEma, remove_padding
from torch import nn
from torch.utils.data import TensorDataset

NUMBER = 10


class Digits(nn.Module):
    """Of the readme."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, NUMBER))

    def forward(self, x):
        return self.main(x.view(x.shape[0], -1))


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4 * 36, NUMBER)

    def forward(self, x):
        return self.head(self.stem(x).flatten(1))


def digits(rows=160):
    return TensorDataset(torch.rand(rows, 1, 8, 8), torch.randint(0, NUMBER, (rows,)))


def trained(
    kind=Trainer,
    of=Digits,
    optimizer=torch.optim.SGD,
    loss=nn.CrossEntropyLoss,
    callbacks=None,
    data=digits,
    made=None,
    **more,
):
    """A step is a batch of `train`."""

    def make():
        net = of()
        if made is not None:
            made(net)
        held = kind(
            net, loss_func=loss() if loss else None, optimizer=optimizer([p for p in net.parameters() if p.requires_grad], lr=1e-3),
            callbacks=DEFAULT_CALLBACKS if callbacks is None else callbacks(),
        )  # fmt: skip
        given = {"num_epochs": 2, "per_device_batch_size": 8, "train_dataloader_kwargs": {"num_workers": 0}, **more}
        return loop(lambda: held.train(train_dataset=data(), **given))

    return make


STEPS["default"] = trained()
STEPS["bare"] = trained(callbacks=tuple)
STEPS["stops_at_nan"] = trained(callbacks=lambda: (TerminateOnNaNCallback,))
STEPS["convolved"] = trained(of=Convolved, optimizer=torch.optim.AdamW)
STEPS["clipped"] = trained(gradient_clip_value=1.0)
STEPS["accumulated"] = trained(gradient_accumulation_steps=2)
STEPS["so_many_steps"] = trained(max_num_train_steps=30)
STEPS["some_batches"] = trained(
    callbacks=lambda: (LimitBatchesCallback(12), *DEFAULT_CALLBACKS), eval_dataset=digits(8)
)
STEPS["averaged"] = trained(callbacks=lambda: (ModelEmaCallback(), *DEFAULT_CALLBACKS))
STEPS["cosine"] = trained(
    create_scheduler_fn=CosineLrScheduler.create_scheduler_fn(num_warmup_epochs=1, num_cooldown_epochs=0)
)
STEPS["warm_stable_decay"] = trained(create_scheduler_fn=WSDLrScheduler.create_scheduler_fn(num_warmup_epochs=0))
STEPS["one_cycle"] = trained(
    create_scheduler_fn=partial(
        torch.optim.lr_scheduler.OneCycleLR,
        max_lr=0.01,
        epochs=TrainerPlaceholderValues.NUM_EPOCHS,
        steps_per_epoch=TrainerPlaceholderValues.NUM_UPDATE_STEPS_PER_EPOCH,
    )
)


class Halves:
    """A scheduler as timm's are."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step_update(self, num_updates):
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3 / (1 + num_updates)


STEPS["as_timm_schedules"] = trained(TrainerWithTimmScheduler, create_scheduler_fn=Halves)
STEPS["frozen_but_for_the_head"] = trained(of=Convolved, made=lambda net: ModelFreezer(net).freeze())
STEPS["frozen_and_not_trained"] = trained(
    of=Convolved, made=lambda net: ModelFreezer(net).freeze(to_index=-1, set_modules_as_eval=True)
)


class Kept(Trainer):
    """Of the docs: an average that each step is mixed into."""

    def training_run_start(self):
        super().training_run_start()
        self.kept = ModelEma(self._accelerator.unwrap_model(self.model), decay=0.9).to(self.device)

    def optimizer_step(self):
        super().optimizer_step()
        self.kept.update(self._accelerator.unwrap_model(self.model))


class Mixed(Trainer):
    """Of the examples: a batch is mixed with itself turned round before its loss is taken."""

    def calculate_train_batch_loss(self, batch):
        xb, yb = batch
        share = np.random.beta(0.2, 0.2)
        out = self.model(share * xb + (1 - share) * xb.flip(0))
        loss = share * self.loss_func(out, yb) + (1 - share) * self.loss_func(out, yb.flip(0))
        return {"loss": loss, "model_outputs": out, "batch_size": xb.size(0)}


class Told(Trainer):
    """Of a transformer's example: batches are dictionaries, the network gives its loss."""

    def calculate_train_batch_loss(self, batch):
        out = self.model(**batch)
        return {"loss": out["loss"], "model_outputs": out["logits"], "batch_size": batch["labels"].size(0)}


class Gathered(TrainerCallback):
    """What is shown of each batch is gathered from all processes."""

    def on_train_step_end(self, trainer, batch, batch_output, **_):
        shown = batch_output["model_outputs"].argmax(-1)
        labels = trainer.gather(batch[1], padding_value=-100)
        self.right = (trainer.gather(shown, padding_value=-100)[: len(labels)] == labels).float().mean()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, at):
        return {"x": torch.rand(64), "labels": torch.tensor(at % NUMBER)}


class Answers(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Digits()

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


STEPS["kept"] = trained(Kept)
STEPS["kept_convolved"] = trained(Kept, of=Convolved)
STEPS["mixed"] = trained(Mixed)
STEPS["answers"] = trained(Told, of=Answers, loss=None, data=Rows)
STEPS["gathered"] = trained(callbacks=lambda: (Gathered(), *DEFAULT_CALLBACKS))
STEPS["gathered_and_accumulated"] = trained(
    callbacks=lambda: (Gathered(), *DEFAULT_CALLBACKS), gradient_accumulation_steps=4, gradient_clip_value=0.5
)


@step
def padding_left_out():
    """Rows that were padded are taken out before the loss."""
    labels = torch.tensor([1, 2, -100, 3, -100, 0], device=D)
    x = torch.rand(6, 64, device=D)
    padded = torch.where(labels[:, None] == -100, torch.full_like(x, -100.0), x)
    return train(
        Digits(),
        lambda net: nn.functional.cross_entropy(net(remove_padding(padded, -100)), remove_padding(labels, -100)),
    )
