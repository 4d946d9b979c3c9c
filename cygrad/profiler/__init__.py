"""The profiler with a schedule: `profile(schedule=...)`, `step()` and a handler for each trace.

Events, tables and traces are those of `cygrad.autograd.profiler`.
"""

from cygrad.autograd.profiler import record_function
from cygrad.autograd.profiler_util import DeviceType
from cygrad.profiler import itt
from cygrad.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
