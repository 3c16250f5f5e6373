# %% [markdown]
# LSTM for multivariate time series forecasting, exported from a notebook

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
seq_len, horizon, batch_size, n_epochs = 24, 4, 32, 3

# %%
rng = np.random.default_rng(0)
t = np.arange(1200)
series = np.stack([np.sin(t / 12), np.cos(t / 30), 0.001 * t], 1) + 0.1 * rng.normal(size=(1200, 3))
mean, std = series[:800].mean(0), series[:800].std(0)
series = ((series - mean) / std).astype(np.float32)


class WindowDataset(Dataset):
    def __init__(self, data):
        self.data = torch.from_numpy(data)

    def __len__(self):
        return len(self.data) - seq_len - horizon

    def __getitem__(self, i):
        return self.data[i : i + seq_len], self.data[i + seq_len : i + seq_len + horizon, 0]


train_loader = DataLoader(WindowDataset(series[:800]), batch_size=batch_size, shuffle=True)
val_loader = DataLoader(WindowDataset(series[800:1000]), batch_size=batch_size)
test_loader = DataLoader(WindowDataset(series[1000:]), batch_size=batch_size)


# %%
class LSTMModel(nn.Module):
    def __init__(self, input_dim, hidden_dim, layer_dim, output_dim, dropout_prob):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.layer_dim = layer_dim
        self.lstm = nn.LSTM(input_dim, hidden_dim, layer_dim, batch_first=True, dropout=dropout_prob)
        self.fc = nn.Linear(hidden_dim, output_dim)

    def forward(self, x):
        h0 = torch.zeros(self.layer_dim, x.size(0), self.hidden_dim).requires_grad_().to(x.device)
        c0 = torch.zeros(self.layer_dim, x.size(0), self.hidden_dim).requires_grad_().to(x.device)
        out, (hn, cn) = self.lstm(x, (h0.detach(), c0.detach()))
        return self.fc(out[:, -1, :])


# %%
class Optimization:
    """Holds the model together with its loss and optimizer, as in many tutorials."""

    def __init__(self, model, loss_fn, optimizer):
        self.model = model
        self.loss_fn = loss_fn
        self.optimizer = optimizer
        self.train_losses = []
        self.val_losses = []

    def train_step(self, x, y):
        self.model.train()
        yhat = self.model(x)
        loss = self.loss_fn(y, yhat)
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def train(self, train_loader, val_loader, n_epochs=50):
        for epoch in range(1, n_epochs + 1):
            batch_losses = []
            for x_batch, y_batch in train_loader:
                x_batch = x_batch.to(device)
                y_batch = y_batch.to(device)
                loss = self.train_step(x_batch, y_batch)
                batch_losses.append(loss)
            training_loss = np.mean(batch_losses)
            self.train_losses.append(training_loss)

            with torch.no_grad():
                batch_val_losses = []
                for x_val, y_val in val_loader:
                    x_val = x_val.to(device)
                    y_val = y_val.to(device)
                    self.model.eval()
                    yhat = self.model(x_val)
                    val_loss = self.loss_fn(y_val, yhat).item()
                    batch_val_losses.append(val_loss)
                validation_loss = np.mean(batch_val_losses)
                self.val_losses.append(validation_loss)

            if (epoch <= 10) | (epoch % 50 == 0):
                print(
                    f"[{epoch}/{n_epochs}] Training loss: {training_loss:.4f}\t Validation loss: {validation_loss:.4f}"
                )
        torch.save(self.model.state_dict(), "lstm.pth")

    def evaluate(self, test_loader):
        with torch.no_grad():
            predictions, values = [], []
            for x_test, y_test in test_loader:
                x_test = x_test.to(device)
                y_test = y_test.to(device)
                self.model.eval()
                yhat = self.model(x_test)
                predictions.append(yhat.to("cpu").detach().numpy())
                values.append(y_test.to("cpu").detach().numpy())
        return np.concatenate(predictions), np.concatenate(values)

    def plot_losses(self):
        import matplotlib.pyplot as plt

        plt.plot(self.train_losses, label="Training loss")
        plt.plot(self.val_losses, label="Validation loss")
        plt.legend()
        plt.show()


# %%
torch.manual_seed(0)
model = LSTMModel(3, 32, 2, horizon, 0.1).to(device)
opt = Optimization(
    model, nn.MSELoss(reduction="mean"), torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
)
opt.train(train_loader, val_loader, n_epochs=n_epochs)

# %%
predictions, values = opt.evaluate(test_loader)
mae = np.abs(predictions - values).mean()
rmse = np.sqrt(((predictions - values) ** 2).mean())
print({"mae": mae, "rmse": rmse})

# %%
x, y = next(iter(test_loader))
model.eval()
with torch.no_grad():
    one = model(x[:1].to(device)).squeeze(0)
for step, value in enumerate(one):
    print(f"+{step + 1}h: {value.item():.3f}")
