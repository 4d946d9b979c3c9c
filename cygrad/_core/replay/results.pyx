"""Enters what a captured step returns, and refuses what it leaves behind besides."""

import gc

cimport numpy as cnp
from libc.stdint cimport uintptr_t

from cygrad._core.graph.accumulate_grad cimport AccumulateGrad
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.inplace cimport CopySlices
from cygrad._core.graph.opdef cimport OpNode
from cygrad._core.graph.saved_slots cimport value_in
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, VIEW_DEFAULT, Tensor
from cygrad._core.replay.extents cimport Span, extent_of
from cygrad._core.replay.parts cimport A_PART, AN_ARGUMENT, AN_EXTERNAL, MADE, SAME, External, Result
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.situation cimport Situation
from cygrad._kernels.tape.tape cimport ARGUMENT_BLOCK, INNER_BLOCK, Block, Tape

from cygrad._core.replay.parts import Unfit

cnp.import_array()


cdef int enter_memory(Program program, Tape tape, Result r, Tensor t, list kept) except -1:
    """Give a new tensor a slot of fresh memory."""
    cdef Block block = None
    cdef cnp.ndarray array
    cdef Span span
    cdef bint is_restricted = t.view is not None and t.view.creation_meta != VIEW_DEFAULT and not program.is_pass
    if type(t) is not Tensor or is_restricted and not can_be_made_again(t):
        raise Unfit("a view of a tensor with a history, or a tensor of a subclass, is returned")
    if type(t.array) is not cnp.ndarray or t.grad_ is not None or t.tangents is not None or t.attributes:
        raise Unfit("a tensor of an unusual kind is returned")
    array = t.array
    span = extent_of(array)
    r.describe(t)
    if span.low == span.high:               # no elements: memory of its own, which no slot knows
        if is_restricted:
            raise Unfit("a view without elements is returned")
        r.index = -1
        return 0
    block = tape.block_at(span.low, span.high)
    if block is None or block.kind != INNER_BLOCK:
        raise Unfit("a tensor on memory that is not its own is returned")
    if not tape.is_written(block, span.low - block.low, span.high - block.low):
        raise Unfit("a tensor that no noted loop has computed is returned")
    r.offset = cnp.PyArray_BYTES(array) - <char*>block.low
    if block in kept and not program.is_pass and (t.view is not None or is_viewed(program, kept.index(block))) and (
            not is_restricted or id(t.view.base) not in program.bases):
        raise Unfit("two results share memory, one of which is a view")
    if is_restricted:
        enter_base(program, tape, r, t, block, kept)
        return 0
    if block in kept:
        r.index = kept.index(block)
        program.sizes[r.index] = block.high - block.low
        return 0
    r.index = len(kept)
    kept.append(block)
    is_whole = cnp.PyArray_NBYTES(array) == block.high - block.low == span.high - span.low and (
        span.low == <uintptr_t>cnp.PyArray_BYTES(array))
    program.sizes.append(0 if is_whole else block.high - block.low)
    return 0


cdef bint can_be_made_again(Tensor view) noexcept:
    cdef Tensor base = view.view.base
    return (type(base) is Tensor and not base.flags & REQUIRES_GRAD and base.grad_fn_ is None and base.grad_ is None
            and view.grad_fn_ is None and base.tangents is None and not base.attributes)


cdef bint is_viewed(Program program, Py_ssize_t index) except -1:
    """Whether results are views of a tensor on this memory."""
    cdef Result base
    for base in program.bases.values():
        if base.index == index:
            return True
    return False


cdef int enter_base(Program program, Tape tape, Result r, Tensor t, Block block, list kept) except -1:
    """Enter a view that may not be changed in place as others may, and what it lies in."""
    cdef Tensor of = t.view.base
    cdef Result base = program.bases.get(id(of))
    cdef Span span = extent_of(of.array)
    if tape.block_at(span.low, span.high) is not block or (
            not tape.is_written(block, span.low - block.low, span.high - block.low)):
        raise Unfit("a view of a tensor that no noted loop has computed is returned")
    if base is None:
        base = program.bases[id(of)] = Result(MADE, len(kept))
        base.describe(of)
        base.offset = cnp.PyArray_BYTES(<cnp.ndarray>of.array) - <char*>block.low
        base.number = len(program.bases) - 1
        kept.append(block)
        program.sizes.append(block.high - block.low)
    r.index, r.base = base.index, base
    r.made = t.view.creation_meta, t.view.code, t.view.lasti
    return 0


