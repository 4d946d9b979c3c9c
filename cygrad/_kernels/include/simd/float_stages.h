/* The float32 stages of vector_math.h, included by it once for each width. */

#define DEFINE_STAGE(STAGE)                                                                                     \
    static VECTORIZED void NAME(STAGE)(const float *x, float *out, Py_ssize_t n)                                     \
    {                                                                                                           \
        FOR_ALL(n, GIVE(out, STAGE_FUNCTION(STAGE##_f32)(TAKE(x)));)                                               \
    }
FLOAT_STAGES(DEFINE_STAGE)
#undef DEFINE_STAGE
