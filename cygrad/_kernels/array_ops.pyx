"""Array operations for the core and the compiled families that work on both NumPy and CuPy arrays.

Code for arrays in memory is compiled and takes ndarrays; code for CuPy arrays is in gpu/ (see Note [Kernels on GPUs]
there). Kernels named by rows need no function here: `run_kernel` in record.pyx calls `gpu.run`.
"""

cimport numpy as cnp
from numpy cimport PyArray_DescrFromType, PyArray_SwapAxes

cimport cygrad._kernels.cpu.base.arrays as arrays
cimport cygrad._kernels.cpu.base.matmul as blas
cimport cygrad._kernels.cpu.base.reduce as reduce
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, resolved
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.base.matmul import addmm as addmm_kernel, matmul as matmul_kernel
from cygrad._kernels.cpu.base.reduce import mean as mean_kernel, sum as sum_kernel, sum_to as sum_to_kernel
from cygrad._library import later

basics = later("cygrad._kernels.gpu.base.arrays")      # needed only for GPU arrays

cnp.import_array()


cdef object cast(object a, int typenum):
    if is_on_cpu(a):
        return arrays.cast(<ndarray>a, typenum)
    if is_unresolved(a):
        return cast(resolved(a), typenum)
    return a if (<cnp.dtype>a.dtype).type_num == typenum else basics.cast(a, PyArray_DescrFromType(typenum))


cdef object zeros_beside(object a, tuple shape, int typenum):
    a = behind(a)
    return arrays.zeros(shape, typenum) if is_on_cpu(a) else basics.zeros(a, shape, PyArray_DescrFromType(typenum))


cdef int copy_into(object target, object values) except -1:
    if is_on_cpu(target) and is_on_cpu(values):
        return arrays.copy_array(<ndarray>target, <ndarray>values)
    if is_unresolved(target) or is_unresolved(values):
        copying.copy_into(target, values)
        return 0
    basics.copy_into(target, values)
    return 0


cdef bint may_overlap(object a, object b) except -1:
    if is_on_cpu(a) and is_on_cpu(b):
        return arrays.may_overlap(<ndarray>a, <ndarray>b)
    if is_unresolved(a) or is_unresolved(b):
        return may_overlap(behind(a), behind(b))
    return basics.may_overlap(a, b)


cdef inline bint all_on_cpu(list given) noexcept:
    for array in given:
        if not is_on_cpu(array):
            return False
    return True


cdef inline list all_resolved(list given):
    return [resolved(array) for array in given]


cdef object concatenate(list given, int axis, int typenum):
    if all_on_cpu(given):
        return arrays.concatenate(given, axis, typenum)
    given = all_resolved(given)
    if all_on_cpu(given):
        return arrays.concatenate(given, axis, typenum)
    return gpu_forms.run(basics.concatenate, given, (axis, PyArray_DescrFromType(typenum)))


cdef object stack(list given, int axis, int typenum):
    if all_on_cpu(given):
        return arrays.stack(given, axis, typenum)
    given = all_resolved(given)
    if all_on_cpu(given):
        return arrays.stack(given, axis, typenum)
    return gpu_forms.run(basics.stack, given, (axis, PyArray_DescrFromType(typenum)))


cdef inline object as_descr(int typenum):
    return None if typenum < 0 else PyArray_DescrFromType(typenum)


cdef object sum(object a, tuple axes, bint keepdim, int typenum):
    if is_on_cpu(a):
        return reduce.sum(<ndarray>a, axes, keepdim, typenum)
    if is_unresolved(a):
        return sum(resolved(a), axes, keepdim, typenum)
    return gpu_forms.run(sum_kernel, (a,), (axes, keepdim, as_descr(typenum)))


cdef object mean(object a, tuple axes, bint keepdim, int typenum):
    if is_on_cpu(a):
        return reduce.mean(<ndarray>a, axes, keepdim, typenum)
    if is_unresolved(a):
        return mean(resolved(a), axes, keepdim, typenum)
    return gpu_forms.run(mean_kernel, (a,), (axes, keepdim, as_descr(typenum)))


cdef object sum_to(object a, tuple shape):
    a = resolved(a)
    return reduce.sum_to(<ndarray>a, shape) if is_on_cpu(a) else gpu_forms.run(sum_to_kernel, (a,), (shape,))


cdef object swap_last(object a):
    cdef int ndim = ndim_of(a)
    return PyArray_SwapAxes(<ndarray>a, ndim - 2, ndim - 1) if is_on_cpu(a) else a.swapaxes(-2, -1)


cdef object matmul(object a, object b):
    if is_on_cpu(a) and is_on_cpu(b):
        return blas.matmul(<ndarray>a, <ndarray>b)
    if is_unresolved(a) or is_unresolved(b):
        return matmul(resolved(a), resolved(b))
    return gpu_forms.run(matmul_kernel, (a, b), ())


cdef object addmm(object bias, object a, object b):
    if is_on_cpu(a) and is_on_cpu(b) and is_on_cpu(bias):
        return blas.addmm(<ndarray>bias, <ndarray>a, <ndarray>b)
    if is_unresolved(a) or is_unresolved(b) or is_unresolved(bias):
        return addmm(resolved(bias), resolved(a), resolved(b))
    return gpu_forms.run(addmm_kernel, (bias, a, b), ())
