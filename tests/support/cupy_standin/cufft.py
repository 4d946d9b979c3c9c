"""cuFFT's plans, `cupy.cuda.cufft`: as strict about addresses, inputs and streams as the library is."""

import math

import numpy as np

from . import memory, state

CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C
CUFFT_FORWARD, CUFFT_INVERSE = -1, 1
TYPES = {CUFFT_C2C: "FF", CUFFT_R2C: "fF", CUFFT_C2R: "Ff", CUFFT_Z2Z: "DD", CUFFT_D2Z: "dD", CUFFT_Z2D: "Dd"}
LARGEST = 2**31 - 1  # cuFFT's numbers are C's int


class PlanNd:
    """`cupy.cuda.cufft.PlanNd`: a batch of transforms with the layout of `cufftPlanMany`."""

    def __init__(
        self, shape, inembed, istride, idist, onembed, ostride, odist, fft_type, batch, order, last_axis, last_size
    ):
        numbers = [*shape, *inembed, istride, idist, *onembed, ostride, odist, batch]
        if not all(type(n) is int and 1 <= n <= LARGEST for n in numbers):
            raise OverflowError(f"value too large to convert to int, or not positive: {numbers}")
        if not 1 <= len(shape) == len(inembed) == len(onembed) <= 3:
            raise RuntimeError("CUFFT_INVALID_SIZE")
        self.shape, self.fft_type, self.order = tuple(shape), fft_type, order
        self.last_axis, self.last_size, self.handle = last_axis, last_size, id(self)
        self._batch = batch
        self._layouts = (inembed, istride, idist), (onembed, ostride, odist)
        self._halved = *self.shape[:-1], self.shape[-1] // 2 + 1
        size = max(TYPES[fft_type], key=lambda char: np.dtype(char).itemsize)
        self.work_area = memory.alloc(batch * math.prod(shape) * np.dtype(size).itemsize)

    def fft(self, a, out, direction):
        types = TYPES[self.fft_type]
        assert (a.dtype.char, out.dtype.char) == tuple(types), "cuFFT would misread its arrays"
        if not a.dtype.char.isupper() and a.data.ptr % (2 * a.dtype.itemsize):
            raise RuntimeError("CUFFT_INVALID_VALUE: the stand-in's cuFFT takes no such address")
        shapes = [self.shape if types.isupper() or one.islower() else self._halved for one in types]
        source, target = map(self._seen, (a, out), shapes, self._layouts)
        axes = tuple(range(1, source.ndim))
        used_up = types[1].islower()
        assert source.ctypes.data != target.ctypes.data or not used_up, "not in place"

        def work():
            with np.errstate(all="ignore"):
                if used_up:
                    target[...] = np.fft.irfftn(source, self.shape, axes, "forward")
                    source[...] = np.nan  # the library works in its input
                elif types[0].islower():
                    target[...] = np.fft.rfftn(source, axes=axes)
                elif direction == CUFFT_FORWARD:
                    target[...] = np.fft.fftn(source, axes=axes)
                else:
                    target[...] = np.fft.ifftn(source, axes=axes, norm="forward")

        mem = self.work_area.mem
        state.launch("cufft", work, [a.data.mem, out.data.mem, mem])
        if state.capturing() is None:
            mem._made = state.made_now()  # it is written, too

    def _seen(self, array, shape, layout):
        """The array of a batch of transforms that the library takes from an address and a layout."""
        embed, stride, distance = layout
        steps = [stride * math.prod(embed[axis + 1 :]) for axis in range(len(embed))]
        strides = [array.dtype.itemsize * step for step in (distance, *steps)]
        pointer = array.data
        return np.ndarray((self._batch, *shape), array.dtype, pointer.mem._bytes, pointer._offset, strides)
