"""Fused kernels of neural networks, forward and backward. `axis` is counted from the front."""

cimport numpy as cnp

cpdef cnp.ndarray softmax(cnp.ndarray a, int axis, bint spends=*)
cpdef cnp.ndarray log_softmax(cnp.ndarray a, int axis, bint spends=*)
cpdef cnp.ndarray softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=*)
cpdef cnp.ndarray log_softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=*)

# (N, C) log-probabilities and N targets; reduction 0 none, 1 mean, 2 sum. Gives (loss, total_weight).
cpdef tuple nll(cnp.ndarray logp, cnp.ndarray target, object weight, long long ignore_index, int reduction)
cpdef cnp.ndarray nll_backward(cnp.ndarray grad, cnp.ndarray logp, cnp.ndarray target, object weight,
                               long long ignore_index, int reduction, cnp.ndarray total_weight)

# (N, C) scores and N targets: (loss, total_weight, softmax), and the gradient of the scores.
cpdef tuple cross_entropy(cnp.ndarray x, cnp.ndarray target, object weight, long long ignore_index, int reduction)
cpdef cnp.ndarray cross_entropy_backward(cnp.ndarray grad, cnp.ndarray softmax, cnp.ndarray target, object weight,
                                         long long ignore_index, int reduction, cnp.ndarray total_weight)
