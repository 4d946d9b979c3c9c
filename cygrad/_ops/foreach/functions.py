"""The functions of lists of tensors, made from the table: `_foreach_add` and its kind.

Each applies the plain op to one tensor after the other, so gradients, version counters and mixed precision are those of
the op. An in-place function first makes sure that it can change all tensors: ops on `meta` tensors tell. Calls with
tensors of one shape and dtype take a compiled pass over the lists (`passes.pyx`).
"""

import cygrad._ops.foreach.passes as passes
from cygrad._core.errors import messages
from cygrad._core.graph.inplace import are_alike, check_changes
from cygrad._core.graph.opdef import facts_of, publish, registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import result_type
from cygrad._ops.common.overloads import bound, parsed
from cygrad._ops.creation.from_data import scalar_tensor
from cygrad._ops.foreach.table import SELF, TABLE
from cygrad._ops.linalg.vector_norms import linalg_vector_norm

# -- what is not the op of the name --


def _norm(tensor, ord, dtype):
    """The norm of all elements."""
    if ord == float("inf") and not tensor.numel():
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an "
            "identity"
        )
    return linalg_vector_norm(tensor, ord, dtype=dtype)


def _powsum(tensor, ord, dtype):
    """The sum of the powers of all absolute values."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise NotImplementedError("\"powsum_cpu\" not implemented for 'Long'")
    return (tensor if dtype is None else tensor.to(dtype)).abs().pow(ord).sum()


def _max(tensor):
    """The largest of all elements."""
    if not tensor.numel():
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return tensor.max()


def _limit(name, kernel):
    """Return the form of an op of the larger or the smaller of two numbers that takes a list's tensors and numbers."""
    takes_numbers = not name.endswith("imum")

    def found(tensor, other, out=None):
        is_tensor = isinstance(other, Tensor)
        if tensor.is_complex():
            text = f"\"{kernel}_cpu\" not implemented for '{tensor.dtype.type_name}'"
            raise NotImplementedError(text if is_tensor else "clamp is not supported for complex types")
        if not is_tensor and not takes_numbers:
            dtype = result_type(tensor, other)
            messages.check_clamp_type(dtype, out)
            other = scalar_tensor(other, dtype=dtype, device=tensor.device)
        return registry[name].entry(tensor, other, out=out)

    return found


_IN_PLACE = {
    "clamp_max": _limit("clamp_max", "minimum"),
    "clamp_min": _limit("clamp_min", "maximum"),
    "maximum": _limit("maximum", "maximum"),
    "minimum": _limit("minimum", "minimum"),
}
_OWN = _IN_PLACE | {
    "max": _max,
    "norm": _norm,
    "pow": lambda tensor, exponent: registry["pow"].entry(tensor, exponent),  # of which either may be a number
    "powsum": _powsum,
}
_WITH_FACTOR = ("addcdiv", "addcmul")  # their last argument is `value=`


# -- compiled passes --


def _two(name, in_place):
    takes_alpha = name in ("add", "sub")

    def quick(args, kwargs):
        if len(args) != 2 or kwargs and (len(kwargs) > 1 or not takes_alpha or "alpha" not in kwargs):
            return None
        return passes.binary(registry[name], *args, kwargs.get("alpha", 1), in_place)

    return quick


def _larger(name, in_place):
    def quick(args, kwargs):
        return None if len(args) != 2 or kwargs else passes.limit(registry[name], *args, in_place)

    return quick


def _three(name, in_place):
    def quick(args, kwargs):
        if len(args) == 3 and kwargs.keys() <= {"value"}:
            return passes.weighted(registry[name], args[0], args[1:], kwargs.get("value", 1), in_place)
        return (
            None
            if len(args) != 4 or kwargs
            else (passes.weighted(registry[name], args[0], args[1:3], args[3], in_place))
        )

    return quick


def _between(name, in_place):
    def quick(args, kwargs):
        if len(args) != 3 or kwargs:
            return None
        return passes.weighted(registry["lerp.Scalar"], args[0], args[1:2], args[2], in_place)

    return quick


def _copies(name, in_place):
    def quick(args, kwargs):
        if len(args) != 2 or kwargs or not passes.alike(*args):
            return None
        check_changes(args[0], "copy_")
        return [t.copy_(source) for t, source in zip(*args)]

    return quick


def _zeros(name, in_place):
    def quick(args, kwargs):
        if len(args) != 1 or kwargs or not passes.alike(args[0], args[0]):
            return None
        check_changes(args[0], "zero_")
        return [t.zero_() for t in args[0]]

    return quick


def _one(name, in_place):
    def quick(args, kwargs):
        if len(args) != 1 or kwargs:
            return None
        row = registry[name]
        return passes.unary(row, args[0], in_place) if name in facts_of["direct"] else None

    return quick


