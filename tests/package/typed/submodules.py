"""What type checkers say of modules that are imported on first use; see tensors.py."""

from typing import reveal_type

import cygrad as torch

loader = torch.utils.data.DataLoader([1, 2], batch_sizes=2)  # error: Unexpected keyword argument "batch_sizes"
reveal_type(torch.utils.checkpoint.check_backward_validity([torch.ones(1)]))  # None
torch.utils.data.no_such_name  # error: Module has no attribute "no_such_name"
