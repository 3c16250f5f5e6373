"""Knowledge distillation: a teacher is trained, then a student by its soft targets."""

import argparse
import logging
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", default="experiments", help="Directory for checkpoints")
parser.add_argument("--alpha", type=float, default=0.9)
parser.add_argument("--temperature", type=float, default=4.0)
parser.add_argument("--num_epochs", type=int, default=2)
parser.add_argument("--save_summary_steps", type=int, default=6)


class RunningAverage:
    """A simple class that maintains the running average of a quantity."""

    def __init__(self):
        self.steps = 0
        self.total = 0

    def update(self, val):
        self.total += val
        self.steps += 1

    def __call__(self):
        return self.total / float(self.steps)


class Net(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels * 4, 10)

    def forward(self, s):
        s = F.relu(F.max_pool2d(self.bn1(self.conv1(s)), 2))
        s = F.relu(F.max_pool2d(self.bn2(self.conv2(s)), 2))
        return self.fc(s.flatten(1))


def loss_fn(outputs, labels):
    return nn.CrossEntropyLoss()(outputs, labels)


def loss_fn_kd(outputs, labels, teacher_outputs, params):
    """KL between the softened outputs, weighted with the usual cross entropy."""
    alpha, T = params.alpha, params.temperature
    return nn.KLDivLoss(reduction="batchmean")(
        F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1)
    ) * (alpha * T * T) + F.cross_entropy(outputs, labels) * (1.0 - alpha)


def accuracy(outputs, labels):
    outputs = np.argmax(outputs, axis=1)
    return np.sum(outputs == labels) / float(labels.size)


metrics = {"accuracy": accuracy}


def train(model, optimizer, loss_fn, dataloader, metrics, params):
    model.train()
    summ = []
    loss_avg = RunningAverage()
    with tqdm(total=len(dataloader)) as t:
        for i, (train_batch, labels_batch) in enumerate(dataloader):
            if params.cuda:
                train_batch, labels_batch = train_batch.cuda(non_blocking=True), labels_batch.cuda(non_blocking=True)
            output_batch = model(train_batch)
            loss = loss_fn(output_batch, labels_batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            # Evaluate summaries only once in a while
            if i % params.save_summary_steps == 0:
                output_batch = output_batch.data.cpu().numpy()
                labels_batch = labels_batch.data.cpu().numpy()
                summary_batch = {metric: metrics[metric](output_batch, labels_batch) for metric in metrics}
                summary_batch["loss"] = loss.item()
                summ.append(summary_batch)

            loss_avg.update(loss.item())
            t.set_postfix(loss="{:05.3f}".format(loss_avg()))
            t.update()
    metrics_mean = {metric: np.mean([x[metric] for x in summ]) for metric in summ[0]}
    logging.info("- Train metrics: " + " ; ".join("{}: {:05.3f}".format(k, v) for k, v in metrics_mean.items()))


def train_kd(model, teacher_model, optimizer, loss_fn_kd, dataloader, metrics, params):
    model.train()
    teacher_model.eval()
    summ = []
    loss_avg = RunningAverage()
    with tqdm(total=len(dataloader)) as t:
        for i, (train_batch, labels_batch) in enumerate(dataloader):
            if params.cuda:
                train_batch, labels_batch = train_batch.cuda(), labels_batch.cuda()
            output_batch = model(train_batch)
            with torch.no_grad():
                output_teacher_batch = teacher_model(train_batch)
            loss = loss_fn_kd(output_batch, labels_batch, output_teacher_batch, params)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            if i % params.save_summary_steps == 0:
                output_batch = output_batch.data.cpu().numpy()
                labels_batch = labels_batch.data.cpu().numpy()
                summary_batch = {metric: metrics[metric](output_batch, labels_batch) for metric in metrics}
                summary_batch["loss"] = loss.data
                summ.append(summary_batch)

            loss_avg.update(loss.data)
            t.set_postfix(loss="{:05.3f}".format(loss_avg()))
            t.update()
    metrics_mean = {metric: np.mean([float(x[metric]) for x in summ]) for metric in summ[0]}
    logging.info("- Train metrics: " + " ; ".join("{}: {:05.3f}".format(k, v) for k, v in metrics_mean.items()))


def evaluate(model, loss_fn, dataloader, metrics, params):
    model.eval()
    summ = []
    for data_batch, labels_batch in dataloader:
        if params.cuda:
            data_batch, labels_batch = data_batch.cuda(), labels_batch.cuda()
        output_batch = model(data_batch)
        loss = loss_fn(output_batch, labels_batch)
        output_batch = output_batch.data.cpu().numpy()
        labels_batch = labels_batch.data.cpu().numpy()
        summary_batch = {metric: metrics[metric](output_batch, labels_batch) for metric in metrics}
        summary_batch["loss"] = loss.item()
        summ.append(summary_batch)
    metrics_mean = {metric: np.mean([x[metric] for x in summ]) for metric in summ[0]}
    logging.info("- Eval metrics : " + " ; ".join("{}: {:05.3f}".format(k, v) for k, v in metrics_mean.items()))
    return metrics_mean


def train_and_evaluate(train_one, model, train_loader, val_loader, params, name):
    best_val_acc = 0.0
    for epoch in range(params.num_epochs):
        logging.info("Epoch {}/{}".format(epoch + 1, params.num_epochs))
        train_one()
        val_metrics = evaluate(model, loss_fn, val_loader, metrics, params)
        if val_metrics["accuracy"] >= best_val_acc:
            best_val_acc = val_metrics["accuracy"]
            os.makedirs(params.model_dir, exist_ok=True)
            torch.save(model.state_dict(), os.path.join(params.model_dir, name + "_best.pth.tar"))


if __name__ == "__main__":
    params = parser.parse_args()
    params.cuda = torch.cuda.is_available()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(230)
    if params.cuda:
        torch.cuda.manual_seed(230)
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    dataset = torch.utils.data.TensorDataset(x, y)
    train_dl = torch.utils.data.DataLoader(
        torch.utils.data.Subset(dataset, range(640)), batch_size=32, shuffle=True, pin_memory=params.cuda
    )
    dev_dl = torch.utils.data.DataLoader(torch.utils.data.Subset(dataset, range(1600, 1700)), batch_size=32)

    teacher, student = Net(16), Net(4)
    if params.cuda:
        teacher, student = teacher.cuda(), student.cuda()
    opt_t = optim.SGD(teacher.parameters(), lr=0.05, momentum=0.9)
    opt_s = optim.Adam(student.parameters(), lr=1e-3)
    train_and_evaluate(
        lambda: train(teacher, opt_t, loss_fn, train_dl, metrics, params), teacher, train_dl, dev_dl, params, "teacher"
    )
    train_and_evaluate(
        lambda: train_kd(student, teacher, opt_s, loss_fn_kd, train_dl, metrics, params),
        student,
        train_dl,
        dev_dl,
        params,
        "student",
    )
