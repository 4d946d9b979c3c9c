"""Fused neural network kernels, forward and backward. `axis` must be non-negative."""

cimport numpy as cnp

cpdef cnp.ndarray softmax(cnp.ndarray a, int axis, bint spends=*)
cpdef cnp.ndarray log_softmax(cnp.ndarray a, int axis, bint spends=*)
cpdef cnp.ndarray softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=*)
cpdef cnp.ndarray log_softmax_backward(cnp.ndarray grad, cnp.ndarray out, int axis, bint spends=*)

# (N, C) log-probabilities and N targets; reduction 0 none, 1 mean, 2 sum. Returns (loss, total_weight).
cpdef tuple nll(cnp.ndarray logp, cnp.ndarray target, object weight, long long ignore_index, int reduction)
cpdef cnp.ndarray nll_backward(cnp.ndarray grad, cnp.ndarray logp, cnp.ndarray target, object weight,
                               long long ignore_index, int reduction, cnp.ndarray total_weight)

# (N, C) logits and N targets. Returns (loss, total_weight, softmax); the backward returns the gradient of the logits.
cpdef tuple cross_entropy(cnp.ndarray x, cnp.ndarray target, object weight, long long ignore_index, int reduction)
cpdef cnp.ndarray cross_entropy_backward(cnp.ndarray grad, cnp.ndarray softmax, cnp.ndarray target, object weight,
                                         long long ignore_index, int reduction, cnp.ndarray total_weight)
