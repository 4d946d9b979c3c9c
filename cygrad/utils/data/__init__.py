"""Datasets, samplers, and a loader that reads batches in threads or processes."""

import sys as _sys

from cygrad.utils.data import collate as _collate
from cygrad.utils.data import distributed
from cygrad.utils.data._worker import get_worker_info
from cygrad.utils.data.collate import default_collate, default_convert
from cygrad.utils.data.dataloader import DataLoader
from cygrad.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from cygrad.utils.data.distributed import DistributedSampler
from cygrad.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
]

# PyTorch keeps its collate functions one package deeper.
_utils = _sys.modules[__name__]
_sys.modules |= {f"{__name__}._utils": _utils, f"{__name__}._utils.collate": _collate}
