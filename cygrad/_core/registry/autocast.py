"""Automatic mixed precision: decides which ops have their operands cast, and to which dtype.

`publish` wraps the entry points of ops that have a policy with `guarded`. Entry points that are called more often run
the check themselves (`casts_itself=` in their rows): matrix products (`products.pyx`), and ops that only have a policy
for GPUs, at the point where they test for GPU operands anyway (`prepared` in `record.pyx`). The check is skipped while
no thread has autocast enabled or runs a selective checkpoint, which intercepts the ops that have a policy on the CPU
(`keeping`).
"""

import functools
from _thread import _local, allocate_lock, get_ident  # `threading` takes as long to import as an op family
from _weakref import ref
from types import FunctionType

from cygrad._core.graph import record
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ask_first, facts_of, registry, standing_before
from cygrad._core.graph.record import record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.device_checks import DEVICES, check
from cygrad._core.runtime.interrupt_safe import Block, putting
from cygrad._core.types import dtypes
from cygrad._core.types.device import device
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import gpu_class
from cygrad._library import later

conversion = later("cygrad._kernels.gpu.launch.conversion")  # needed only for GPU arrays

# The policies for operands that are floating-point but not float64, as the rows state them in `autocast=` and
# `autocast_gpu=`: {name of an op: policy}. "lower" is the lower precision of the device type, "widest" the widest dtype
# of the operands, "state" that of the state and the input (`gru` accumulates into its state). They match PyTorch's CPU
# and CUDA autocast. Ops of families that are not imported yet are missing.
POLICY_OF, GPU_POLICY_OF = facts_of["autocast"], facts_of["autocast_gpu"]
_CASTS_ITSELF, _TAKES_DTYPE, _NOT_CAST = facts_of["casts_itself"], facts_of["takes_dtype"], facts_of["not_cast"]


def policies(device_type):
    """Return {policy: names of ops} for a device type, of all families; imports them."""
    registry.import_families()
    found: dict[str, list[str]] = {}
    kinds = ("lower", "float32", "widest", "refused" if known_device(device_type) == "cuda" else "state")
    named = GPU_POLICY_OF if known_device(device_type) == "cuda" else POLICY_OF
    for kind in kinds:
        found[kind] = sorted(name for name, policy in named.items() if policy == kind)
    return found


_HALF = dtypes.by_name()["float16"]
# The lower precision of each device type that PyTorch's autocast supports; None stands for bfloat16, which is imported
# on first use. No op runs on those but the first two.
_LOWER = {"cpu": None, "cuda": _HALF, "xpu": _HALF, "mps": _HALF, "mtia": _HALF, "ipu": _HALF, "privateuseone": _HALF}
_LOWER |= {"hpu": None, "maia": None, "xla": None}


class State(_local):
    """The autocast settings of a thread."""

    def __init__(self):
        for kind, lower in _LOWER.items():
            setattr(self, kind, (False, lower))  # whether it is enabled, and the lower precision
        self.nesting = 0
        self.is_casting = False  # set inside an op, whose inner ops are not cast again
        self.keeper = None  # of a selective checkpoint
        self.cache_enabled = True
        self.cache = {}  # {id of a parameter: `Cast`}
        self.order = []  # weak references to the parameters of the cache, as they were needed
        self.orders = {}  # {id of the first parameter in a cache: `order`}


state = State()

_lock = allocate_lock()
_askers: set = set()  # threads that have autocast enabled or run a selective checkpoint
_followers: list = []


def follow(function):
    """Have `function(instead)` called when the first thread needs checks, and `function(None)` when none does."""
    _followers.append(function)


def note_user(begins=False):
    """Update whether this thread needs checks. A superfluous entry does no harm."""
    with _lock:
        if begins or state.cpu[0] or state.cuda[0] or state.nesting or state.keeper is not None:
            _askers.add(get_ident())
        else:
            _askers.discard(get_ident())
        for function in _followers:
            function(instead if _askers else None)
        _ask()


def _ask():
    ask_first(bool(_askers) or cupy_library.is_elsewhere(), bool(_askers))


cupy_library.followers.append(_ask)
cupy_library.meta_followers.append(_ask)


def known_device(name):
    """Return the type of the device named `name`; raises the errors of `device`."""
    return device(name).type


def supports(kind):
    """Whether PyTorch's autocast supports a device type."""
    return kind in _LOWER


def _supported(name, error):
    kind = known_device(name)
    if kind not in _LOWER:
        raise RuntimeError(f"{error}\n  autocast is for {', '.join(_LOWER)}, not for {kind}")
    return kind


def _switchable(name):
    return _supported(name, "unknown device type for autocast in get_autocast_dispatch_key_from_device_type")


