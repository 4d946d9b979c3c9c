"""Losses on GPUs that are not elementwise; takes the arguments of `_kernels/cpu/loss/losses.py`."""

from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.launch.program import wide_type
from cygrad._kernels.gpu.launch.row_program import WARP, RowProgram

_MULTILABEL_MARGIN = RowProgram(
    "multilabel_margin",
    """
// A warp for each row: one label after the other with all that are none.
extern "C" __global__ void multilabel_margin(const T* a, const whole* target, W* losses, W* slopes, T* is_label,
                                             whole rows, whole n) {
    whole row = blockIdx.x;
    const T* x = a + row * n;
    const whole* labels = target + row * n;
    T* mine = is_label + row * n;
    W *slope = slopes + row * n, loss = 0;
    for (whole i = threadIdx.x; i < n; i += blockDim.x) { mine[i] = T(0.0f); slope[i] = 0; }
    __syncwarp();
    if (!threadIdx.x)
        for (whole k = 0; k < n && labels[k] >= 0; k++) if (labels[k] < n) mine[labels[k]] = T(1.0f);
    __syncwarp();
    for (whole k = 0; k < n && labels[k] >= 0; k++) {
        W own = labels[k] < n ? W(x[labels[k]]) : nothing(W()), count = 0;
        for (whole i = threadIdx.x; i < n; i += blockDim.x) {
            W gap = W(1) - own + W(x[i]);
            if (W(mine[i]) == W(0) && !(gap <= W(0))) { loss += gap; slope[i] += W(1); count += W(1); }
        }
        count = over_row(count, Add());
        if (!threadIdx.x && labels[k] < n) slope[labels[k]] -= count;
        __syncwarp();
    }
    loss = over_row(loss, Add());
    if (!threadIdx.x) losses[row] = loss / W(n);
    for (whole i = threadIdx.x; i < n; i += blockDim.x) slope[i] /= W(n);
}
""",
)


def multilabel_margin(x, target):
    """Return (losses of the rows, their derivatives, which classes are labels)."""
    wide, (rows, n) = wide_type(x.dtype), x.shape
    losses, slopes = cupy().zeros(rows, wide), cupy().zeros(x.shape, wide)
    is_label = cupy().zeros(x.shape, x.dtype)
    if x.size:
        args = dense(x), dense(target), losses, slopes, is_label, rows, n
        _MULTILABEL_MARGIN.launch(x.dtype, rows, WARP, args, ITEMS=0, PACK=1, MOST=WARP, ALIGNED=0)
    return losses.astype(x.dtype, copy=False), slopes.astype(x.dtype, copy=False), is_label
