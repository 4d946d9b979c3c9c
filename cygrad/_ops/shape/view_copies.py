"""The `_copy` forms of views: contiguous copies with the view's gradient.

Each calls its view and records the copy under the view's rule and arguments, reusing the view's own node if nothing
else refers to it.
"""

from typing import Any

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import keep_apart, memory_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, note_facts, publish, registry, variant
from cygrad._core.graph.record import record_n, record_outputs
from cygrad._core.registry.dispatch import unseen
from cygrad._core.runtime.thread_state import get_modes
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._core.types.memory_format import contiguous_format
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._ops.base.arguments import integer, integers, is_integer, require
from cygrad._ops.base.batching.rules import RULES, Call
from cygrad._ops.base.checks.tuples import of_tuple
from cygrad._ops.base.copying import clone
from cygrad._ops.base.slicing import narrow, select, split, split_with_sizes, unbind
from cygrad._ops.base.slicing import slice as slice_of
from cygrad._ops.base.views import alias, expand, permute, reshape, squeeze, t, transpose, unsqueeze, view
from cygrad._ops.common.out_argument import write_several
from cygrad._ops.elementwise.complex import view_as_complex, view_as_real
from cygrad._ops.shape.diagonals import diagonal
from cygrad._ops.shape.slice_scatter import bounds_of_slice
from cygrad._ops.shape.strided import as_strided
from cygrad._ops.shape.unfold import shown_by_unfold, unfold


def _of_slice(input, dim=0, start=None, end=None, step=1):
    d, first, _, stride, count = bounds_of_slice(input, dim, start, end, step, "slice_copy")
    return slice_of(input, d, first, count, stride)


def _of_part(input, dim, start, length):
    return narrow(input, dim, integer(start, "narrow_copy", "start", 3), length)


def _of_pieces(input, split_size, dim=0):
    return split(input, integer(split_size, "split_copy", "split_size", 2), dim)


def _of_shape(input, *size, **named):
    """Like `view`, but for tensors of any layout."""
    if not size and not named:
        return view(input)  # raises for the missing argument
    if size and is_integer(size[0]):
        raise messages.no_such_call("view_copy", (input, *size), named, ("torch.dtype dtype", "tuple of ints size"))
    dtype = named.get("dtype", size[0] if size else None)
    return view(input, dtype) if isinstance(dtype, type(input.dtype)) else reshape(input, *size, *named.values())


def _expanded(input, size, *, implicit=False):
    return expand(input, integers(size, "expand_copy", "size", 2))


_BY_SHAPE: dict[str, Any] = {  # views that `vmap` can repeat if the shape of the result is known, without the arguments
    "alias": alias,
    "detach": lambda input: input.detach(),
    "expand": _expanded,
    "squeeze": squeeze,
    "t": t,
    "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
}
_SHOWN = {  # the others, with the call of an example
    "as_strided": (as_strided, "(x, (2,), (1,))"),
    "diagonal": (diagonal, "(x)"),
    "narrow": (_of_part, "(x, 0, 0, 1)"),
    "permute": (of_tuple(permute, "dims"), "(x, (1, 0))"),
    "select": (select, "(x, 0, 0)"),
    "slice": (_of_slice, "(x, 0, 0, 1)"),
    "split": (_of_pieces, "(x, 1)[0]"),
    "split_with_sizes": (split_with_sizes, "(x, (1, 1))[0]"),
    "transpose": (transpose, "(x, 0, 1)"),
    "unbind": (unbind, "(x)[0]"),
    "unfold": (unfold, "(x, 1, 2, 1)"),
    "unsqueeze": (unsqueeze, "(x, 0)"),
    "view": (_of_shape, "(x, (6,))"),
}
_VIEWS = _BY_SHAPE | {name: view for name, (view, _) in _SHOWN.items()}
_VIEW_OF = {"narrow": "slice", "detach": "alias"}  # forms whose view has another name in the registry
_NODES = {
    "ReshapeAliasBackward0": "ViewBackward0",
    "UnsafeViewBackward0": "ViewBackward0",
}
_rows: dict[tuple, Any] = {}


def _row(name, made):
    """Return the row for a copy whose view recorded a node of name `made`; without a gradient if that is None."""
    row = _rows.get((name, made))
    if row is None:
        kind = _NODES.get(made or "", made)
        of = next((row for row in registry.values() if row.node_name == kind), registry["alias"])
        own = "NarrowCopyBackward0" if name == "narrow_copy" else f"{kind}_copy"
        row = _rows[name, made] = variant(of, own if made else None, name=name)
    return row


