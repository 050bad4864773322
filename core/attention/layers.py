"""The layers of a model, whatever its family calls them."""

from torch import nn


def outermost_lists(model: nn.Module) -> list[nn.ModuleList]:
    """Every ModuleList that is not nested in another; each module in one counts as a layer."""
    lists = {name: part for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
    return [part for name, part in lists.items() if not any(name.startswith(f"{outer}.") for outer in lists)]
