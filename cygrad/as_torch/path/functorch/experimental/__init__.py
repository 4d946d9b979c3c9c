"""Names of functorch that were never settled."""

from torch._functorch.deprecated import functionalize
from torch.func import replace_all_batch_norm_modules_

__all__ = ["functionalize", "replace_all_batch_norm_modules_"]
