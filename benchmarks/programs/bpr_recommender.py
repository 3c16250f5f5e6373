"""Bayesian personalised ranking (matrix factorisation and LightGCN-like propagation), HR@k and NDCG@k."""

import time
from argparse import ArgumentParser

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as data


class BPRData(data.Dataset):
    def __init__(self, features, num_item, train_mat, num_ng=0, is_training=True):
        self.features = features
        self.num_item = num_item
        self.train_mat = train_mat
        self.num_ng = num_ng
        self.is_training = is_training

    def ng_sample(self):
        self.features_fill = []
        for u, i in self.features:
            for _ in range(self.num_ng):
                j = np.random.randint(self.num_item)
                while (u, j) in self.train_mat:
                    j = np.random.randint(self.num_item)
                self.features_fill.append([u, i, j])

    def __len__(self):
        return self.num_ng * len(self.features) if self.is_training else len(self.features)

    def __getitem__(self, idx):
        features = self.features_fill if self.is_training else self.features
        user, item_i = features[idx][0], features[idx][1]
        return user, item_i, features[idx][2] if self.is_training else item_i


class LightBPR(nn.Module):
    def __init__(self, user_num, item_num, factor_num, graph, n_layers=2):
        super().__init__()
        self.embed_user = nn.Embedding(user_num, factor_num)
        self.embed_item = nn.Embedding(item_num, factor_num)
        nn.init.normal_(self.embed_user.weight, std=0.01)
        nn.init.normal_(self.embed_item.weight, std=0.01)
        self.graph, self.n_layers = graph, n_layers

    def computer(self):
        emb = torch.cat([self.embed_user.weight, self.embed_item.weight])
        embs = [emb]
        for _ in range(self.n_layers):
            emb = torch.sparse.mm(self.graph, emb)
            embs.append(emb)
        light_out = torch.mean(torch.stack(embs, dim=1), dim=1)
        return torch.split(light_out, [self.embed_user.num_embeddings, self.embed_item.num_embeddings])

    def forward(self, user, item_i, item_j):
        users, items = self.computer()
        user, item_i, item_j = users[user], items[item_i], items[item_j]
        prediction_i = (user * item_i).sum(dim=-1)
        prediction_j = (user * item_j).sum(dim=-1)
        reg = (user.norm(2).pow(2) + item_i.norm(2).pow(2) + item_j.norm(2).pow(2)) / float(len(user))
        return prediction_i, prediction_j, reg


def hit(gt_item, pred_items):
    return 1 if gt_item in pred_items else 0


def ndcg(gt_item, pred_items):
    if gt_item in pred_items:
        index = pred_items.index(gt_item)
        return np.reciprocal(np.log2(index + 2))
    return 0


def metrics(model, test_loader, top_k, device):
    HR, NDCG = [], []
    for user, item_i, item_j in test_loader:
        user = user.to(device)
        item_i = item_i.to(device)
        item_j = item_j.to(device)  # not useful when testing

        prediction_i, prediction_j, _ = model(user, item_i, item_j)
        _, indices = torch.topk(prediction_i, top_k)
        recommends = torch.take(item_i, indices).cpu().numpy().tolist()

        gt_item = item_i[0].item()
        HR.append(hit(gt_item, recommends))
        NDCG.append(ndcg(gt_item, recommends))

    return np.mean(HR), np.mean(NDCG)


def build_graph(pairs, n_users, n_items, device):
    users = torch.tensor([u for u, _ in pairs])
    items = torch.tensor([i for _, i in pairs]) + n_users
    index = torch.stack([torch.cat([users, items]), torch.cat([items, users])])
    degree = torch.bincount(index[0], minlength=n_users + n_items).clamp(min=1).float()
    values = (degree[index[0]] * degree[index[1]]).rsqrt()
    return torch.sparse_coo_tensor(index, values, (n_users + n_items, n_users + n_items)).coalesce().to(device)


def main():
    parser = ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--lamda", type=float, default=0.001, help="model regularization rate")
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--top_k", type=int, default=5)
    parser.add_argument("--factor_num", type=int, default=8)
    parser.add_argument("--num_ng", type=int, default=2, help="sample negative items for training")
    parser.add_argument("--test_num_ng", type=int, default=19)
    parser.add_argument("--out", default=True, help="save model or not")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = np.random.default_rng(0)
    np.random.seed(0)
    torch.manual_seed(0)
    user_num, item_num = 40, 60
    pairs = {(u, int(i)) for u in range(user_num) for i in rng.choice(item_num, 14, replace=False)}
    pairs = sorted(pairs)
    held = {u: i for u, i in pairs}
    train_data = [[u, i] for u, i in pairs if held[u] != i]
    train_mat = set(map(tuple, train_data))
    test_data = []
    for u in range(8):
        test_data += [[u, held[u]]] + [[u, int(j)] for j in rng.integers(0, item_num, args.test_num_ng)]

    train_dataset = BPRData(train_data, item_num, train_mat, args.num_ng, True)
    test_dataset = BPRData(test_data, item_num, train_mat, 0, False)
    train_loader = data.DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=0)
    test_loader = data.DataLoader(test_dataset, batch_size=args.test_num_ng + 1, shuffle=False, num_workers=0)

    model = LightBPR(user_num, item_num, args.factor_num, build_graph(train_data, user_num, item_num, device))
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    best_hr = 0
    for epoch in range(args.epochs):
        model.train()
        start_time = time.time()
        train_loader.dataset.ng_sample()
        aver_loss = 0.0

        for user, item_i, item_j in train_loader:
            user = user.to(device)
            item_i = item_i.to(device)
            item_j = item_j.to(device)

            model.zero_grad()
            prediction_i, prediction_j, reg = model(user, item_i, item_j)
            loss = -F.logsigmoid(prediction_i - prediction_j).mean() + args.lamda * reg
            loss.backward()
            optimizer.step()
            aver_loss += loss.cpu().item()

        model.eval()
        HR, NDCG = metrics(model, test_loader, args.top_k, device)
        elapsed_time = time.time() - start_time
        print(
            "The time elapse of epoch {:03d}".format(epoch)
            + " is: "
            + time.strftime("%H: %M: %S", time.gmtime(elapsed_time))
        )
        print("loss {:.4f}\tHR: {:.3f}\tNDCG: {:.3f}".format(aver_loss / len(train_loader), np.mean(HR), np.mean(NDCG)))

        if HR > best_hr:
            best_hr, best_ndcg, best_epoch = HR, NDCG, epoch
            if args.out:
                torch.save(model.state_dict(), "BPR.pt")

    if best_hr:
        print("End. Best epoch {:03d}: HR = {:.3f}, NDCG = {:.3f}".format(best_epoch, best_hr, best_ndcg))


if __name__ == "__main__":
    main()
