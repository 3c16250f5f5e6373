"""Metrics of torchmetrics: `# waits: op` marks every line that does, and no other line does."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "metrics that are kept": """
        import torchmetrics
        from torchmetrics import MeanMetric
        from torchmetrics.classification import BinaryF1Score

        class Lit(nn.Module):
            def __init__(self, device):
                self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
                self.sure = BinaryF1Score(validate_args=False)
                self.error = torchmetrics.MeanSquaredError()
                self.mean = MeanMetric().to(device)
                self.quiet = MeanMetric(nan_strategy="disable")

            def training_step(self, batch, number):
                x, y = batch
                p = self.net(x)
                self.accuracy(p, y)  # waits: library_read
                self.sure(p, y)
                self.error.update(p, y)
                self.mean.update(p.mean())  # waits: library_read
                self.quiet.update(p.mean())
                self.accuracy.reset()
                return p.sum()
    """,
    "collections ask where one of them does": """
        from torchmetrics import MeanSquaredError, MetricCollection
        from torchmetrics.classification import MulticlassAccuracy

        class Lit(nn.Module):
            def __init__(self):
                both = MetricCollection({"a": MulticlassAccuracy(3), "b": MeanSquaredError()})
                self.both = both.clone(prefix="train_")
                self.errors = MetricCollection([MeanSquaredError()])

            def training_step(self, x, y):
                self.errors(x, y)
                return self.both(x, y)  # waits: library_read
    """,
    "functions": """
        from torchmetrics.functional import accuracy, mean_squared_error
        from torchmetrics.functional.classification import multiclass_accuracy

        def measured(p: torch.Tensor, y: torch.Tensor):
            first = accuracy(p, y, task="multiclass", num_classes=3)  # waits: library_read
            first += mean_squared_error(p, y) + multiclass_accuracy(p, y, 3, validate_args=False)
            return first, accuracy(p.cpu(), y)  # waits: cpu
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    assert waits(CASES[name]) == marks(CASES[name])
