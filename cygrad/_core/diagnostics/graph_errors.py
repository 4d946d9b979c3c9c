"""Errors of the graph: PyTorch's first line, then what was saved, changed, freed or made where, and a suggested fix.

The classes are in `classes.py`; `missing_grad.py` has the error of a tensor without history, `non_finite.py` those of
NaNs.
"""

import ast
import threading
import warnings

from cygrad._core.diagnostics.source_call import call_at, name_of_change
from cygrad._core.errors import messages
from cygrad._core.errors.classes import (
    AutogradError,
    ChangedInPlaceError,
    FreedGraphError,
    InvalidGradientError,
    LeafChangedError,
    LeavesGraphError,
    OverlapError,
    ReadOnlyError,
    UnusedInputError,
    ViewChangedError,
)
from cygrad._core.errors.sites import at, expression, line_of, place
from cygrad._core.runtime.thread_state import current_place


def short_name(node):
    """Return 'Mul' for MulBackward0, 'Sum1' for SumBackward1: PyTorch's name for the function behind a node."""
    function, _, number = node.name().rpartition("Backward")
    return function + number.lstrip("0") if function and number.isdigit() else node.name().removesuffix("Backward")


# -- saved tensors --

_CURES = {
    "step": "the optimizer's step changed a parameter between forward and backward: call backward() before step()",
    "__setitem__": "write into a copy: `y = x.clone(); y[...] = value`",
    "copy_": "make a new tensor, `x = y.clone()`, or let the graph save a copy: `x.clone()`",
    "zero_": "make a new tensor, `x = torch.zeros_like(x)`, or let the graph save a copy: `x.clone()`",
    "fill_": "make a new tensor, `x = torch.full_like(x, value)`, or let the graph save a copy: `x.clone()`",
    "increment_version": "save a copy, `x.clone()`, before changing the memory behind autograd's back",
    "backward": "another backward pass accumulated into this gradient: keep a copy, `g = x.grad.clone()`",
}


def _stated(fact, op_name):
    """Return a fact from the row of an op, by the name of its in-place form; None if it is not stated."""
    from cygrad._core.graph.opdef import facts_of  # which imports this module

    return facts_of[fact].get(op_name.removesuffix("_")) if op_name.endswith("_") else None


def _is_asked_inplace(op_name, place):
    """Whether the change was made by a function with `inplace=True`, or by a module (dropout calls `mul_`)."""
    call = call_at(place)
    if _stated("inplace_argument", op_name) or (call is not None and call.is_told):
        return True
    if call is None or call.has_out or call.name.endswith("_"):
        return False
    return _stated("operator", op_name) is not None


def _cure_of_change(op_name, place):
    """Suggest a replacement for the op that changed a saved tensor there."""
    if op_name in _CURES:
        return _CURES[op_name]
    name = name_of_change(op_name, place)
    if name.endswith("(out=)"):
        return f"pass a different tensor as `out` to {name.removesuffix('(out=)')}, or none"
    if _is_asked_inplace(op_name, place):
        underscore = f" (or the underscore of `{op_name}`)" if _stated("inplace_argument", op_name) else ""
        return f"leave out `inplace=True`{underscore}, or let the graph save a copy: `x.clone()`"
    symbol, plain = _stated("operator", name), name.removesuffix("_")
    instead = f"`x = x {symbol} y` for `x {symbol}= y`" if symbol else f"`x = x.{plain}(...)`"
    return f"replace `{name}` with the out-of-place op ({instead}), or let the graph save a copy: `x.clone()`"


def modified_error(tensor, node, expected, now, is_output):
    """Return the error for a saved tensor that was changed in place after it was saved."""
    from cygrad._core.graph.internals import array_of, last_change  # which imports this module

    array = array_of(tensor)
    made_by = node if is_output else tensor.grad_fn
    which = f", which is output {tensor.output_nr} of {short_name(made_by)}," if made_by else ""
    op_name, code, offset = last_change(tensor)
    return ChangedInPlaceError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{messages.type_word(array)} {list(array.shape)}]{which} is at version {now}; expected version {expected} "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).\n"
        f"  saved by {node.name()} at {at(*node._site)}\n"
        f"  changed by {name_of_change(op_name, (code, offset))} at {at(code, offset)}\n"
        f"  to fix it: {_cure_of_change(op_name, (code, offset))}",
        saved=node._site,
        changed=(code, offset),
    )


def inference_saved(tensor):
    """Return the error for saving a tensor made in inference mode."""
    from cygrad._core.graph.internals import origin_of  # which imports this module

    used = current_place()
    kind, _, code, offset = origin_of(tensor)
    made = f", made in inference mode at {at(code, offset)}," if kind else ""
    return AutogradError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
        "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.\n"
        f"  a tensor of shape {tuple(tensor.shape)}{made} is needed for the gradient of the op called at {at(*used)}",
        called=used,
        made=(code, offset) if kind else None,
    )


