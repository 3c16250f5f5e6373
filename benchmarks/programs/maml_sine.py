"""Model-agnostic meta-learning on sine waves: an inner loop by torch.autograd.grad, an outer loop by Adam."""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class SineTask:
    def __init__(self, amplitude, phase):
        self.amplitude, self.phase = amplitude, phase

    def sample(self, k):
        x = np.random.uniform(-5, 5, (k, 1)).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy((self.amplitude * np.sin(x + self.phase)).astype(np.float32))


class SineTasks:
    def sample_batch(self, n):
        return [SineTask(np.random.uniform(0.1, 5), np.random.uniform(0, np.pi)) for _ in range(n)]


class MetaLearner(nn.Module):
    def __init__(self, update_lr, update_step, update_step_test, k_spt, k_qry):
        super().__init__()
        self.update_lr = update_lr
        self.update_step, self.update_step_test = update_step, update_step_test
        self.k_spt, self.k_qry = k_spt, k_qry
        self.vars = nn.ParameterList()
        for n_out, n_in in ((24, 1), (24, 24), (1, 24)):
            w = nn.Parameter(torch.ones(n_out, n_in))
            nn.init.kaiming_normal_(w)
            self.vars.append(w)
            self.vars.append(nn.Parameter(torch.zeros(n_out)))

    def net(self, x, params=None):
        params = list(self.vars) if params is None else params
        for i in range(0, len(params), 2):
            x = F.linear(x, params[i], params[i + 1])
            if i + 2 < len(params):
                x = F.relu(x)
        return x

    def adapt(self, x, y, steps, create_graph=True):
        fast_weights = list(self.vars)
        for _ in range(steps):
            loss = F.mse_loss(self.net(x, fast_weights), y)
            grad = torch.autograd.grad(loss, fast_weights, create_graph=create_graph)
            fast_weights = [p - self.update_lr * g for p, g in zip(fast_weights, grad)]
        return fast_weights

    def forward(self, tasks, device):
        losses_q = []
        for task in tasks:
            x_spt, y_spt = task.sample(self.k_spt)
            x_qry, y_qry = task.sample(self.k_qry)
            x_spt, y_spt = x_spt.to(device), y_spt.to(device)
            x_qry, y_qry = x_qry.to(device), y_qry.to(device)
            fast_weights = self.adapt(x_spt, y_spt, self.update_step)
            losses_q.append(F.mse_loss(self.net(x_qry, fast_weights), y_qry))
        return torch.stack(losses_q).mean()

    def finetunning(self, task, device):
        """How the loss falls with each step of adaptation, for one task."""
        x_spt, y_spt = (each.to(device) for each in task.sample(self.k_spt))
        x_qry, y_qry = (each.to(device) for each in task.sample(self.k_qry))
        losses = []
        for steps in range(self.update_step_test + 1):
            weights = self.adapt(x_spt, y_spt, steps, create_graph=False)
            with torch.no_grad():
                losses.append(F.mse_loss(self.net(x_qry, weights), y_qry).item())
        return losses


def main(args):
    torch.manual_seed(222)
    np.random.seed(222)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    maml = MetaLearner(args.update_lr, args.update_step, args.update_step_test, args.k_spt, args.k_qry).to(device)
    meta_optim = torch.optim.Adam(maml.parameters(), lr=args.meta_lr)
    total = sum(np.prod(p.shape) for p in filter(lambda p: p.requires_grad, maml.parameters()))
    print("Total trainable tensors:", total)

    db = SineTasks()
    moving = None
    for step in range(args.steps):
        loss_q = maml(db.sample_batch(args.task_num), device)
        meta_optim.zero_grad()
        loss_q.backward()
        grad_norm = nn.utils.clip_grad_norm_(maml.parameters(), 10.0)
        if grad_norm.isnan():
            print("skipping a batch with NaN gradients")
            continue
        meta_optim.step()

        moving = loss_q.detach() if moving is None else 0.9 * moving + 0.1 * loss_q.detach()
        if step % 10 == 0:
            print(f"step {step} training loss {loss_q.item():.4f} moving {moving.item():.4f} |g| {grad_norm:.3f}")
        if step % 20 == 19:
            losses = [maml.finetunning(task, device) for task in db.sample_batch(2)]
            print("Test loss by steps:", np.array(losses).mean(axis=0).astype(np.float16))


if __name__ == "__main__":
    argparser = argparse.ArgumentParser()
    argparser.add_argument("--steps", type=int, default=40)
    argparser.add_argument("--k_spt", type=int, default=5)
    argparser.add_argument("--k_qry", type=int, default=10)
    argparser.add_argument("--task_num", type=int, default=3)
    argparser.add_argument("--meta_lr", type=float, default=1e-3)
    argparser.add_argument("--update_lr", type=float, default=0.01)
    argparser.add_argument("--update_step", type=int, default=2)
    argparser.add_argument("--update_step_test", type=int, default=3)
    main(argparser.parse_args())
