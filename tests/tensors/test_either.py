"""What may be one thing or another is told at low confidence only: `# waits: op` marks what is told, with all that is guessed
in the first list, and by default in the second."""

import pytest
from tensors.marked import marks, waits

GUESSED = {
    "a size that the caller may have left out": """
        def spread(x: torch.Tensor, counts: torch.Tensor, size: int | None = None):
            return x.repeat_interleave(counts, output_size=size)  # waits: repeat_interleave

        def known(x: torch.Tensor, counts: torch.Tensor, size: int):
            return x.repeat_interleave(counts, output_size=size)
    """,
    "a mask of the device over a tensor of the host": """
        def painted(masks: torch.Tensor, number: int):
            image = torch.zeros((384, 384))
            image[masks == 1] = number  # waits: mask_write
            return image
    """,
    "grouped by ends on the device, where the dtype may be any": """
        def experts(x: torch.Tensor, w: torch.Tensor, ends: torch.Tensor):
            return torch.nn.functional.grouped_mm(x, w, offs=ends)  # waits: library_read
    """,
    "what is called a tensor": """
        def filled(config, end, rows):
            fill = torch.full((2,), config._pad_token_tensor)  # waits: scalar_slot
            return fill, torch.full((2,), config.is_tensor), torch.full((2,), end)
    """,
    "on a device, or on the host by its name": """
        def counted(sizes: list, segments):
            device = segments.device if torch.is_tensor(segments) else "cpu"
            return torch.tensor(sizes, device=device)  # waits: tensor_literal
    """,
}
TOLD = {
    "a count that most callers leave out": """
        def _grown(x: torch.Tensor, new: int = 1):
            return torch.cat([x[x > 0], x.new_zeros((x.shape[0], new))])  # waits: mask_read

        def drafted(x: torch.Tensor, guesses: torch.Tensor):
            return _grown(x, new=(guesses < 1).sum())
    """,
    "positions or a mask, which is asked": """
        def smooth(soft: torch.Tensor, mask: torch.Tensor):
            many = int(mask.sum()) if mask.dtype == torch.bool else mask.size(0)
            return soft[mask] / many

        def chosen(soft: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor):
            if rows.dtype == torch.bool:
                return soft[rows]
            return soft[mask]  # waits: mask_read
    """,
    "a number that was read in one arm, or a tensor": """
        def padded(mask: torch.Tensor | None, ids: torch.Tensor, end: torch.Tensor):
            if mask is not None:
                wrong = torch.any(mask[:, -1] == 0).item()  # waits: item
            else:
                wrong = torch.sum(ids[:, -1] == end) > 0
            if wrong:
                return ids
    """,
    "the counters of an optimizer, read where they are on the host": """
        def _value(x):
            return x.item() if isinstance(x, torch.Tensor) else x

        def adamw(params: list[torch.Tensor], state_steps: list[torch.Tensor], scale: torch.Tensor):
            for param, step in zip(params, state_steps):
                step += 1
                param.mul_(1 - 0.9 ** _value(step))
            return scale.item()  # waits: item
    """,
    "the counters of an optimizer, grouped by device": """
        from typing import List, cast
        from torch import Tensor
        from torch.optim import Optimizer

        def _value(x):
            return x.item() if isinstance(x, torch.Tensor) else x

        def adopt(params: List[Tensor], state_steps: List[Tensor], scale: Tensor):
            grouped = Optimizer._group_tensors_by_device_and_dtype([params, state_steps], with_indices=True)
            for (device_params_, device_steps_), places in grouped.values():
                device_params = cast(List[Tensor], device_params_)
                device_steps = cast(List[Tensor], device_steps_)
                first = [bool(step == 1) for step in device_steps]
                powers = [0.9 ** _value(step) for step in device_steps]
                norms = [float(param.norm()) for param in device_params]  # waits: float
            return scale.item()  # waits: item
    """,
    "annotated for TorchScript": """
        from typing import List, Optional
        from torch import Tensor

        def total(scales, weights):
            given = torch.jit.annotate(List[Tensor], scales)
            for scale in given:
                float(scale)  # waits: float
            return float(torch.jit.annotate("Optional[Tensor]", weights))  # waits: float
    """,
    "a matching that is annotated": """
        import numpy as np

        class SegmentLoss(nn.Module):
            def loss_labels(self, logits: torch.Tensor, labels: list[torch.Tensor], indices: tuple[np.array]):
                return torch.cat([label[j] for label, (_, j) in zip(labels, indices)])  # waits: index_host
    """,
    "factors that are made of checked ones": """
        def principal(x: torch.Tensor):
            u, s, v = torch.pca_lowrank(x)  # waits: linalg_check
            return torch.svd_lowrank(x, q=4)[0] @ v  # waits: linalg_check
    """,
    "optimizers and averages that read, and those that do not": """
        from torch.optim.swa_utils import AveragedModel

        def train(model, steps):
            average, slow = AveragedModel(model), torch.optim.ASGD(model.parameters())
            fast = torch.optim.SGD(model.parameters())
            for _ in range(steps):
                slow.step()  # waits: library_read
                fast.step()
                average.update_parameters(model)  # waits: library_read
    """,
    "what a comment says, and where a dtype is asked": """
        def spread(start: torch.Tensor, length, rows):
            # length = length if isinstance(length, int) else length.clamp(0)
            if rows.dtype.is_floating_point and rows.dtype != torch.float16:
                return torch.arange(length, device=start.device)
            return start[start > 0]  # waits: mask_read
    """,
    "a text under a key of what is said to hold tensors": """
        def prompt(batch: dict[str, torch.Tensor], mask: torch.Tensor):
            task = batch["task"]
            if isinstance(task, str):
                return task
            if isinstance(mask, str):
                return mask
            return str(task) + str(mask)  # waits: format
    """,
    "the counters of an optimizer in a list of their own": """
        def step(self, group, scale: torch.Tensor):
            state_steps: list[torch.Tensor] = []
            self._init_group(group, state_steps)
            return state_steps[0].item() / scale.item()  # waits: item
    """,
    "a scaler that is switched off": """
        def train(loss: torch.Tensor, optimizer):
            scaler, none = torch.amp.GradScaler(), torch.cuda.amp.GradScaler(enabled=False)
            none.scale(loss).backward()
            none.step(optimizer)
            scaler.step(optimizer)  # waits: grad_scaler
            return none.scale(loss).item()  # waits: item
    """,
    "classes found in the head or in the tails": """
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.AdaptiveLogSoftmaxWithLoss(64, 1000, [100])

            def forward(self, x):
                return self.out.predict(x)  # waits: library_read
    """,
}


@pytest.mark.parametrize("code", GUESSED.values(), ids=GUESSED)
def test_guesses_are_made_where_the_marks_say(code: str) -> None:
    assert waits(code) == marks(code)
    assert waits(code, confidence=2) == set() or "device = " in code


@pytest.mark.parametrize("code", TOLD.values(), ids=TOLD)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