# -- freed graphs --

_LEAF = 2**64 - 1  # the sequence number of AccumulateGrad nodes
_CURE_OF_THREADS = (
    "let each thread compute its own graph (threads may share leaves), or sum the losses and call backward() once, in "
    "one thread"
)


def freed_error(node, freed_by):
    """Return the error for a node whose saved values were freed by an earlier pass."""
    caller, code, offset, sequence, thread = freed_by
    elsewhere = thread != threading.get_ident()
    joined, cure = (None, _CURE_OF_THREADS) if elsewhere else _joint(node, sequence)
    text = (
        f"{messages.BACKWARD_TWICE}\n"
        f"  freed by {caller}{' in another thread' if elsewhere else ''} at {at(code, offset)}\n"
        f"  needed again by {node.name()} recorded at {at(*node._site)}\n"
    )
    places = {"freed": (code, offset), "recorded": node._site}
    if joined is not None:
        old, output_nr, new = joined
        shape = old._metas[output_nr][0]
        text += (
            f"  both passes share the result of {old.name()}, of shape {tuple(shape)}, made before the first at "
            f"{at(*old._site)}\n"
            f"  and used after it by {new.name()} at {at(*new._site)}\n"
        )
        places["joined"] = old._site
    cure += "; pass retain_graph=True only if you really need to run the same graph twice"
    return FreedGraphError(f"{text}  to fix it: {cure}", **places)


def _joint(node, sequence):
    """Return ((old node, output, new node) where the running pass enters the freed graph or None, suggested fix)."""
    from cygrad._core.engine.backward import current_run  # which imports this module

    number, nodes = current_run()
    if not number:
        return None, "read saved tensors before calling backward()"
    new = [one for one in nodes if sequence <= one._sequence_nr() < _LEAF]
    for user in new:
        for old, output_nr in user.next_functions:
            if old is not None and old._sequence_nr() < sequence and _leads_to(old, node):
                return (old, output_nr, user), cure_of_joint(old, user, new)
    return None, (
        "the whole graph was recorded before the first pass: sum the losses and call backward() once, "
        "or recompute that part for each call"
    )


def _leads_to(start, wanted):
    """Whether `wanted` is part of the graph below `start`."""
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        if node is wanted:
            return True
        below = {child for child, _ in node.next_functions if child is not None}
        waiting += below - seen
        seen |= below
    return False


def cure_of_joint(old, user, new):
    """Suggest a fix for an `old` node that `user`, one of the `new` nodes, connects with a later pass."""
    if any(one._site == old._site for one in new):  # the same line has made another node since
        if user.name() == "AddBackward0" and user._site == old._site:
            return "a running total needs no history: add `loss.detach()` or `loss.item()` to it"
        return "this tensor is carried over from one iteration to the next: cut it off there with `.detach()`"
    return (
        "recompute this tensor for each pass (move its line into the loop), or use its `.detach()` in one of the "
        "passes, which then ends there"
    )


# -- gradients --


def unused_input(value, index):
    """Return the error for an input of `autograd.grad` that is not part of the graph."""
    node = getattr(value, "grad_fn", None)
    made = "it is a leaf" if node is None else f"it was made by {node.name()} at {at(*node._site)}"
    shape = f", of shape {tuple(value.shape)}," if hasattr(value, "shape") else ""
    return UnusedInputError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
        "Set allow_unused=True if this is the desired behavior.\n"
        f"  {made}{shape} and the outputs were not computed from it, but perhaps from a copy or a view made before or "
        "after: differentiate with respect to the tensor that was actually used",
        recorded=None if node is None else node._site,
        called=current_place(),
    )


def input_without_gradient(value, index):
    """Return the error for an input of `autograd.grad` that does not require grad."""
    from cygrad._core.diagnostics.missing_grad import why_no_grad  # needed only for this error

    return UnusedInputError(
        f"One of the differentiated Tensors does not require grad\n  inputs[{index}]: {why_no_grad(value)}\n"
        "  to fix it: set requires_grad=True on it before computing the outputs",
        called=current_place(),
    )


def too_few_gradients(node, got, expected):
    """Return the error for a node that returned fewer gradients than it has inputs."""
    return RuntimeError(
        f"Function {node.name()} returned an invalid number of gradients - got {got}, but expected {expected}"
    )


def invalid_gradient_shape(node, index, got, expected):
    """Return the error for a gradient that cannot be summed to the shape of its input."""
    return InvalidGradientError(
        f"Function {node.name()} returned an invalid gradient at index {index} - got {list(got)} but expected "
        f"shape compatible with {list(expected)}\n  {node.name()} was recorded at {at(*node._site)}",
        recorded=node._site,
    )


