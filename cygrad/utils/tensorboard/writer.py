"""Writes TensorBoard logs through the package tensorboardX."""

from __future__ import annotations

import functools
from typing import Any

import cygrad
from cygrad import Tensor

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes scalars, histograms, images, texts and more to a TensorBoard log directory.

    The methods are those of `tensorboardX.SummaryWriter`, which match PyTorch's: `add_scalar`, `add_scalars`,
    `add_histogram`, `add_image`, `add_images`, `add_figure`, `add_video`, `add_audio`, `add_text`, `add_embedding`,
    `add_pr_curve`, `add_mesh`, `add_hparams`, `add_custom_scalars`, `add_graph`, `flush`, `close`; they accept tensors
    wherever they accept arrays or numbers. A `with` block closes the writer at its end. Raises ImportError without
    tensorboardX.

    >>> import cygrad, os, tempfile
    >>> from cygrad.utils.tensorboard import SummaryWriter
    >>> def log(directory):
    ...     with SummaryWriter(directory) as writer:
    ...         writer.add_scalar("loss", cygrad.tensor(0.5), 1)
    ...     return len(os.listdir(directory))
    """

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        try:
            import tensorboardX  # optional
        except ImportError:
            raise ImportError(
                "cygrad.utils.tensorboard.SummaryWriter needs the package tensorboardX, which is not installed\n"
                "  pip install tensorboardX"
            ) from None
        self._writer = tensorboardX.SummaryWriter(log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix)

    @property
    def log_dir(self) -> str:
        """The log directory."""
        return self._writer.logdir

    def get_logdir(self) -> str:
        """Return the log directory.

        >>> import importlib.util, tempfile
        >>> from cygrad.utils.tensorboard import SummaryWriter
        >>> folder = tempfile.TemporaryDirectory()
        >>> if importlib.util.find_spec("tensorboardX"):
        ...     with SummaryWriter(folder.name) as writer:
        ...         found = writer.get_logdir() == folder.name
        >>> folder.cleanup()
        """
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write hyperparameters and the resulting metrics, as a separate run. The domains are not written.

        >>> import importlib.util, tempfile
        >>> from cygrad.utils.tensorboard import SummaryWriter
        >>> folder = tempfile.TemporaryDirectory()
        >>> if importlib.util.find_spec("tensorboardX"):
        ...     with SummaryWriter(folder.name) as writer:
        ...         found = writer.add_hparams({"lr": 0.1}, {"loss": 0.5})
        >>> folder.cleanup()
        """
        self._writer.add_hparams(_numbers(hparam_dict), _numbers(metric_dict), run_name, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the graph of `model(*input_to_model)`: inputs, parameters, ops with their shapes, and outputs.

        The module runs once, in evaluation mode. `input_to_model` is a tensor, or a tuple or list of arguments;
        `verbose` prints the graph. Raises what the module raises, and then writes nothing.

        >>> import cygrad
        >>> import importlib.util, tempfile
        >>> from cygrad.utils.tensorboard import SummaryWriter
        >>> folder = tempfile.TemporaryDirectory()
        >>> if importlib.util.find_spec("tensorboardX"):
        ...     with SummaryWriter(folder.name) as writer:
        ...         found = writer.add_graph(cygrad.nn.Linear(2, 1), cygrad.ones(3, 2))
        >>> folder.cleanup()
        """
        from tensorboardX.proto.event_pb2 import Event  # optional

        from cygrad.utils.tensorboard._pytorch_graph import graph  # few programs need it

        found = graph(model, input_to_model, verbose, use_strict_trace)
        self._writer._get_file_writer().event_writer.add_event(Event(graph_def=found.SerializeToString()))

    def __getattr__(self, name: str) -> Any:
        if name == "_writer" or not hasattr(self._writer, name):  # `_writer` is missing until `__init__` has set it
            raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")
        method = getattr(self._writer, name)
        if not callable(method):
            return method

        @functools.wraps(method)
        def with_arrays(*args: Any, **kwargs: Any) -> Any:
            return method(*_arrays(args), **_arrays(kwargs))

        return with_arrays

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _arrays(value: Any) -> Any:
    """Convert tensors in `value` to arrays."""
    if isinstance(value, Tensor):
        value = value.detach()
        return (value.float() if value.dtype in (cygrad.bfloat16, cygrad.float16) else value).numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_arrays, value))
    if type(value) is dict:
        return {name: _arrays(item) for name, item in value.items()}
    return value


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, Tensor) else value for name, value in values.items()}