_QUICK = {"lerp": _between, "copy": _copies, "zero": _zeros}
_QUICK |= dict.fromkeys(("add", "sub", "mul", "div"), _two) | dict.fromkeys(("addcmul", "addcdiv"), _three)
_QUICK |= dict.fromkeys(("maximum", "minimum", "clamp_max", "clamp_min"), _larger)
_QUICK |= dict.fromkeys((name for name, row in TABLE.items() if row.signatures == {"default": SELF}), _one)
_QUICK.pop("max")
_QUICK["zero"] = _zeros


def _never(args, kwargs):
    return None


# -- one call --


def _rows(name, parameters, values):
    """Return one tuple of arguments for each tensor. Raises RuntimeError for lists of different lengths."""
    of_tensors = [values[p.name] for p in parameters if p.kind == "tuple of Tensors"]
    count = len(of_tensors[0])
    if name == "mm" and not count:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    for other in of_tensors:
        if len(other) != count:
            if name == "mm":
                raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(other)}")
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(zip(*(_column(p, values[p.name], count) for p in parameters)))


def _column(parameter, value, count):
    """Return the arguments that the tensors get for a parameter."""
    if parameter.kind == "tuple of Tensors":
        return value
    if parameter.kind == "tuple of Scalars":
        if len(value) != count:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return value
    if parameter.kind == "Tensor" and parameter.name == "scalars":
        return _unpacked(value, count)
    if parameter.kind == "Tensor" and value.ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {value.ndim} dimensions and {value.numel()} elements."
        )
    return [value] * count


def _unpacked(scalars, count):
    """Return the numbers of a vector that holds one for each tensor."""
    if scalars.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead.")
    if len(scalars) != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {len(scalars)} instead."
        )
    return scalars.tolist()


def _check_all(op, name, rows, by_name):
    """Raise what would end a call of the in-place op `name` at any of its tensors, before one is changed."""
    check_changes([row[0] for row in rows], name)
    if len(rows) > 1 and not all(map(are_alike, rows)):
        on_meta = [
            tuple([value.detach().to("meta") if isinstance(value, Tensor) else value for value in row]) for row in rows
        ]
        _each(op, on_meta, by_name)


def _each(op, rows, by_name):
    """Return the results of an op with these arguments, of which the last ones are passed by name."""
    if not by_name:
        return [op(*row) for row in rows]
    by_place = len(rows[0]) - len(by_name)
    return [op(*row[:by_place], **dict(zip(by_name, row[by_place:]))) for row in rows]


def _read(title, name, texts, args, kwargs):
    """Return the rows of arguments of a call, the names of the last ones of each, and the first list."""
    place, values = bound(title, texts, args, kwargs)
    parameters = parsed(texts[place]).parameters
    by_name = ("value",) if name in _WITH_FACTOR else tuple([p.name for p in parameters if p.by_name])
    return _rows(name, parameters, values), by_name, values["self"]


def _function(name):
    """Return the function that makes new tensors."""
    texts, title = tuple(TABLE[name].signatures.values()), f"_foreach_{name}"
    op = _OWN.get(name) or getattr(Tensor, name)

    quick = _QUICK.get(name, lambda *_: _never)(name, False)

    def function(*args, **kwargs):
        found = quick(args, kwargs)
        if found is not None:
            return tuple(found)
        rows, by_name, _ = _read(title, name, texts, args, kwargs)
        return tuple(_each(op, rows, by_name))

    return _described(function, name, title)


def _in_place_function(name):
    """Return the function that changes the tensors of its first list."""
    row, title, method = TABLE[name], f"_foreach_{name}_", f"{name}_"
    texts = tuple(text for overload, text in row.signatures.items() if overload != "ScalarAndTensor")
    own = _IN_PLACE.get(name)

    def change(tensor, *args, **kwargs):
        return getattr(tensor, method)(*args, **kwargs) if own is None else own(tensor, *args, out=tensor)

    quick = _QUICK.get(name, lambda *_: _never)(name, True)

    def function(*args, **kwargs):
        if quick(args, kwargs) is not None:
            return args[0]
        rows, by_name, tensors = _read(title, name, texts, args, kwargs)
        _check_all(change, method, rows, by_name)
        _each(change, rows, by_name)
        return tensors

    return _described(function, name, title)


def _described(function, name, title):
    """Give a function its name and its documentation."""
    forms = "".join(f"\n        {text}" for text in TABLE[name].signatures.values())
    what = "Changes each tensor of the first list as" if title.endswith("_") else "Returns a tuple with the results of"
    function.__name__ = function.__qualname__ = title
    function.__doc__ = (
        f"{what} `{name}` for each tensor; other lists have an argument for each.\n\n"
        f"    Arguments, one of:\n{forms}\n\n"
        "    Raises RuntimeError for lists of different lengths or without tensors, TypeError for other arguments,\n"
        "    and the errors of the op; no tensor is changed then."
    )
    return function


functions = publish(
    globals(),
    {
        function.__name__: function
        for name, row in TABLE.items()
        for function in (
            *([_function(name)] if row.has_result else []),
            *([_in_place_function(name)] if row.in_place else []),
        )
    },
)
