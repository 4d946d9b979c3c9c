"""What each thread carries: its modes, its sequence numbers, and where in the user's code it is."""

# Mode bits. All zero is the common case (grad enabled, nothing special), so that recording asks one question.
cdef enum:
    NO_GRAD = 1             # grad mode is off
    INFERENCE = 2           # inside inference_mode()
    IN_RULE = 4             # inside a built-in op's gradient that is not recorded: nothing notes where it was cut
    FORWARD = 8             # a dual level is open: what is computed from a tensor with a tangent gets one

cdef enum:                  # ThreadState.watch
    WATCH_NAN = 1           # in gradients
    WATCH_RESULTS = 2       # in results of ops, too
    WATCH_INF = 4           # infinite numbers, too

ctypedef struct ThreadState:
    unsigned int modes
    unsigned long long sequence     # of the next node; later nodes have larger numbers
    void* run                       # the innermost backward pass of this thread (not owned)
    unsigned long long unwanted     # bit i: this pass does not want the gradient of input i of the running node
    void* spare                     # the gradient that the running node got, if nobody else has it (not owned)
    unsigned int watch              # WATCH_NAN and so on: what results are checked for
    void* on_save                   # NULL or a function of a new node, called when its values are saved (owned)
    void* on_write                  # NULL or called before memory is changed; gives the operands (owned)
    void* stream                    # NULL or the place of the stream in use (owned); see streams.py
    void* events                    # NULL or what the profiler collects in this thread (owned); see events.pyx

cdef ThreadState* thread_state() noexcept

cdef inline bint is_recording() noexcept:
    """Does an op on what requires grad get a node?"""
    return not thread_state().modes & ~FORWARD

# The code object and instruction offset of the innermost Python line outside cygrad.
# See Note [Sites] in state.pyx.
cdef object current_site(int* lasti)
