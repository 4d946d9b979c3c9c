"""Device meshes: the processes as a grid, with names for its dimensions."""

import math
import os

import cygrad
from cygrad.distributed._c10d.groups import init_process_group, new_group
from cygrad.distributed._c10d.membership import (
    GroupMember,
    _resolve_process_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
)
from cygrad.distributed._c10d.process_group import ProcessGroup
from cygrad.distributed._c10d.stores import HashStore

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of processes, by their ranks, with a process group along each dimension.

    `mesh["name"]` is the line, or plane, of the grid along the dimensions of these names that this process is in. All
    processes make the same meshes in the same order, also those that are not in them.

    >>> from cygrad.distributed.device_mesh import DeviceMesh, init_device_mesh
    >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate(), mesh.get_rank(), mesh.get_local_rank("model")
    (1, [0, 0], 0, 0)
    >>> mesh.get_group("data").size(), len(mesh.get_all_groups())
    (1, 2)
    >>> DeviceMesh.from_group(mesh.get_group("data"), "cpu").size()
    1
    >>> import cygrad.distributed as dist
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None, _init_backend=True, _rank=None
    ):
        if _init_backend:
            _init_world()
        if mesh is None:
            mesh = cygrad.arange(get_world_size())
        self._mesh = cygrad.as_tensor(mesh).to(cygrad.int64)
        if mesh_dim_names is not None and len(mesh_dim_names) != self._mesh.dim():
            raise RuntimeError(
                "mesh_dim_names must have same length as the number of dimensions of the mesh\n"
                f"  got {tuple(mesh_dim_names)} for {self._mesh.dim()}"
            )
        ranks = self._mesh.reshape(-1).tolist()
        if len(set(ranks)) != len(ranks):
            raise RuntimeError(f"Mesh cannot contain duplicate values, but found {self._mesh.tolist()}")
        if is_initialized() and len(ranks) > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found {len(ranks)} ranks!"
            )
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root = self
        self._groups: dict = {}  # {dimension: the group of this process along it}
        self._group_names: dict = {}  # of those that have not been looked up
        self._flattened: dict = {}
        self._rank = _rank if _rank is not None else get_rank() if is_initialized() else 0
        if _init_backend:
            for dim in range(self.ndim):
                self._groups[dim] = self._made_group(self._mesh.movedim(dim, -1).reshape(-1, self._mesh.shape[dim]))

    def _made_group(self, lines):
        """The group among those of these lines that this process is in. All processes make all of them."""
        mine = GroupMember.NON_GROUP_MEMBER
        for ranks in lines.tolist():
            whole = ranks == list(range(get_world_size()))
            made = group.WORLD if whole else new_group(ranks)
            if self._rank in ranks:
                mine = made
        return mine

    @property
    def mesh(self):
        """The ranks of the processes, as a tensor."""
        return self._mesh

    @property
    def ndim(self):
        """The number of dimensions."""
        return self._mesh.dim()

    @property
    def shape(self):
        """The number of processes along each dimension."""
        return tuple(self._mesh.shape)

    def size(self, mesh_dim=None):
        """The number of processes, along one dimension or altogether."""
        return self._mesh.numel() if mesh_dim is None else self._mesh.shape[self._dim(mesh_dim)]

    # --- Parts -----------------------------------------------------------------------------------

    def __getitem__(self, mesh_dim_names):
        """The part of the mesh along dimensions, by name, that this process is in."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        known = (*self.mesh_dim_names, *self._root._flattened)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise KeyError(f"Invalid mesh_dim_name {unknown[0]!r}: valid are {', '.join(map(repr, known))}")
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        return self._part(names, [self.mesh_dim_names.index(name) for name in names])

    def _part(self, names, dims):
        coordinate = self.get_coordinate() or [0] * self.ndim
        where = tuple(slice(None) if dim in dims else coordinate[dim] for dim in range(self.ndim))
        kept = sorted(dims)
        lines = self._mesh[where].permute([kept.index(dim) for dim in dims])
        part = DeviceMesh(self.device_type, lines, mesh_dim_names=names, _init_backend=False, _rank=self._rank)
        part._root = self._root
        part._groups = {place: self._groups[dim] for place, dim in enumerate(dims) if dim in self._groups}
        return part

    def _flatten(self, mesh_dim_name=None):
        """The mesh with all its dimensions as one, which then has a name too. All processes call this."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ["flat"])
        flat = self._root._flattened
        if name not in flat:
            made = DeviceMesh(
                self.device_type, self._mesh.reshape(-1), mesh_dim_names=(name,), _init_backend=False, _rank=self._rank
            )
            made._root = self._root
            made._groups = {0: self._made_group(self._siblings())}
            flat[name] = made
        return flat[name]

    def _siblings(self):
        """The ranks of this part of the mesh, and of those parts parallel to it that other processes have, as rows."""
        root = self._root
        if root is self or not self.mesh_dim_names or root.mesh_dim_names is None:
            return self._mesh.reshape(1, -1)
        dims = [root.mesh_dim_names.index(name) for name in self.mesh_dim_names]
        others = [dim for dim in range(root.ndim) if dim not in dims]
        return root._mesh.permute([*others, *dims]).reshape(-1, self._mesh.numel())

    def _dim(self, mesh_dim):
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"Mesh dimension {mesh_dim!r} does not exist: there are {names}")
            return names.index(mesh_dim)
        return mesh_dim

    # --- Groups and ranks ------------------------------------------------------------------------

    def get_group(self, mesh_dim=None):
        """The process group along a dimension."""
        self._check_one_dim(mesh_dim)
        dim = self._dim(mesh_dim or 0)
        if dim in self._group_names:  # of a copy
            self._groups[dim] = _resolve_process_group(self._group_names.pop(dim))
        if dim not in self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[dim]

    def _check_one_dim(self, mesh_dim):
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1."
            )

    def get_all_groups(self):
        """The process groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self):
        """This process's rank among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim=None):
        """This process's place along a dimension."""
        self._check_one_dim(mesh_dim)
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError(f"rank {self._rank} is not in {self}")
        return coordinate[self._dim(mesh_dim or 0)]

    def get_coordinate(self):
        """This process's place along each dimension, or None if it is not in the mesh."""
        places = (self._mesh == self._rank).nonzero().tolist()
        return places[0] if places else None

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None):
        """The mesh of a process group, or of several as the dimensions, for which `mesh` has the ranks."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if mesh is None:
            if len(groups) > 1 and get_world_size() > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = cygrad.tensor(get_process_group_ranks(groups[0])).reshape([-1] + [1] * (len(groups) - 1))
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups.update(enumerate(groups))
        return made

    # Copies and files have the names of groups, by which they find this process's groups when they need them.

    def __getstate__(self):
        names = {dim: each.group_name for dim, each in self._groups.items() if isinstance(each, ProcessGroup)}
        return {**vars(self), "_groups": {}, "_group_names": {**self._group_names, **names}}

    def __setstate__(self, state):
        vars(self).update(state, _rank=get_rank() if is_initialized() else 0)

    def __eq__(self, other):
        return self is other or (
            isinstance(other, DeviceMesh)
            and (self.device_type, self._mesh.tolist(), self.mesh_dim_names)
            == (other.device_type, other._mesh.tolist(), other.mesh_dim_names)
        )

    def __hash__(self):
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __repr__(self):
        shape = str(self.shape)
        if self.mesh_dim_names is not None:
            shape = f"({', '.join(f'{name}={size}' for name, size in zip(self.mesh_dim_names, self.shape))})"
        return f"DeviceMesh({shape}, '{self.device_type}', stride={tuple(self._mesh.stride())})"


def _init_world():
    """Make the group of all processes if there is none: those of the launcher, or this one."""
    if is_initialized():
        return
    if "WORLD_SIZE" in os.environ:
        init_process_group()
    else:
        init_process_group(store=HashStore(), rank=0, world_size=1)


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """Return a mesh of this shape of all processes, in the order of ranks; makes the group of all if there is none.

    Raises RuntimeError for a mesh with more processes than there are.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["model"].size()
    1
    >>> dist.destroy_process_group()
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(f"Each mesh_dim_name must be unique.\n  got {tuple(mesh_dim_names)}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!\n"
                f"  got {tuple(mesh_shape)} and {tuple(mesh_dim_names)}"
            )
    _init_world()
    mesh = cygrad.arange(math.prod(mesh_shape)).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