def complex_gradient(node, index):
    """Return the error for a complex gradient of a real input, from a custom function."""
    return InvalidGradientError(
        "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got "
        "false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)\n"
        f"  the gradient at index {index} of {node.name()} is complex, but the input is real: return `grad.real`\n"
        f"  {node.name()} was recorded at {at(*node._site)}",
        recorded=node._site,
    )


def note_node(error, node):
    """Add to an exception from user code which node of the graph it came from, as a note below its traceback."""
    if isinstance(error, AutogradError):  # its text already names the lines
        return
    from cygrad._core.graph.accumulate_grad import AccumulateGrad  # which imports this module

    if isinstance(node, AccumulateGrad):  # a leaf's node has no meaningful line
        note = f"  while accumulating the gradient of a leaf of shape {tuple(node.variable.shape)}"
    else:
        note = f"  in the backward of {node.name()}, recorded at {at(*node._site)}"
    earlier = getattr(error, "__notes__", [])
    if note not in earlier:
        error.add_note(note)
    elif _AGAIN not in earlier:  # one note per nested pass could be a thousand
        error.add_note(_AGAIN)
        if isinstance(error, RecursionError):
            error.add_note(_CURE_OF_RECURSION)


_AGAIN = "  and likewise in each of the nested backward passes"
_CURE_OF_RECURSION = (
    "  a hook that runs backward through its own node, or a backward that applies its own function, recurses forever\n"
    "  to fix it: differentiate only values computed before that node, with other functions"
)


# -- leaving the graph --


def read_of_gradient(tensor):
    """Return the error for `numpy()` of a tensor that requires grad."""
    place = current_place()
    return LeavesGraphError(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        f"  called at {at(*place)}\n"
        "  NumPy computations are not recorded, so the gradient would be lost silently",
        called=place,
    )


def not_a_leaf_to_copy(tensor):
    """Return the error for `deepcopy` of a tensor with a history."""
    node = tensor.grad_fn
    return LeavesGraphError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
        "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
        "see https://github.com/pytorch/pytorch/pull/103001\n"
        f"  this one, of shape {tuple(tensor.shape)}, was computed by {node.name()} at {at(*node._site)}\n"
        "  to fix it: store t.detach() in the object to copy, or recompute the tensor in the copy",
        recorded=node._site,
        called=current_place(),
    )


# -- in-place --


def _leaf_cures(op_name, place):
    """Suggest three ways to change a leaf, based on the user's source text if available."""
    call = call_at(place)
    if call is not None and op_name != "__setitem__":
        return _cures_of_call(call)
    symbol = _stated("operator", op_name)
    if op_name == "__setitem__":
        dotted, rest = "[...]", " = ..."
    elif symbol:
        dotted, rest = "", f" {symbol}= ..."
    else:
        dotted, rest = f".{op_name}(...)", ""
    own, base, parts = expression(*place), "w", dotted
    if op_name == "__setitem__" and own:
        base, parts = _split_target(own) or ("w", dotted)
        own += rest
    elif symbol and rest.strip(" .") in own:
        base, parts = _split_target(own.partition(rest.strip(" ."))[0]) or ("w", dotted)
    elif op_name not in own:
        own = ""
    return _three_ways(own or "w" + dotted + rest, f"{base}.data{parts}{rest}", _by_copy(base))


def _cures_of_call(call):
    """Suggest the three ways for a call of a function, a method or a module."""
    bases = []

    def through_data(text):
        base, parts = _split_target(text) or (text, "")
        bases.append(base)
        return f"{base}.data{parts}"

    by_data = call.of(through_data)
    if call.is_told:
        instead = "leave out `inplace=True`, so that the op makes a new tensor and is recorded"
        return _three_ways(call.text, by_data, instead)
    return _three_ways(call.text, by_data, _by_copy(bases[0] if bases else "w"))


def _by_copy(base):
    name = base if base.isidentifier() else "w"
    return f"make a new tensor, {name} = {base}.clone(), and change that one: its changes are recorded"


def _three_ways(own, by_data, instead):
    through = f"    or through the data: {by_data}\n" if by_data else ""
    return (
        "  to fix it, change the values without recording the change:\n"
        f"    with torch.no_grad(): {own}\n{through}"
        f"    or {instead}"
    )


def _is_view(target):
    """Whether `target` is a method call on a tensor, as in `w.view(-1)`."""
    from cygrad._core.graph.tensor import Tensor  # deferred: tensor imports this module

    return isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and hasattr(Tensor, target.func.attr)


