"""Datasets, samplers, and a loader that reads batches in threads or processes."""

import sys as _sys
from importlib.machinery import ModuleSpec as _ModuleSpec
from types import ModuleType as _ModuleType

from cygrad.utils.data import _pinning, _worker, datapipes, distributed, graph_settings
from cygrad.utils.data import collate as _collate
from cygrad.utils.data._worker import get_worker_info
from cygrad.utils.data.collate import default_collate, default_convert
from cygrad.utils.data.dataloader import DataLoader, _DatasetKind
from cygrad.utils.data.datapipes import (
    IterDataPipe,
    MapDataPipe,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
)
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
    "_DatasetKind",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
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
    "datapipes",
    "distributed",
    "functional_datapipe",
    "get_worker_info",
    "graph_settings",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
]

# PyTorch keeps its functions for batches and workers one package deeper.
_utils = _ModuleType(f"{__name__}._utils", "What a `DataLoader` uses: `collate`, `pin_memory` and `worker`.")
_utils.__spec__ = _ModuleSpec(_utils.__name__, None, is_package=True)
_utils.__path__ = []
vars(_utils).update(collate=_collate, pin_memory=_pinning, worker=_worker, MP_STATUS_CHECK_INTERVAL=_worker.PATIENCE)
_sys.modules |= {
    _utils.__name__: _utils,
    f"{_utils.__name__}.collate": _collate,
    f"{_utils.__name__}.pin_memory": _pinning,
    f"{_utils.__name__}.worker": _worker,
}
