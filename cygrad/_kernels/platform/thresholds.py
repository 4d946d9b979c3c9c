"""Size thresholds that several kernels share. A threshold with a single user is defined beside its use.

Those of compiled loops are in `thread_pool.pxd`. Results depend on thresholds that split a sum, by rounding.
"""

PIECE = 1 << 14  # elements per chunk that a thread takes, in loops called by number
SMALL_PRODUCT = 1 << 18  # multiplications in a matrix product for which BLAS does not start threads
MOST_SUMS = 16  # maximum number of partial sums of a filter gradient, which are added at the end
