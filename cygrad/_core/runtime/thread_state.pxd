"""Per-thread state: mode bits, sequence numbers, and the current site in the user's code."""

# Mode bits. All zero is the common case (grad enabled, nothing special), so that recording needs a single test.
cdef enum:
    NO_GRAD = 1             # grad mode is off
    INFERENCE = 2           # inside inference_mode()
    IN_RULE = 4             # inside a built-in rule that is not recorded, so cuts need not be noted
    FORWARD = 8             # a dual level is open: results computed from a tensor with a tangent get one

cdef enum:                  # ThreadState.watch
    WATCH_NAN = 1           # in gradients
    WATCH_RESULTS = 2       # in results of ops, too
    WATCH_INF = 4           # infinities, too

ctypedef struct ThreadState:
    unsigned int modes
    unsigned long long sequence     # number of the next node; later nodes have larger numbers
    void* run                       # the innermost backward pass of this thread (not owned)
    unsigned long long unwanted     # bit i: the running pass does not want the gradient of input i of the running node
    void* spare                     # the gradient offered to the running rule (not owned); Note [Spent gradients]
    unsigned int watch              # WATCH_* bits: what results are checked for
    void* on_save                   # NULL, or called with each new node when its values are saved (owned)
    void* on_write                  # NULL, or called before memory is changed; returns the operands (owned)
    void* stream                    # NULL, or the token of the stream in use (owned); see streams.py
    void* observers                 # NULL, or a tuple of who sees the ops of this thread (owned); see observers.pyx
    unsigned int dispatching        # how many modes of `__torch_dispatch__` see the ops of this thread; see dispatch.py
    void* changing                  # NULL, or what observers have been told of the write in progress (owned)
    void* generator                 # NULL, or what this thread draws random numbers from (owned); see source.pyx
    unsigned long long draws        # how often this thread drew from its own or the default generator

cdef ThreadState* thread_state() noexcept

cdef tuple entered_hooks()          # the hooks on saved tensors that this thread has entered, the innermost last
cpdef save_by(tuple hooks)          # replace them

cdef inline bint is_recording() noexcept:
    """Whether an op on a tensor that requires grad gets a node."""
    return not thread_state().modes & ~FORWARD

# Return the code object and set the instruction offset of the innermost Python line outside cygrad.
# See Note [Sites] in thread_state.pyx.
cdef object current_site(int* lasti)
