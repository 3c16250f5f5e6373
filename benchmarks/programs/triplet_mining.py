"""Metric learning: triplet loss with online mining, evaluated by recall@1 of a nearest-neighbour search."""

from itertools import combinations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.sampler import BatchSampler

cuda = torch.cuda.is_available()


class BalancedBatchSampler(BatchSampler):
    """Samples n_classes and within these n_samples."""

    def __init__(self, labels, n_classes, n_samples, n_batches):
        self.labels_set = list(set(labels.numpy()))
        self.label_to_indices = {label: np.where(labels.numpy() == label)[0] for label in self.labels_set}
        self.n_classes, self.n_samples, self.n_batches = n_classes, n_samples, n_batches

    def __iter__(self):
        for _ in range(self.n_batches):
            indices = []
            for class_ in np.random.choice(self.labels_set, self.n_classes, replace=False):
                indices.extend(np.random.choice(self.label_to_indices[class_], self.n_samples, replace=False))
            yield indices

    def __len__(self):
        return self.n_batches


class EmbeddingNet(nn.Module):
    def __init__(self):
        super(EmbeddingNet, self).__init__()
        self.convnet = nn.Sequential(nn.Conv2d(1, 8, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.Linear(8 * 3 * 3, 32), nn.PReLU(), nn.Linear(32, 8))

    def forward(self, x):
        output = self.convnet(x)
        return self.fc(output.view(output.size()[0], -1))

    def get_embedding(self, x):
        return self.forward(x)


def pdist(vectors):
    return (
        -2 * vectors.mm(torch.t(vectors))
        + vectors.pow(2).sum(dim=1).view(1, -1)
        + vectors.pow(2).sum(dim=1).view(-1, 1)
    )


def hardest_negative(loss_values):
    hard_negative = np.argmax(loss_values)
    return hard_negative if loss_values[hard_negative] > 0 else None


def semihard_negative(loss_values, margin=1.0):
    semihard = np.where(np.logical_and(loss_values < margin, loss_values > 0))[0]
    return np.random.choice(semihard) if len(semihard) > 0 else None


class FunctionNegativeTripletSelector:
    """For each positive pair, takes the negative that the function chooses."""

    def __init__(self, margin, negative_selection_fn, cpu=True):
        self.cpu = cpu
        self.margin = margin
        self.negative_selection_fn = negative_selection_fn

    def get_triplets(self, embeddings, labels):
        if self.cpu:
            embeddings = embeddings.cpu()
        distance_matrix = pdist(embeddings)
        distance_matrix = distance_matrix.cpu()

        labels = labels.cpu().data.numpy()
        triplets = []
        for label in set(labels):
            label_mask = labels == label
            label_indices = np.where(label_mask)[0]
            if len(label_indices) < 2:
                continue
            negative_indices = np.where(np.logical_not(label_mask))[0]
            anchor_positives = np.array(list(combinations(label_indices, 2)))
            ap_distances = distance_matrix[anchor_positives[:, 0], anchor_positives[:, 1]]
            for anchor_positive, ap_distance in zip(anchor_positives, ap_distances):
                loss_values = (
                    ap_distance
                    - distance_matrix[
                        torch.LongTensor(np.array([anchor_positive[0]])), torch.LongTensor(negative_indices)
                    ]
                    + self.margin
                )
                loss_values = loss_values.data.cpu().numpy()
                hard_negative = self.negative_selection_fn(loss_values)
                if hard_negative is not None:
                    hard_negative = negative_indices[hard_negative]
                    triplets.append([anchor_positive[0], anchor_positive[1], hard_negative])
        if len(triplets) == 0:
            triplets.append([anchor_positive[0], anchor_positive[1], negative_indices[0]])
        return torch.LongTensor(np.array(triplets))


class OnlineTripletLoss(nn.Module):
    def __init__(self, margin, triplet_selector):
        super(OnlineTripletLoss, self).__init__()
        self.margin = margin
        self.triplet_selector = triplet_selector

    def forward(self, embeddings, target):
        triplets = self.triplet_selector.get_triplets(embeddings, target)
        if embeddings.is_cuda:
            triplets = triplets.cuda()
        ap_distances = (embeddings[triplets[:, 0]] - embeddings[triplets[:, 1]]).pow(2).sum(1)
        an_distances = (embeddings[triplets[:, 0]] - embeddings[triplets[:, 2]]).pow(2).sum(1)
        losses = F.relu(ap_distances - an_distances + self.margin)
        return losses.mean(), len(triplets)


class AverageNonzeroTripletsMetric:
    def __init__(self):
        self.values = []

    def __call__(self, outputs, target, loss):
        self.values.append(loss[1])
        return self.value()

    def reset(self):
        self.values = []

    def value(self):
        return np.mean(self.values)

    def name(self):
        return "Average nonzero triplets"


def fit(train_loader, val_loader, model, loss_fn, optimizer, scheduler, n_epochs, cuda, log_interval, metrics=()):
    for epoch in range(n_epochs):
        train_loss, metrics = train_epoch(train_loader, model, loss_fn, optimizer, cuda, log_interval, metrics)
        scheduler.step()
        message = "Epoch: {}/{}. Train set: Average loss: {:.4f}".format(epoch + 1, n_epochs, train_loss)
        for metric in metrics:
            message += "\t{}: {}".format(metric.name(), metric.value())
        val_loss = test_epoch(val_loader, model, loss_fn, cuda)
        message += "\nEpoch: {}/{}. Validation set: Average loss: {:.4f}".format(epoch + 1, n_epochs, val_loss)
        print(message)


def train_epoch(train_loader, model, loss_fn, optimizer, cuda, log_interval, metrics):
    for metric in metrics:
        metric.reset()
    model.train()
    losses = []
    total_loss = 0
    for batch_idx, (data, target) in enumerate(train_loader):
        target = target if len(target) > 0 else None
        if not type(data) in (tuple, list):
            data = (data,)
        if cuda:
            data = tuple(d.cuda() for d in data)
            if target is not None:
                target = target.cuda()

        optimizer.zero_grad()
        outputs = model(*data)
        if type(outputs) not in (tuple, list):
            outputs = (outputs,)
        loss_inputs = outputs
        if target is not None:
            loss_inputs += (target,)

        loss_outputs = loss_fn(*loss_inputs)
        loss = loss_outputs[0] if type(loss_outputs) in (tuple, list) else loss_outputs
        losses.append(loss.item())
        total_loss += loss.item()
        loss.backward()
        optimizer.step()

        for metric in metrics:
            metric(outputs, target, loss_outputs)

        if batch_idx % log_interval == 0:
            print("Train: [{}/{}]\tLoss: {:.6f}".format(batch_idx * len(data[0]), len(train_loader), np.mean(losses)))
            losses = []
    return total_loss / (batch_idx + 1), metrics


def test_epoch(val_loader, model, loss_fn, cuda):
    with torch.no_grad():
        model.eval()
        val_loss = 0
        for data, target in val_loader:
            if cuda:
                data, target = data.cuda(), target.cuda()
            loss, _ = loss_fn(model(data), target)
            val_loss += loss.item()
    return val_loss / len(val_loader)


def extract_embeddings(x, model, batch_size=64):
    with torch.no_grad():
        model.eval()
        embeddings = np.zeros((len(x), 8))
        for k in range(0, len(x), batch_size):
            images = x[k : k + batch_size]
            if cuda:
                images = images.cuda()
            embeddings[k : k + len(images)] = model.get_embedding(images).data.cpu().numpy()
    return embeddings


def recall_at_1(embeddings, labels):
    distances = ((embeddings[:, None] - embeddings[None]) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    return (labels[distances.argmin(1)] == labels).mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(digits.target)
    train_set, val_set = TensorDataset(x[:1000], y[:1000]), TensorDataset(x[1000:1300], y[1000:1300])
    train_loader = DataLoader(train_set, batch_sampler=BalancedBatchSampler(y[:1000], 5, 4, n_batches=12))
    val_loader = DataLoader(val_set, batch_sampler=BalancedBatchSampler(y[1000:1300], 5, 4, n_batches=2))
    margin = 1.0
    model = EmbeddingNet()
    if cuda:
        model.cuda()
    loss_fn = OnlineTripletLoss(margin, FunctionNegativeTripletSelector(margin, semihard_negative))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    scheduler = lr_scheduler.StepLR(optimizer, 8, gamma=0.1, last_epoch=-1)
    fit(train_loader, val_loader, model, loss_fn, optimizer, scheduler, 2, cuda, 5, [AverageNonzeroTripletsMetric()])
    print("recall@1", recall_at_1(extract_embeddings(x[1000:1300], model), digits.target[1000:1300]))