def is_enabled(device_type):
    """Whether this thread casts operands on that device type."""
    return getattr(state, _switchable(device_type))[0]


def set_enabled(device_type, enabled):
    """Enable or disable autocast for a device type."""
    kind = _switchable(device_type)
    if enabled:
        note_user(True)  # first, since a KeyboardInterrupt may come in between
    setattr(state, kind, (bool(enabled), getattr(state, kind)[1]))
    if not enabled:
        note_user()


def get_dtype(device_type):
    """Return the lower precision of a device type."""
    return getattr(state, _supported(device_type, "unsupported scalarType"))[1] or dtypes.dtype_named("bfloat16")


def set_dtype(device_type, dtype):
    """Set the lower precision of a device type."""
    kind = _supported(device_type, "unsupported scalarType")
    setattr(state, kind, (getattr(state, kind)[0], dtype))


def clear_cache():
    """Clear the cache of cast parameters."""
    state.cache.clear()


# -- casting --


def is_eligible(value):
    """Whether autocast may change the dtype of this operand."""
    return isinstance(value, Tensor) and value.dtype.is_floating_point and value.dtype.itemsize < 8


def cast(value, dtype):
    """Cast a tensor to a dtype if it is eligible; a list or tuple element by element."""
    if type(value) in (list, tuple):
        return type(value)(cast(item, dtype) for item in value)
    if not is_eligible(value) or value.dtype is dtype:
        return value
    if not (state.cache_enabled and dtype.itemsize < 4 and value.requires_grad and value.is_leaf):
        return value.to(dtype)
    if not state.cache:
        _cast_ahead(value, dtype)
    known = state.cache.get(id(value))
    if known is None or not known.holds(value, dtype):
        known = Cast(value, dtype)
    found = known.tensor
    if found is None:
        if not known.is_noted:
            known.is_noted = True
            _note(value)
        found = known.recorded()
        if found.requires_grad:  # otherwise it was made unrecorded, which may not suit the next use
            known.tensor = found
            state.cache[id(value)] = known
    return found


class Cast:
    """A parameter, and its cast copy as an array, if that was made ahead, and as a tensor, once it was needed."""

    def __init__(self, value, dtype, array=None):
        self.value, self.version, self.source, self.dtype = value, value._version, array_of(value), dtype
        self.array = array
        self.tensor: Tensor | None = None
        self.is_noted = False

    def holds(self, value, dtype):
        """Whether this is the cast of the parameter as it is now."""
        return self.version == value._version and self.dtype is dtype and self.source is array_of(value)

    def recorded(self):
        """Return the cast copy as the result of an op that is recorded now."""
        if self.array is None:
            return self.value.to(self.dtype)
        return record_outputs(registry["to"], (self.array,), (self.value,), None, 1)[0]


_MOST_ORDERS = 64  # models of a thread


def _note(value):
    """Note that this parameter is needed for the first time; the first one of a cache begins an order."""
    if not state.order:
        state.orders.pop(id(value), None)
        state.orders[id(value)] = state.order
        if len(state.orders) > _MOST_ORDERS:
            state.orders.pop(next(iter(state.orders)))
    state.order.append(ref(value))


def _cast_ahead(first, dtype):
    """Cast what was needed after the parameter `first` in the last cache that began with it, in one launch.

    The casts are recorded only when they are needed, so that backward handles them in the same order as without this.
    """
    before, state.order = state.orders.get(id(first), ()), []
    if len(before) < 2 or before[0]() is not first or type(array_of(first)) is not gpu_class():
        return
    device, given = first.device, first.dtype
    found = {id(p): p for p in (held() for held in before) if p is not None and p.requires_grad and p.is_leaf}
    ahead = [p for p in found.values() if p.dtype is given and p.device == device and p.numel() and p.is_contiguous()]
    if len(ahead) > 1 and conversion.takes(given.numpy, dtype.numpy):
        with cupy_library.on_device(device.index):
            arrays = conversion.converted_together([array_of(p) for p in ahead], dtype.numpy)
        state.cache.update((id(p), Cast(p, dtype, array)) for p, array in zip(ahead, arrays))


def widest(operands):
    """Return the dtype that holds all eligible tensors in nested lists, or None."""
    found = None
    for value in operands:
        if type(value) in (list, tuple):
            inner = widest(value)
        else:
            inner = value.dtype if is_eligible(value) else None
        if inner is not None:
            found = inner if found is None else dtypes.promote_types_py(found, inner)
    return found


# -- intercepting ops --


