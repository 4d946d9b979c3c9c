"""Tensor cores, for programs: products of small matrices by a warp, and what brings their elements into registers.

A chunk of 16 bytes is what a thread copies at once. Two chunks are one step of a product along the inner dimension: 16
elements of half precision, or 8 of float32, which is multiplied as TF32. A warp's product adds a (16, step) times
b (step, 8) to c (16, 8). Of these, lane l holds c[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2] as element e.
"""

from cygrad._kernels.device.cupy_library import cupy, current_device

TYPES = "float16", "bfloat16", "float32"
_LEAST = 80  # compute capability from which on there are all these instructions

# Of a, the lane holds word l % 4 + i / 2 * 4 of row l / 4 + i % 2 * 8 as a[i]; of b, word l % 4 + i * 4 of row l / 4.
PRODUCT = """
__device__ inline void mma(float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k" DEPTH ".row.col.f32." KIND "." KIND ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""
# A load is of four matrices of eight rows of one chunk each: lane l gives the address of row l % 8 of matrix l / 8, and
# gets the word l % 4 of row l / 4 of each; with `load_turned`, two neighbors in column l / 4. Copies arrive by groups.
COPIES = """
#define EACH (int)(16 / sizeof(T))
struct alignas(16) Chunk { T v[EACH]; };
__device__ inline void load(unsigned* a, const Chunk* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
}
__device__ inline void load_turned(unsigned* a, const Chunk* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
}
// Begins to copy a chunk into shared memory, or zeros.
__device__ inline void copy(Chunk* to, const Chunk* from, bool is_there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
        :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the last groups of this thread's copies have arrived.
template <int LAST> __device__ inline void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" :: "n"(LAST) : "memory");
}
"""
# Elements of registers as factors: float32 rounded to TF32, or two numbers in half precision as one word.
ROUNDED = """
#if IS_SINGLE
__device__ inline unsigned tf32(float given) {
    unsigned made;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(made) : "f"(given));
    return made;
}
#else
__device__ inline unsigned both(float low, float high) {
    unsigned made;
    asm("cvt.rn." KIND "x2.f32 %0, %1, %2;" : "=r"(made) : "f"(high), "f"(low));
    return made;
}
#endif
"""


def macros(dtype):
    """Return the macros that `PRODUCT` and `ROUNDED` need for a type."""
    kind = {"float16": "f16", "bfloat16": "bf16"}.get(dtype.name, "tf32")
    return {"KIND": f'"{kind}"', "DEPTH": '"16"' if dtype.itemsize == 2 else '"8"'}


def takes(dtype):
    """Whether the current GPU's tensor cores multiply this type."""
    return dtype.name in TYPES and int(cupy().cuda.Device(current_device()).compute_capability) >= _LEAST
