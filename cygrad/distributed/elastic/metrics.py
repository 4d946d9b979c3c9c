"""Numbers that a program reports as it runs: `put_metric`, `prof`, and the handlers that receive them."""

import sys
import time
from abc import ABC, abstractmethod
from functools import wraps
from typing import NamedTuple

from cygrad.distributed._c10d.module_names import also_named
from cygrad.utils.warning import warn

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler",
    "configure", "getStream", "get_elapsed_time_ms", "initialize_metrics", "prof", "profile", "publish_metric",
    "put_metric",
]  # fmt: skip


class MetricData(NamedTuple):
    """A number as handlers receive it.

    >>> from cygrad.distributed.elastic.metrics import MetricData
    >>> MetricData(1700000000.0, "training", "loss", 1).name
    'loss'
    """

    timestamp: float
    group_name: str
    name: str
    value: float


class MetricsConfig:
    """Parameters for `initialize_metrics`, which has no use for them.

    >>> from cygrad.distributed.elastic.metrics import MetricsConfig
    >>> MetricsConfig({"every": "10"}).params
    {'every': '10'}
    """

    def __init__(self, params=None):
        self.params = {} if params is None else params


class MetricHandler(ABC):
    """The base of handlers: `emit` receives each `MetricData` of the groups for which it is configured.

    >>> from cygrad.distributed.elastic import metrics
    >>> class Kept(metrics.MetricHandler):
    ...     def emit(self, metric_data):
    ...         values.append((metric_data.name, metric_data.value))
    >>> values = []
    >>> metrics.configure(Kept(), "training")
    >>> metrics.put_metric("images", 64, "training")
    >>> values
    [('images', 64)]
    >>> metrics.configure(metrics.NullMetricHandler(), "training")
    """

    @abstractmethod
    def emit(self, metric_data):
        """Receive a number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints each number.

    >>> from cygrad.distributed.elastic.metrics import ConsoleMetricHandler, MetricData
    >>> ConsoleMetricHandler().emit(MetricData(1, "training", "loss", 3))
    [1][training]: loss=3
    """

    def emit(self, metric_data):
        """Print a number."""
        at, group, name, value = metric_data
        print(f"[{at}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Drops each number. It is the handler of groups for which none has been configured.

    >>> from cygrad.distributed.elastic.metrics import MetricData, NullMetricHandler
    >>> NullMetricHandler().emit(MetricData(1, "training", "loss", 3))
    """

    def emit(self, metric_data):
        """Drop a number."""


class MetricStream:
    """The numbers of one group, and their handler; `getStream` makes one.

    >>> from cygrad.distributed.elastic.metrics import ConsoleMetricHandler, MetricStream
    >>> MetricStream("training", ConsoleMetricHandler()).add_value("loss", 3)
    [...][training]: loss=3
    """

    def __init__(self, group_name, handler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name, metric_value):
        """Report a number."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str | None, MetricHandler] = {None: NullMetricHandler()}  # of groups; None: of all others


def configure(handler, group=None):
    """Let a handler receive the numbers of a group, or of all groups that have none of their own.

    >>> from cygrad.distributed.elastic import metrics
    >>> metrics.configure(metrics.NullMetricHandler())
    """
    _handlers[group] = handler


def getStream(group):
    """Return the `MetricStream` of a group.

    >>> from cygrad.distributed.elastic.metrics import getStream
    >>> getStream("training").group_name
    'training'
    """
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def put_metric(metric_name, metric_value, metric_group="torchelastic"):
    """Report a number to the handler of a group.

    >>> from cygrad.distributed.elastic.metrics import put_metric
    >>> put_metric("loss", 3, "training")
    """
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group, metric_name, metric_value):
    """`put_metric` by its old name, and with its arguments in the old order. Deprecated, as in PyTorch.

    >>> import warnings
    >>> from cygrad.distributed.elastic.metrics import publish_metric
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     publish_metric("training", "loss", 3)
    """
    warn("Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead", FutureWarning)
    put_metric(metric_name, metric_value, metric_group)


def get_elapsed_time_ms(start_time_in_seconds):
    """The milliseconds since a time that `time.time()` has returned.

    >>> import time
    >>> from cygrad.distributed.elastic.metrics import get_elapsed_time_ms
    >>> get_elapsed_time_ms(time.time() - 1) >= 1000
    True
    """
    return int((time.time() - start_time_in_seconds) * 1000)


def initialize_metrics(cfg=None):
    """Prepare handlers; there is nothing to prepare.

    >>> from cygrad.distributed.elastic.metrics import initialize_metrics
    >>> initialize_metrics()
    """


def prof(fn=None, group="torchelastic"):
    """Decorate a function: each call reports its success or failure, and how many milliseconds it took.

    >>> from cygrad.distributed.elastic import metrics
    >>> class Names(metrics.MetricHandler):
    ...     def emit(self, metric_data):
    ...         names.append(metric_data.name)
    >>> names = []
    >>> metrics.configure(Names(), "training")
    >>> @metrics.prof(group="training")
    ... def step():
    ...     return 3
    >>> step(), [name.partition(".")[2] for name in names]
    (3, ['step.success', 'step.duration.ms'])
    >>> metrics.configure(metrics.NullMetricHandler(), "training")
    """

    def decorated(function):
        path = function.__qualname__
        return _reporting(function, path if "." in path else f"{function.__module__.split('.')[-1]}.{path}", group)

    return decorated if fn is None else decorated(fn)


def profile(group=None):
    """`prof` by its old name. Deprecated, as in PyTorch.

    >>> import warnings
    >>> from cygrad.distributed.elastic.metrics import profile
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     largest = profile("training")(max)
    >>> largest(3, 4)
    4
    """
    warn("Deprecated, use `@prof` instead", FutureWarning)
    return lambda function: _reporting(function, function.__name__, group)


def _reporting(function, name, group):
    @wraps(function)
    def call(*args, **kwargs):
        begin = time.time()
        how = "failure"
        try:
            result = function(*args, **kwargs)
            how = "success"
            return result
        finally:
            put_metric(f"{name}.{how}", 1, group)
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(begin), group)

    return call


also_named(__name__, api=sys.modules[__name__])