def guard(module, others):
    """Wrap the entry points of a family that have a policy, in the module and among its other published names."""
    for space in (module, module.get("methods", {}), others):
        for key, entry in list(space.items()):
            name = getattr(entry, "__name__", None)
            is_own = getattr(entry, "__module__", None) == module["__name__"]
            if is_own and _is_guarded(name) and not hasattr(entry, "asks"):
                asking = guarded(entry)
                if isinstance(entry, FunctionType):  # checked only if necessary, see `checked_call.h`
                    asking = functools.update_wrapper(standing_before((entry, asking)), asking)
                else:
                    entry.published = asking  # the function that `torch_function.py` passes to an overriding class
                space[key] = asking


def _is_guarded(name):
    return name not in _CASTS_ITSELF and (name in POLICY_OF or name in GPU_POLICY_OF or name in DEVICES)


def guarded(entry):
    """Wrap an entry point with the autocast check and, once arrays may be elsewhere, the check for a common device."""
    name = entry.__name__
    is_cast, is_placed = name in POLICY_OF or name in GPU_POLICY_OF, name in DEVICES

    @functools.wraps(entry)
    def call(*args, **kwargs):
        if is_placed and cupy_library.is_elsewhere():
            args, kwargs = check(name, args, kwargs)
        found = instead(entry, None, *args, **kwargs) if _askers and is_cast else None
        return entry(*args, **kwargs) if found is None else found

    call.asks = True  # type: ignore[attr-defined]
    return call


def instead(entry, out, /, *args, **kwargs):
    """Return `entry(*args, **kwargs)` as intercepted in this thread, or None if it is not intercepted."""
    if out is not None:
        kwargs["out"] = out
    name = entry.__name__
    keeper = state.keeper
    if keeper is not None and name in POLICY_OF:
        state.keeper = None
        try:
            return keeper(entry, args, kwargs)
        finally:
            state.keeper = keeper
    if state.is_casting or not (state.cpu[0] or state.cuda[0]):
        return None
    values = (*args, *kwargs.values())
    kind = _kind_of(values)
    policy = (GPU_POLICY_OF if kind == "cuda" else POLICY_OF).get(name)
    if policy is None or kind == "meta" or not getattr(state, kind)[0] or kind == "cuda" and _is_left(name, values):
        return None
    if policy == "refused":
        raise RuntimeError(_REFUSED)
    dtype = _wanted(kind, policy, values)
    operands = [cast(value, dtype) for value in args]
    named = {key: value if key == "out" else cast(value, dtype) for key, value in kwargs.items()}
    state.is_casting = True
    try:
        return entry(*operands, **named)
    finally:
        state.is_casting = False


_REFUSED = """torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.
Many models use a sigmoid layer right before the binary cross entropy layer.
In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits
or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are
safe to autocast."""


def _is_left(name, values):
    """Whether to leave an op alone because the user chose the dtype of its result, or this variant has no policy."""
    if name in _TAKES_DTYPE:
        return any(isinstance(value, dtypes.dtype) for value in values)
    return name in _NOT_CAST and _NOT_CAST[name] in [value for value in values if isinstance(value, str)]


def on_gpu(name, tensor):
    """Cast a GPU operand of an op that runs the check itself: to float32 if that is the op's policy."""
    if state.is_casting or not state.cuda[0] or GPU_POLICY_OF.get(name) != "float32":
        return tensor
    return cast(tensor, dtypes.by_name()["float32"])


follow(lambda asked: record.call_prepare(None if asked is None else on_gpu))


def _kind_of(operands):
    """Return the type of device that an op's tensors are on."""
    for value in operands:
        if isinstance(value, Tensor):
            return value.device.type
        if type(value) in (list, tuple) and value:
            return _kind_of(value)
    return "cpu"


def _wanted(kind, policy, operands):
    if policy == "lower":
        return get_dtype(kind)
    if policy == "state":  # the dtype of the parameters, which are in a list, does not count
        return widest([value for value in operands if isinstance(value, Tensor)])
    return dtypes.by_name()["float32"] if policy == "float32" else widest(operands)


# -- blocks --


class keeping(Block):
    """A block in which `keeper(entry, args, kwargs)` intercepts the expensive ops of this thread."""

    _ended = staticmethod(note_user)

    def __init__(self, keeper):
        self._keeper = keeper

    def _plan(self):
        note_user(True)
        return putting(state.__dict__, "keeper", self._keeper)


def plan_of_mode(kind, enabled, dtype, cache_enabled):
    """Return the plan of a block that enables or disables autocast. Callers must call `note_user` after the block."""
    note_user(True)
    place, nesting = state.__dict__, state.nesting
    former = {key: place[key] for key in (kind, "cache_enabled", "nesting")}
    if not nesting:
        former["cache"] = {}
    return (
        functools.partial(dict.update, place),
        {kind: (enabled, dtype), "cache_enabled": cache_enabled, "nesting": nesting + 1},
        former,
    )
