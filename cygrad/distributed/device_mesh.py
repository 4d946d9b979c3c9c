"""Device meshes: the processes as a grid, with names for its dimensions."""

import math

import cygrad
from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.groups import get_rank, init_process_group, is_initialized, new_group
from cygrad.distributed._c10d.stores import HashStore

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of processes. For now it has one, in any number of dimensions.

    >>> from cygrad.distributed.device_mesh import init_device_mesh
    >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate()
    (1, [0, 0])
    >>> import cygrad.distributed as dist; dist.destroy_process_group()
    """

    def __init__(
        self, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None, _init_backend=True, _rank=None
    ):
        self._mesh = cygrad.tensor([0]) if mesh is None else cygrad.as_tensor(mesh).to(cygrad.int64)
        if self._mesh.numel() != 1 or self._mesh.item() != 0:
            raise one_process(f"DeviceMesh({device_type!r}, {self._mesh.tolist()})")
        if mesh_dim_names is not None and len(mesh_dim_names) != self._mesh.dim():
            raise RuntimeError(
                "mesh_dim_names must have same length as the number of dimensions of the mesh\n"
                f"  got {tuple(mesh_dim_names)} for {self._mesh.dim()}"
            )
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root = self
        self._groups: dict = {}
        if _init_backend and not is_initialized():
            init_process_group(store=HashStore(), rank=0, world_size=1)

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

    def __getitem__(self, mesh_dim_names):
        """The part of the mesh along dimensions, by name."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        unknown = [name for name in names if name not in self._root._known_names()]
        if unknown:
            raise KeyError(
                f"Invalid mesh_dim_name {unknown[0]!r}: valid are {', '.join(map(repr, self._root._known_names()))}"
            )
        return self if names == self.mesh_dim_names else self._part(names)

    def _part(self, names):
        part = DeviceMesh(self.device_type, self._mesh.reshape([1] * len(names)), mesh_dim_names=names)
        part._root = self._root
        return part

    def _known_names(self):
        return (*(self.mesh_dim_names or ()), *self._groups.get("flattened", {}))

    def _flatten(self, mesh_dim_name=None):
        """The mesh with all its dimensions as one, which then has a name too."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ["flat"])
        flat = self._root._groups.setdefault("flattened", {})
        if name not in flat:
            flat[name] = self._part((name,))
        return flat[name]

    def _dim(self, mesh_dim):
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"Mesh dimension {mesh_dim!r} does not exist: there are {names}")
            return names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim=None):
        """The process group along a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1."
            )
        dim = self._dim(mesh_dim or 0)
        if dim not in self._groups:
            self._groups[dim] = new_group([0])
        return self._groups[dim]

    def get_all_groups(self):
        """The process groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self):
        """This process's rank among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim=None):
        """This process's place along a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1."
            )
        self._dim(mesh_dim)
        return 0

    def get_coordinate(self):
        """This process's place along each dimension."""
        return [0] * self.ndim

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None):
        """The mesh of a process group, or of several as the dimensions."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        made = DeviceMesh(device_type, cygrad.zeros([1] * len(groups)), mesh_dim_names=mesh_dim_names)
        made._groups.update(enumerate(groups))
        return made

    def __eq__(self, other):
        return self is other or (
            isinstance(other, DeviceMesh)
            and (self.device_type, self.shape, self.mesh_dim_names)
            == (other.device_type, other.shape, other.mesh_dim_names)
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
        return f"DeviceMesh({shape}, '{self.device_type}', stride={(1,) * self.ndim})"


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """Return a mesh of this shape; makes the process group if there is none. For now all of the shape is 1."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(f"Each mesh_dim_name must be unique.\n  got {tuple(mesh_dim_names)}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!\n"
                f"  got {tuple(mesh_shape)} and {tuple(mesh_dim_names)}"
            )
    if math.prod(mesh_shape) != 1:
        raise one_process(f"init_device_mesh({device_type!r}, {tuple(mesh_shape)})")
    return DeviceMesh(device_type, cygrad.zeros(mesh_shape), mesh_dim_names=mesh_dim_names)
