// CUDA's device functions: math under its many names, loads, atomics.
#pragma once

#define CUDA_ON_CPU_BOTH(f)                       \
  using std::f;                                   \
  inline float f(float16 x) { return std::f((float)x); } \
  inline float f(bfloat16 x) { return std::f((float)x); }
CUDA_ON_CPU_BOTH(exp) CUDA_ON_CPU_BOTH(log) CUDA_ON_CPU_BOTH(sqrt) CUDA_ON_CPU_BOTH(sin) CUDA_ON_CPU_BOTH(cos)
CUDA_ON_CPU_BOTH(tan) CUDA_ON_CPU_BOTH(sinh) CUDA_ON_CPU_BOTH(cosh) CUDA_ON_CPU_BOTH(tanh) CUDA_ON_CPU_BOTH(asin)
CUDA_ON_CPU_BOTH(acos) CUDA_ON_CPU_BOTH(atan) CUDA_ON_CPU_BOTH(asinh) CUDA_ON_CPU_BOTH(acosh) CUDA_ON_CPU_BOTH(atanh)
CUDA_ON_CPU_BOTH(exp2) CUDA_ON_CPU_BOTH(expm1) CUDA_ON_CPU_BOTH(log2) CUDA_ON_CPU_BOTH(log10) CUDA_ON_CPU_BOTH(log1p)
CUDA_ON_CPU_BOTH(erf) CUDA_ON_CPU_BOTH(erfc) CUDA_ON_CPU_BOTH(floor) CUDA_ON_CPU_BOTH(ceil) CUDA_ON_CPU_BOTH(trunc)
CUDA_ON_CPU_BOTH(rint) CUDA_ON_CPU_BOTH(round) CUDA_ON_CPU_BOTH(nearbyint) CUDA_ON_CPU_BOTH(fabs) CUDA_ON_CPU_BOTH(cbrt)
CUDA_ON_CPU_BOTH(lgamma) CUDA_ON_CPU_BOTH(tgamma)
using std::abs;
using std::atan2;
using std::copysign;
using std::fma;
using std::fmax;
using std::fmin;
using std::fmod;
using std::frexp;
using std::hypot;
using std::ilogb;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::ldexp;
using std::llrint;
using std::logb;
using std::lrint;
using std::lround;
using std::modf;
using std::nextafter;
using std::pow;
using std::remainder;
using std::signbit;
inline float16 abs(float16 x) { return float16(std::fabs((float)x)); }
inline bfloat16 abs(bfloat16 x) { return bfloat16(std::fabs((float)x)); }
inline bool isnan(float16 x) { return std::isnan((float)x); }
inline bool isnan(bfloat16 x) { return std::isnan((float)x); }
inline bool isinf(float16 x) { return std::isinf((float)x); }
inline bool isinf(bfloat16 x) { return std::isinf((float)x); }
inline bool isfinite(float16 x) { return std::isfinite((float)x); }
inline bool isfinite(bfloat16 x) { return std::isfinite((float)x); }
inline bool signbit(float16 x) { return x.bits >> 15; }
inline bool signbit(bfloat16 x) { return x.bits >> 15; }
// CUDA's min and max accept two integers or floats of any types.
#define CUDA_ON_CPU_ARITHMETIC typename A, typename B, typename = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value>
template <CUDA_ON_CPU_ARITHMETIC>
inline std::common_type_t<A, B> max(A a, B b) {
  typedef std::common_type_t<A, B> C;
  if constexpr (std::is_floating_point<C>::value) return std::fmax((C)a, (C)b);
  else return (C)a > (C)b ? (C)a : (C)b;
}
template <CUDA_ON_CPU_ARITHMETIC>
inline std::common_type_t<A, B> min(A a, B b) {
  typedef std::common_type_t<A, B> C;
  if constexpr (std::is_floating_point<C>::value) return std::fmin((C)a, (C)b);
  else return (C)a < (C)b ? (C)a : (C)b;
}
#define CUDA_ON_CPU_EXTREMA(T)                                                     \
  inline T max(T a, T b) { return T(std::fmax((float)a, (float)b)); }              \
  inline T min(T a, T b) { return T(std::fmin((float)a, (float)b)); }              \
  inline T fmax(T a, T b) { return T(std::fmax((float)a, (float)b)); }             \
  inline T fmin(T a, T b) { return T(std::fmin((float)a, (float)b)); }