def _split_target(text):
    """Split 'w[0]' into 'w' and '[0]', 'model.weight' into itself and ''; None if it cannot be parsed."""
    text = text.strip()
    try:
        target = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    while isinstance(target, ast.Subscript) or _is_view(target):
        target = target.value if isinstance(target, ast.Subscript) else target.func.value
    base = ast.get_source_segment(text, target) or text
    return base, text.removeprefix(base)


def leaf_error(tensor, op_name):
    """Return the error for an in-place change of a leaf that requires grad."""
    place = current_place()
    return LeafChangedError(
        "a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"  changed by {name_of_change(op_name, place)} at {at(*place)}\n" + _leaf_cures(op_name, place),
        changed=place,
    )


def leaf_view_error(tensor, op_name, base, code, offset):
    """Return the error for an in-place change of a view of a leaf that requires grad."""
    place = current_place()
    return LeafChangedError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"  changed by {name_of_change(op_name, place)} at {at(*place)}\n"
        f"  the view of the leaf of shape {tuple(base.shape)} was made at {at(code, offset)}\n"
        + _leaf_cures(op_name, place),
        changed=place,
        made=(code, offset),
    )


def view_error(node, output_nr, op_name, creation_meta, code, offset):
    """Return the error for changing a view whose history cannot be rewritten; without `op_name`, indirectly."""
    place = current_place()
    changed = "is being" if op_name else "its base or another view of its base has been"
    if creation_meta in (1, 3) or node is None:
        mode, end = ("no_grad mode", "with grad mode enabled")
        if creation_meta == 3:
            mode, end = ("inference mode", "in normal mode")
        view = "A view" if node is None else f"Output {output_nr} of {short_name(node)} is a view of a view which"
        text = f"{view} was created in {mode} and {changed} modified inplace {end}. "
    else:
        text = f"Output {output_nr} of {short_name(node)} is a view and {changed} modified inplace. "
    text += _WHY_NO_CHANGE[creation_meta]
    if op_name:
        text += f"\n  changed by {name_of_change(op_name, place)} at {at(*place)}"
    text += f"\n  the view was made at {at(code, offset)}"
    if creation_meta == 2:
        text += "\n  to fix it: select the part by indexing, as in `x[0:2]`, or change a `.clone()` of it"
    return ViewChangedError(text, changed=place if op_name else None, made=(code, offset))


_BOTH_INSIDE = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_WHY_NO_CHANGE = {
    1: _BOTH_INSIDE.format("no_grad"),
    2: "This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    3: _BOTH_INSIDE.format("inference_mode"),
    4: "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
    "to handle view+inplace would override the custom backward associated with the custom Function, leading to "
    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.",
}


def overlapping_operand_error():
    """Return the error for writing to memory that an operand shares in a different layout."""
    place = current_place()
    return OverlapError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        f"location. Please clone() the tensor before performing the operation.\n  changed at {at(*place)}",
        changed=place,
    )


def overlap_error(tensor):
    """Return the error for writing to a tensor whose elements share memory."""
    place = current_place()
    return OverlapError(
        f"{messages.OVERLAP}\n  shape {tuple(tensor.shape)}, strides {tensor.stride()}: a dimension of stride 0 comes "
        f"from expand() or broadcasting\n  changed at {at(*place)}",
        changed=place,
    )


def read_only_error(tensor):
    """Return the error for writing to read-only memory."""
    place = current_place()
    return ReadOnlyError(
        "the memory of this tensor is read-only and cannot be changed in place\n"
        f"  changed at {at(*place)}\n"
        "  it comes from a NumPy array whose `flags.writeable` is False (a memory-mapped or broadcast array, or one "
        "that Ray or Dask shares); to fix it: change a copy, `x = x.clone()`",
        changed=place,
    )


# -- .grad of non-leaves --

_warned: set[str] = set()


def _instruction(code, offset):
    """Return the name of the instruction at an offset, which may point to one of its inline cache entries."""
    import opcode  # takes a millisecond to import

    while offset > 0 and opcode.opname[code.co_code[offset]] == "CACHE":
        offset -= 2
    return opcode.opname[code.co_code[offset]]


def warn_non_leaf_grad(node):
    """Warn about reading `.grad` of a result of `node`, once for each line that computed such a result.

    Only a plain `t.grad` counts: `hasattr`, `dir` and debuggers access attributes by other instructions.
    """
    code, offset = current_place()
    if code is None or _instruction(code, offset) != "LOAD_ATTR":
        return
    made = place(*node._site)
    if made in _warned:
        return
    _warned.add(made)
    warnings.warn_explicit(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.\n"
        f"  this one was made by {node.name()} at {at(*node._site)}",
        UserWarning,
        code.co_filename,
        line_of(code, offset) or 0,
    )
