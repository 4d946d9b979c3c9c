"""Datasets, samplers, and a loader that reads batches in threads or processes."""

import sys as _sys
from atexit import register as _register_at_exit
from importlib.machinery import ModuleSpec as _ModuleSpec
from types import ModuleType as _ModuleType

from cygrad.utils.data import _fetch, _own_workers, _pinning, _worker, datapipes, distributed, graph_settings
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
vars(_utils).update(collate=_collate, fetch=_fetch, pin_memory=_pinning, signal_handling=_own_workers, worker=_worker)
vars(_utils).update(HAS_NUMPY=True, MP_STATUS_CHECK_INTERVAL=_worker.PATIENCE, python_exit_status=False)
_register_at_exit(lambda: setattr(_utils, "python_exit_status", True))
vars(datapipes).update(__path__=[], datapipe=datapipes)
_sys.modules |= {
    _utils.__name__: _utils,
    f"{_utils.__name__}.collate": _collate,
    f"{_utils.__name__}.fetch": _fetch,
    f"{_utils.__name__}.pin_memory": _pinning,
    f"{_utils.__name__}.signal_handling": _own_workers,
    f"{_utils.__name__}.worker": _worker,
    f"{datapipes.__name__}.datapipe": datapipes,
}
