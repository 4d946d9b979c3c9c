"""Kernels as called from Python: each dispatches on its arguments between the compiled function and its GPU form."""

cimport cython
from numpy cimport ndarray

from cygrad._kernels.device import gpu_forms
from cygrad._kernels.tape.calls cimport run_on_tape
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.tape.tape import look_at_kernels_caller


cdef bint gpu_is_used = False               # whether any array may be on a GPU


def use_gpu():
    """Enable the check for GPU arrays: CuPy has been found."""
    global gpu_is_used
    gpu_is_used = True


@cython.final
cdef class Kernel:
    """A kernel for arrays in memory that calls its GPU form if an argument is on a GPU (Note [Kernels on GPUs])."""

    cdef readonly object function
    cdef readonly str name
    cdef readonly str module

    def __init__(self, function, str name, str module):
        self.function = function
        self.name = name
        self.module = module

    @property
    def __name__(self):
        return self.name

    @property
    def __doc__(self):
        return self.function.__doc__

    def __call__(self, *args, **kwargs):
        cdef ndarray in_memory = None       # the first array in memory among the arguments
        if gpu_is_used:
            for value in args:
                if isinstance(value, ndarray):
                    in_memory = <ndarray>value if in_memory is None else in_memory
                elif gpu_forms.is_array(value):
                    return gpu_forms.call_form(self, value, in_memory, args, kwargs)
        if tape_open:
            look_at_kernels_caller()
            return run_on_tape(self, self.function, args, kwargs)
        return self.function(*args, **kwargs)

    def __repr__(self):
        return f"<kernel {self.module}.{self.name}>"


def dispatching(dict module, str names):
    """Turn the functions of a module listed in `names` into kernels."""
    for name in names.split():
        module[name] = Kernel(module[name], name, module["__name__"])


def in_memory(kernel):
    """Return the function that a kernel calls for arrays in memory."""
    return (<Kernel>kernel).function if isinstance(kernel, Kernel) else kernel
