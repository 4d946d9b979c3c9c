"""What happens to the processes of a job, as records in JSON."""

import json
import logging
import os
import sys
from dataclasses import asdict, dataclass, field
from enum import Enum, StrEnum
from typing import Any

from cygrad.distributed._c10d.module_names import also_named

__all__ = ["Event", "EventSource", "NodeState", "RdzvEvent", "get_logging_handler", "record", "record_rdzv_event"]


class EventSource(StrEnum):
    """Who reports an event.

    >>> from cygrad.distributed.elastic.events import EventSource
    >>> EventSource.WORKER.value
    'WORKER'
    """

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(StrEnum):
    """How far a machine has come.

    >>> from cygrad.distributed.elastic.events import NodeState
    >>> [state.value for state in NodeState]
    ['INIT', 'RUNNING', 'SUCCEEDED', 'FAILED']
    """

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Serialized:
    """Dataclasses as JSON."""

    _enum: tuple[str, type[Enum]]  # the field that holds an enum, and which

    def __str__(self):
        return self.serialize()

    def serialize(self):
        """Return the event in JSON."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]

    @classmethod
    def deserialize(cls, data):
        """Return the event that JSON describes; an event is returned as it is."""
        if isinstance(data, cls):
            return data
        values = json.loads(data)
        name, kind = cls._enum
        return cls(**values | {name: kind[values[name]]})


@dataclass
class Event(_Serialized):
    """Something that happened to a process.

    >>> from cygrad.distributed.elastic.events import Event, EventSource
    >>> event = Event("saved", EventSource.WORKER, metadata={"step": 3})
    >>> Event.deserialize(event.serialize()) == event
    True
    """

    _enum = ("source", EventSource)

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class RdzvEvent(_Serialized):
    """Something that happened while processes were looking for each other.

    >>> from cygrad.distributed.elastic.events import NodeState, RdzvEvent
    >>> event = RdzvEvent("joined", "run1", "rank 0 is here", "host1", 4711, NodeState.RUNNING, rank=0)
    >>> RdzvEvent.deserialize(str(event)).node_state
    <NodeState.RUNNING: 'RUNNING'>
    """

    _enum = ("node_state", NodeState)

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""


_HANDLERS = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": logging.NullHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination="null"):
    """The handler for "console", or one that drops everything for "null" and "dynamic_rendezvous".

    Raises KeyError for other destinations.

    >>> from cygrad.distributed.elastic.events import get_logging_handler
    >>> type(get_logging_handler()).__name__
    'NullHandler'
    """
    return _HANDLERS[destination]


def _logger(destination):
    logger = logging.getLogger(f"torchelastic-events-{destination}")
    if not logger.handlers:
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
    return logger


def record(event, destination="null"):
    """Write an event to a destination: "console", or "null" for nowhere.

    >>> from cygrad.distributed.elastic.events import Event, EventSource, record
    >>> record(Event("saved", EventSource.WORKER))
    """
    _logger(destination).info(event.serialize())


def record_rdzv_event(event):
    """Write a `RdzvEvent` to the destination "dynamic_rendezvous", which is nowhere.

    >>> from cygrad.distributed.elastic.events import NodeState, RdzvEvent, record_rdzv_event
    >>> record_rdzv_event(RdzvEvent("joined", "run1", "rank 0 is here", "host1", 4711, NodeState.RUNNING))
    """
    record(event, "dynamic_rendezvous")


also_named(__name__, api=sys.modules[__name__], handlers=sys.modules[__name__])
