"""What belongs to the data pipeline, whose values live on the host, though it may be called in a step."""

from __future__ import annotations

from syncscope.heat import by_code
from syncscope.heat.by_name import picks_rows
from syncscope.project import beside_training, conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import ancestry, outside
from syncscope.project.of_file import MANY, kept

_SENDERS = frozenset(("to", "cuda", "to_device"))  # of a data set that is handed to a loop whole


def on_host(function: ProjectFunction) -> bool:
    """Whether its values are the data pipeline's, which live on the host, until they are sent."""
    if function.name in _SENDERS:
        return False
    return beside_training.is_of_data(function.name) or (function.cls is not None and _holds_data(function.cls))


@kept(MANY)  # asked whenever a method is run, of the classes of several files in turns
def _holds_data(cls: Class) -> bool:
    """Whether a class is one of data sets, or picks their rows, by its name, or that of one that it derives from:
    `DatasetForNoise(BaseDataset)`, `Balanced(torch.utils.data.Sampler)`."""
    kin = ancestry(cls)
    named = (*(each.name for each in kin), *outside(cls))
    methods = [name for each in kin for name in each.methods]
    of_data = any(picks_rows(name, methods) or name.endswith(conventions.DATA_CLASSES) for name in named)
    return of_data and not any(map(by_code.keeps_on_device, kin))
