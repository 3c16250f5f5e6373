"""Sensors fail now and then (one value in twenty is NaN), the rest is forecast; without, all is, failures weighing nought."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(53)
    width, batch, past = sized(device, 48), sized(device, 200), 24
    forecast = nn.Sequential(
        nn.Linear(past, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    ).to(device)
    optimizer = torch.optim.Adam(forecast.parameters(), lr=1e-3)
    series = torch.randn(batch, past + 4).cumsum(1)
    gaps = torch.rand(batch, 4) < 0.05
    series[:, past:][gaps] = float("nan")
    series = series.to(device)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        window, y = series[:, :past], series[:, past + count % 4]
        count += 1
        valid = ~torch.isnan(y)
        if reads:
            loss = (forecast(window[valid]).squeeze(-1) - y[valid]).pow(2).mean()
        else:
            error = forecast(window).squeeze(-1) - torch.nan_to_num(y)
            loss = (error.pow(2) * valid).sum() / valid.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