CUDA_ON_CPU_EXTREMA(float16)
CUDA_ON_CPU_EXTREMA(bfloat16)

// Most systems declare the names with suffix f in the global namespace, but not all of them on every system.
#define CUDA_ON_CPU_FLOAT(name, expression) inline float name(float x) { return expression; }
CUDA_ON_CPU_FLOAT(__expf, std::exp(x)) CUDA_ON_CPU_FLOAT(__exp10f, std::pow(10.0f, x))
CUDA_ON_CPU_FLOAT(__logf, std::log(x)) CUDA_ON_CPU_FLOAT(__log2f, std::log2(x)) CUDA_ON_CPU_FLOAT(__log10f, std::log10(x))
CUDA_ON_CPU_FLOAT(__sinf, std::sin(x)) CUDA_ON_CPU_FLOAT(__cosf, std::cos(x)) CUDA_ON_CPU_FLOAT(__tanf, std::tan(x))
CUDA_ON_CPU_FLOAT(__tanhf, std::tanh(x)) CUDA_ON_CPU_FLOAT(__saturatef, x > 0 ? (x < 1 ? x : 1) : 0)
CUDA_ON_CPU_FLOAT(rsqrtf, 1 / std::sqrt(x)) CUDA_ON_CPU_FLOAT(__frsqrt_rn, 1 / std::sqrt(x))
CUDA_ON_CPU_FLOAT(__fsqrt_rn, std::sqrt(x)) CUDA_ON_CPU_FLOAT(__frcp_rn, 1 / x)
CUDA_ON_CPU_FLOAT(rcbrtf, 1 / std::cbrt(x))
CUDA_ON_CPU_FLOAT(normcdff, 0.5f * std::erfc(-x * 0.70710678118654752f))
CUDA_ON_CPU_FLOAT(sinpif, std::sin(3.14159265358979f * x)) CUDA_ON_CPU_FLOAT(cospif, std::cos(3.14159265358979f * x))
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline float rsqrt(float16 x) { return 1 / std::sqrt((float)x); }
inline float rsqrt(bfloat16 x) { return 1 / std::sqrt((float)x); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
inline float __powf(float a, float b) { return std::pow(a, b); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }
inline int __float2int_rd(float x) { return (int)std::floor(x); }
inline int __float2int_rz(float x) { return (int)x; }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
#define CUDART_INF_F std::numeric_limits<float>::infinity()
#define CUDART_INF std::numeric_limits<double>::infinity()
#define CUDART_NAN_F std::numeric_limits<float>::quiet_NaN()
#define CUDART_NAN std::numeric_limits<double>::quiet_NaN()

// --- Loads and stores ------------------------------------------------------------------------------

template <typename T> T __ldg(const T* p) { return *p; }
template <typename T> T __ldcs(const T* p) { return *p; }
template <typename T> T __ldcg(const T* p) { return *p; }
template <typename T> T __ldca(const T* p) { return *p; }
template <typename T> void __stcs(T* p, T value) { *p = value; }
template <typename T> void __stcg(T* p, T value) { *p = value; }

// The threads take turns on one core, so plain operations are atomic.
template <typename T>
struct cuda_on_cpu_same { typedef T type; };
#define CUDA_ON_CPU_ATOMIC(name, expression)                               \
  template <typename T>                                                    \
  T name(T* p, typename cuda_on_cpu_same<T>::type value) {                 \
    T old = *p;                                                            \
    *p = expression;                                                       \
    return old;                                                            \
  }
CUDA_ON_CPU_ATOMIC(atomicAdd, (T)(old + value))
CUDA_ON_CPU_ATOMIC(atomicSub, (T)(old - value))
CUDA_ON_CPU_ATOMIC(atomicExch, value)
CUDA_ON_CPU_ATOMIC(atomicMax, old < value ? value : old)
CUDA_ON_CPU_ATOMIC(atomicMin, value < old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicAnd, (T)(old & value))
CUDA_ON_CPU_ATOMIC(atomicOr, (T)(old | value))
CUDA_ON_CPU_ATOMIC(atomicXor, (T)(old ^ value))
CUDA_ON_CPU_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDA_ON_CPU_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T>
T atomicCAS(T* p, typename cuda_on_cpu_same<T>::type expected, typename cuda_on_cpu_same<T>::type value) {
  T old = *p;
  if (old == expected) *p = value;
  return old;
}
