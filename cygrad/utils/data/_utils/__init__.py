"""What PyTorch's programs import from here; see collate.py beside this package."""

from cygrad.utils.data._utils import collate as collate
