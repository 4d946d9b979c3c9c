"""Pipelines: a model as stages in several processes, through which parts of each batch pass."""

from enum import Enum

from cygrad.distributed.pipelining import microbatch as microbatch
from cygrad.distributed.pipelining import schedules as schedules
from cygrad.distributed.pipelining import stage as stage
from cygrad.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from cygrad.distributed.pipelining.stage import PipelineStage, build_stage

__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "pipe_split", "pipeline",
]  # fmt: skip


class SplitPoint(Enum):
    """Whether a model is cut before or after a module.

    >>> from cygrad.distributed.pipelining import SplitPoint
    >>> [point.name for point in SplitPoint]
    ['BEGINNING', 'END']
    """

    BEGINNING = 1
    END = 2


def pipe_split():
    """Mark where a model is cut into stages. Has no effect when it is called.

    >>> from cygrad.distributed.pipelining import pipe_split
    >>> pipe_split()
    """


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None):
    """Cut a model into stages automatically. Raises RuntimeError: make a module for each stage instead.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining import pipeline
    >>> pipeline(cygrad.nn.Linear(2, 1), mb_args=(cygrad.ones(3, 2),))
    Traceback (most recent call last):
        ...
    RuntimeError: pipeline(): cygrad does not cut models into stages...
    """
    raise RuntimeError(
        "pipeline(): cygrad does not cut models into stages\n"
        "  to fix it: make a module of the layers of each stage, and pass it to PipelineStage"
    )
