"""Handwritten digits of a loader with two workers; losses and right answers are added up as in tutorials; without, kept."""

from __future__ import annotations

from typing import Any

from loops import Step, sized


def loop(torch: Any, device: Any) -> Step:
    from sklearn.datasets import load_digits

    nn = torch.nn
    torch.manual_seed(57)
    batch, channels = sized(device, 16), sized(device, 6)
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
    if device.type == "cuda":
        images = nn.functional.interpolate(images, size=(32, 32), mode="bilinear")
    data = torch.utils.data.TensorDataset(images, torch.from_numpy(digits.target).long())
    loader = torch.utils.data.DataLoader(
        data, batch_size=batch, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )
    model = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 10),
    ).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    batches: Any = iter(())
    running_loss: Any = 0.0
    running_corrects: Any = 0

    def run(reads: bool) -> None:
        nonlocal batches, running_loss, running_corrects
        found = next(batches, None)
        if found is None:
            batches, running_loss, running_corrects = iter(loader), 0.0, 0
            found = next(batches)
        inputs, labels = (part.to(device) for part in found)
        optimizer.zero_grad()
        outputs = model(inputs)
        predicted = torch.max(outputs, 1)[1]
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        corrects = torch.sum(predicted == labels)
        running_loss += (loss.item() if reads else loss.detach()) * inputs.size(0)
        running_corrects += corrects.item() if reads else corrects

    return run