cdef int enter_results(Program program, Tape tape, list arguments, list leaves, dict before, list kept,
                       bint has_history) except -1:
    cdef Tensor t
    cdef Result r
    cdef dict at = {}
    cdef dict places = {id(t): i for i, t in enumerate(arguments)}
    cdef dict outside = {id((<External>e).tensor): i for i, e in enumerate(program.outside)}
    cdef dict grads = {id((<External>e).tensor.grad_): i for i, (e, made) in enumerate(program.grads) if made is not None}
    for i, t in enumerate(leaves):
        if t.view is not None and id(t.view.base) in at and not program.is_pass:
            raise Unfit("a tensor and a view of it are returned")
        if id(t) in at:
            r = Result(SAME, at[id(t)])
        elif id(t) in places:
            r = Result(AN_ARGUMENT, places[id(t)])
        elif id(t) in outside:
            r = Result(AN_EXTERNAL, outside[id(t)])
        elif id(t) in before:
            raise Unfit("a tensor that the step does not use is returned")
        elif id(t) in grads:
            raise Unfit("a new gradient is returned")
        elif program.is_pass and enter_part(program, tape, arguments, t):
            at[id(t)] = i
            continue
        else:
            r = Result(MADE, 0)
            if t.flags & REQUIRES_GRAD and t.grad_fn_ is None:
                raise Unfit("a new leaf is returned")
            if t.grad_fn_ is not None and not has_history:
                check_graph(t.grad_fn_, set(places))
            enter_memory(program, tape, r, t, kept)
            if has_history:
                r.grad_fn = None
        at[id(t)] = i
        program.results.append(r)
    return 0


cdef bint enter_part(Program program, Tape tape, list arguments, Tensor t) except -1:
    """Enter a result of a pass that is a part of an argument, as expanded gradients are; return whether it is one."""
    cdef Block block
    cdef Result r
    cdef Span span
    if type(t) is not Tensor or type(t.array) is not cnp.ndarray or not cnp.PyArray_SIZE(<cnp.ndarray>t.array):
        return False
    span = extent_of(t.array)
    block = tape.block_at(span.low, span.high)
    if block is None or block.kind != ARGUMENT_BLOCK or t.grad_fn_ is not None:
        return False
    r = Result(A_PART, block.index)
    r.describe(t)
    argument = (<Tensor>arguments[r.index]).array
    r.offset = cnp.PyArray_BYTES(<cnp.ndarray>t.array) - cnp.PyArray_BYTES(<cnp.ndarray>argument)
    program.results.append(r)
    return True


cpdef int check_graph(Node root, set given=None) except -1:
    """Raise unless the graph of a result has been used up, so that the nodes that a pass may run hold no values, and lead to
    none of the tensors with the addresses in `given`: the next call gets others."""
    cdef list todo = [root]
    cdef set seen = set()
    cdef Node node
    cdef Py_ssize_t i
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            if given is not None and <size_t>(<AccumulateGrad>node).leaf in given:
                raise Unfit("a result carries a graph that leads to an argument")
            continue
        if type(node) is CopySlices and node.hooks is None:
            todo.append((<CopySlices>node).fn)
            if (<CopySlices>node).fn.freed_by is not None:
                continue                                    # as below
        elif type(node) is not OpNode or node.hooks is not None:
            raise Unfit("a result carries a graph with nodes of other kinds than built-in ops, or with hooks")
        else:
            for i in range(node.n_places()):
                if holds_values(value_in(node, i)):
                    raise Unfit("a result carries a graph")
            if node.freed_by is None and holds_values((<OpNode>node).arguments):
                raise Unfit("a result carries a graph")     # else it can only raise the error that it was freed
        if node.freed_by is not None:
            continue                                        # a pass ends here, with that error: it sees nothing beyond
        for i in range(node.n_edges):
            target = node.target(<int>i)
            if isinstance(target, Node):
                todo.append(target)
            elif given is not None and id(target) in given:
                raise Unfit("a result carries a graph that leads to an argument")
    return 0


cdef bint holds_values(object value) except -1:
    if value is None or isinstance(value, (int, float, complex, str, bytes)):
        return False
    if isinstance(value, (tuple, list)):
        for each in value:
            if holds_values(each):
                return True
        return False
    return True


cdef int check_leftovers(Program program, list leaves, Situation now, list more) except -1:
    """Raise if a new tensor lives on that is neither a result nor a gradient, nor one of `more`."""
    known = {id(t) for t in (*leaves, *more)}
    known.update([id((<Tensor>t).view.base) for t in (*leaves, *more) if (<Tensor>t).view is not None])
    for t in leaves:
        add_arguments((<Tensor>t).grad_fn_, known)
    known.update([id((<External>e).tensor.grad_) for e, _ in program.grads])
    if has_others(now.census.again(), now.before, known):
        gc.collect()
        if has_others(now.census.again(), now.before, known):
            raise Unfit("a new tensor outlives the step")
    return 0


cpdef int add_arguments(Node root, set known) except -1:
    """Add the tensors among the arguments of the nodes of a graph that has been used up, and the leaves that it led to."""
    cdef list todo = [] if root is None else [root]
    cdef set seen = set()
    cdef Node node
    cdef int i
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is OpNode and (<OpNode>node).arguments is not None:
            known.update([id(value) for value in (<OpNode>node).arguments if isinstance(value, Tensor)])
        if type(node) is CopySlices:
            todo.append((<CopySlices>node).fn)
        for i in range(node.n_edges):
            target = node.target(i)
            if isinstance(target, Node):
                todo.append(target)
            elif isinstance(target, Tensor):
                known.add(id(target))
                known.add(id((<Tensor>target).grad_))
    return 0


cpdef bint has_others(list tensors, dict before, set known) except -1:
    """Whether tensors are among these that are neither in `before` nor `known`, both by their ids."""
    for t in tensors:
        if id(t) not in before and id(t) not in known:
            return True
    return False
