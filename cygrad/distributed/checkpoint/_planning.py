"""What a state consists of: pieces of tensors, and other values, by dotted names."""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from cygrad import Tensor
from cygrad.distributed.tensor._dtensor import DTensor
from cygrad.distributed.tensor._sharded_parameter import ShardedParameter
from cygrad.distributed.tensor._shards import bounds

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "LoadPlanner", "Metadata", "SavePlanner", "Stateful",
]  # fmt: skip


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict()` and `load_state_dict(state)`; `save` and `load` call them.

    >>> import cygrad.distributed.checkpoint as dcp
    >>> class Counter:
    ...     steps = 0
    ...     def state_dict(self):
    ...         return {"steps": self.steps}
    ...     def load_state_dict(self, state):
    ...         self.steps = state["steps"]
    >>> isinstance(Counter(), dcp.Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""


@dataclass
class Metadata:
    """What a checkpoint contains.

    state_dict_metadata: {dotted name: shape of the whole tensor, or None for another value}.
    planner_data: {dotted name: the keys that lead to it}.
    storage_data: {dotted name: where its pieces are}, each {"file", "offset", "shape"}.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.zeros(2), "step": 3}, checkpoint_id=folder.name)
    >>> sorted(metadata.state_dict_metadata)
    ['step', 'x']
    >>> folder.cleanup()
    """

    state_dict_metadata: dict[str, Any] = field(default_factory=dict)
    planner_data: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    storage_data: dict[str, list[dict]] = field(default_factory=dict)


class SavePlanner:
    """Decides what is saved under which name; override `pieces`.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> class WithoutHeads(dcp.DefaultSavePlanner):
    ...     def pieces(self, state_dict):
    ...         pieces = super().pieces(state_dict)
    ...         return {name: pieces[name] for name in pieces if not name.startswith("head")}
    >>> sorted(WithoutHeads().pieces({"body": {"w": cygrad.ones(2)}, "head": {"w": cygrad.ones(2)}}))
    ['body.w']
    """

    def pieces(self, state_dict):
        """Return {dotted name: (keys that lead to the value, value)}."""
        return flattened(state_dict)


class DefaultSavePlanner(SavePlanner):
    """Saves all tensors and values of a nested state dictionary.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> sorted(dcp.DefaultSavePlanner().pieces({"model": {"w": cygrad.ones(2)}, "step": 3}))
    ['model.w', 'step']
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, **_):
        self.flatten_state_dict = flatten_state_dict


class LoadPlanner:
    """Decides what of a state dictionary is loaded; override `pieces`.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> isinstance(dcp.DefaultLoadPlanner(), dcp.LoadPlanner)
    True
    >>> sorted(dcp.DefaultLoadPlanner().pieces({"model": {"w": cygrad.ones(2)}, "step": 3}))
    ['model.w', 'step']
    """

    allow_partial_load = False

    def pieces(self, state_dict):
        """Return {dotted name: (keys that lead to the value, value)}."""
        return flattened(state_dict)


class DefaultLoadPlanner(LoadPlanner):
    """Loads all tensors and values of a nested state dictionary; with `allow_partial_load` those that are there.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, checkpoint_id=folder.name)
    >>> state = {"x": cygrad.zeros(2), "new": cygrad.zeros(1)}
    >>> dcp.load(state, checkpoint_id=folder.name, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    >>> state
    {'x': tensor([1., 1.]), 'new': tensor([0.])}
    >>> folder.cleanup()
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty dictionary all that a checkpoint contains, or what is below some keys."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys


# --- Nested dictionaries -------------------------------------------------------------------------


class Place(int):
    """A key that is a place in a list; other numbers are keys of dictionaries."""


def flattened(state_dict):
    """{dotted name: (keys, value)} of all values in nested dictionaries, and in lists with tensors."""
    found = {}

    def visit(keys, value):
        if isinstance(value, dict) and value:
            items = list(value.items())
        elif isinstance(value, (list, tuple)) and any(isinstance(each, (Tensor, dict)) for each in value):
            items = [(Place(i), each) for i, each in enumerate(value)]
        else:
            found[".".join(map(str, keys))] = (keys, value)
            return
        for key, each in items:
            visit((*keys, key), each)

    for key, value in state_dict.items():
        visit((key,), value)
    return found


def put(state, keys, value):
    """Store a value in nested dictionaries and lists, which are made where there are none."""
    for here, following in zip(keys, keys[1:]):
        if isinstance(state, list):
            while len(state) <= here:
                state.append([] if isinstance(following, Place) else {})
            state = state[here]
        else:
            state = state.setdefault(here, [] if isinstance(following, Place) else {})
    if isinstance(state, list) and len(state) == keys[-1]:
        state.append(value)
    else:
        state[keys[-1]] = value


# --- Pieces --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A part of a tensor that some process has: `offset` is where it begins in the whole, of shape `whole`."""

    name: str
    keys: tuple
    whole: tuple | None  # None for a value that is not a tensor
    dtype: str
    offset: tuple
    shape: tuple
    size: int  # in bytes


def region_of(value):
    """(shape of the whole, first and last index along which dimension): what part of a tensor this process has."""
    spec: Any = value._spec if isinstance(value, (DTensor, ShardedParameter)) else None
    cut = spec.sharded_dim() if spec is not None else None
    if cut is None:
        return tuple(value.shape), None
    mesh_dim, dim = cut
    first, last = bounds(spec.shape[dim], spec.mesh.size(mesh_dim), spec.mesh.get_local_rank(mesh_dim))
    return tuple(spec.shape), (dim, first, last)


def local(value):
    """A tensor's part in this process as an ordinary tensor without history."""
    return value.to_local().detach() if isinstance(value, (DTensor, ShardedParameter)) else value.detach()


def piece_of(name, keys, value):
    """What this process can write of a value."""
    if not isinstance(value, Tensor):
        return Piece(name, keys, None, type(value).__name__, (), (), 0)
    whole, region = region_of(value)
    offset, shape = [0] * len(whole), list(whole)
    if region is not None:
        dim, first, last = region
        offset[dim], shape[dim] = first, last - first
    return Piece(name, keys, whole, str(value.dtype), tuple(offset), tuple(shape), value.numel() * value.element_size())


def assigned(plans):
    """Who writes what: for each process the pieces of its plan that it writes, each piece being written once.

    What several processes have is written by the one that has the fewest bytes to write, values by the first. All
    processes compute the same from the plans of all. Raises ValueError where these contradict each other.
    """
    holders: dict = {}  # {(name, offset): [(rank, piece)]}
    known: dict = {}
    for rank, plan in enumerate(plans):
        for piece in plan:
            first = known.setdefault(piece.name, (rank, piece))
            if (piece.whole, piece.dtype) != (first[1].whole, first[1].dtype) and piece.whole is not None:
                raise ValueError(
                    f"{piece.name} has shape {piece.whole} and {piece.dtype} in rank {rank}, but shape "
                    f"{first[1].whole} and {first[1].dtype} in rank {first[0]}"
                )
            if not piece.whole or all(piece.shape) or not all(piece.whole):  # processes with no rows have no piece
                holders.setdefault((piece.name, piece.offset), []).append((rank, piece))
    load = [0] * len(plans)
    result: list = [[] for _ in plans]
    for candidates in holders.values():
        rank, piece = (
            candidates[0] if candidates[0][1].whole is None else min(candidates, key=lambda c: (load[c[0]], c[0]))
        )
        load[rank] += piece.size
        result[rank].append(piece)
    return result
