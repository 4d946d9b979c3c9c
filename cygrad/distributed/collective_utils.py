"""Results that one process has, or each, for all: a failure in one is an error in all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cygrad.distributed._c10d.membership import get_world_size
from cygrad.distributed._c10d.objects import all_gather_object, broadcast_object_list

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]


@dataclass
class SyncPayload:
    """What a process has to tell: a value, or that it failed, and why.

    >>> from cygrad.distributed.collective_utils import SyncPayload
    >>> SyncPayload("loading", True, 3).payload
    3
    """

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None


def _told(value, stage_name, success=True):
    """The payload of a value, or of what a function returns or raises."""
    if not callable(value):
        return SyncPayload(stage_name, success, value)
    try:
        return SyncPayload(stage_name, success, value())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(data_or_fn, *, success=True, stage_name=None, rank=0, pg=None):
    """Return the value, or the result of the function, of process `rank` of a group, in all its processes.

    Without a group the value is this process's own. Raises RuntimeError if the function has failed, or `success` is
    False in process `rank`.

    >>> from cygrad.distributed.collective_utils import broadcast
    >>> broadcast(lambda: 3 + 4)
    7
    >>> broadcast(lambda: 1 / 0, stage_name="loading")
    Traceback (most recent call last):
        ...
    RuntimeError: Rank 0 failed: stage loading: exception division by zero
    """
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    is_source = rank == (0 if pg is None else pg.rank())
    told = _told(data_or_fn, stage_name, success) if is_source else SyncPayload(stage_name, success, None)
    if pg is not None:
        objects = [told]
        broadcast_object_list(objects, group=pg, group_src=rank)
        (told,) = objects
    if not told.success:
        stage = "" if stage_name is None else f": stage {told.stage_name}"
        why = "" if told.exception is None else f": exception {told.exception}"
        raise RuntimeError(f"Rank {rank} failed{stage}{why}") from told.exception
    return told.payload


def all_gather(data_or_fn, stage_name=None, pg=None):
    """Return the values, or the results of the functions, of all processes of a group, in all its processes.

    Raises RuntimeError if a function has failed, or processes give different names of their stage.

    >>> from cygrad.distributed.collective_utils import all_gather
    >>> all_gather(lambda: 3 + 4)
    [7]
    """
    told = _told(data_or_fn, stage_name)
    if pg is None:
        if not told.success:
            raise RuntimeError(f"all_gather failed with exception {told.exception}") from told.exception
        return [told.payload]
    everyone: list[Any] = [None] * get_world_size(pg)
    all_gather_object_enforce_type(pg, everyone, told)
    failures = [(rank, each.exception) for rank, each in enumerate(everyone) if not each.success]
    strangers = [rank for rank, each in enumerate(everyone) if each.stage_name != everyone[0].stage_name]
    text = " ".join(
        f"Unexpected stage name received from rank {rank}: {everyone[rank].stage_name}" for rank in strangers
    )
    if failures or strangers:
        raise RuntimeError(text, failures) from (failures[0][1] if failures else None)
    return [each.payload for each in everyone]


def _of_one_type(one: Any, other: Any) -> bool:
    return type(one) is type(other)


def all_gather_object_enforce_type(
    pg: Any, object_list: list[Any], obj: Any, type_checker: Callable[[Any, Any], bool] = _of_one_type
) -> None:
    """`all_gather_object`, which raises TypeError unless all objects are of the type of the first.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.collective_utils import all_gather_object_enforce_type
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [None]
    >>> all_gather_object_enforce_type(dist.group.WORLD, found, 3)
    >>> found
    [3]
    >>> dist.destroy_process_group()
    """
    all_gather_object(object_list, obj, pg)
    for index, each in enumerate(object_list):
        if not type_checker(object_list[0], each):
            raise TypeError(
                f"Object type at index {index} is {type(each)}, while first object type is {type(object_list[0])}"
            )