def _copy(name, view, args, named, input, out):
    source = require(input, name)
    if (
        view is unfold and len(args) == 3 and out is None and not (named or get_modes())
    ):  # creating the view would take half of the time
        array, arguments = shown_by_unfold(source, *args)
        return record_n(_row(name, "UnfoldBackward0"), contiguous(array), (source,), arguments, (args, named))
    with unseen():
        shown = view(source, *args, **named)
    if type(shown) is tuple:
        return _copies(name, shown, source, out, (args, named))
    node = shown.grad_fn
    if node is None and out is None and is_recorded(shown):  # only by forward mode
        return clone(shown, memory_format=contiguous_format)
    row = _row(name, None if node is None else node.name())
    arguments, array = None if node is None else node.args, contiguous(memory_of(shown))
    if out is not None:
        return _write(row, (out,), (array,), source, arguments)[0]
    return shown if keep_apart((shown,), (array,), row) else record_n(row, array, (source,), arguments, (args, named))


def _copies(name, parts, source, outs, given):
    """Like `_copy`, for views with several results."""
    node = parts[0].grad_fn if parts else None
    if node is None and outs is None and parts and is_recorded(parts[0]):
        return tuple(clone(part, memory_format=contiguous_format) for part in parts)
    row = _row(name, None if node is None else node.name())
    arguments = None if node is None else node.args
    arrays = tuple([contiguous(memory_of(part)) for part in parts])
    if outs is not None:
        _write(row, outs, arrays, source, arguments)
        return None
    if not arrays or keep_apart(parts, arrays, row):
        return parts
    return record_outputs(row, arrays, (source,), arguments, len(arrays), given)


def _write(row, outs, arrays, source, arguments):
    if not isinstance(outs, (tuple, list)):
        raise messages.wrong_keyword(row.name, "out", "tuple of Tensors", outs)
    if len(outs) != len(arrays):
        raise RuntimeError(f"{row.name}() expected an out= argument of size {len(arrays)}, got size {len(outs)}")
    write_several(row, outs, arrays, (source,), arguments)
    return outs


DOC = """Like `{of}`, but copies into new contiguous memory; changing one tensor does not change the other.

    Same arguments, errors and gradient; writes to `out` (a list for several results).

    >>> import cygrad
    >>> x = {tensor}
    >>> y = cygrad.{name}{call}
    >>> y.data_ptr() == x.data_ptr()
    False
    """


def _tensor_for(of):
    """Return the tensor of an example."""
    return {
        "view_as_complex": "cygrad.ones(2, 2)",
        "view_as_real": "cygrad.ones(2, 3, dtype=cygrad.cfloat)",
    }.get(of, "cygrad.ones(2, 3)")


def _copy_form(name, view):
    def form(input, *args, out=None, **named):
        return _copy(name, view, args, named, input, out)

    form.__name__ = form.__qualname__ = name
    of = name.removesuffix("_copy")
    call = _SHOWN[of][1] if of in _SHOWN else "(x, (4, 2, 3))" if of == "expand" else "(x)"
    form.__doc__ = DOC.format(of=of, name=name, call=call, tensor=_tensor_for(of))
    return form


def _copying_rule(view, needs_args):
    """Return the batching rule of a copying form: it copies the results of its view's rule."""

    def copied(call):
        if needs_args and not call.args:
            raise NoBatchingRule(call.key)
        found = RULES[view](Call(call.batch, call.step, view))
        return [part.clone() for part in found] if isinstance(found, (list, tuple)) else found.clone()

    return copied


for _name, _view in _VIEWS.items():
    globals()[f"{_name}_copy"] = _copy_form(f"{_name}_copy", _view)
    note_facts(f"{_name}_copy", {"batching": _copying_rule(_VIEW_OF.get(_name, _name), _name not in _BY_SHAPE)})
    if _name not in ("narrow", "split"):
        note_facts(f"{_name}_copy", {"out_dtype": "same"})
note_facts("squeeze_copy", {"overloads": "1"})
note_facts("view_copy", {"overloads": ""})

composite = {f"{_name}_copy": 0 if _name == "narrow" else FUNCTION_ONLY for _name in _VIEWS}
functions = publish(globals())
