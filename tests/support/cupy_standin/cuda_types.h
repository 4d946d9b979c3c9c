// CUDA's and CuPy's types: half precision, bfloat16, vectors, complex numbers.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

namespace cuda_on_cpu {

inline float bits_to_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

inline float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
  if (exponent == 31) return bits_to_float(sign | 0x7F800000 | mantissa << 13);
  if (exponent) return bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
  float small = std::ldexp((float)mantissa, -24);
  return sign ? -small : small;
}
// Rounds to nearest, ties to even.
inline uint16_t float_to_half(float value) {
  uint32_t bits = float_to_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (rest >= 0x47800000) return (uint16_t)(sign | 0x7C00);
  if (rest < 0x38800000) return (uint16_t)(sign | (uint32_t)std::nearbyint(std::ldexp(bits_to_float(rest), 24)));
  uint32_t rounded = rest - 0x38000000 + 0xFFF + (rest >> 13 & 1);
  return (uint16_t)(sign | rounded >> 13);
}
inline float brain_to_float(uint16_t b) { return bits_to_float((uint32_t)b << 16); }
inline uint16_t float_to_brain(float value) {
  uint32_t bits = float_to_bits(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// CUDA's and CuPy's 16-bit classes convert implicitly to and from float, and explicitly from the other types.
template <uint16_t (*pack)(float), float (*unpack)(uint16_t)>
struct Sixteen {
  uint16_t bits;
  Sixteen() = default;
  Sixteen(float value) : bits(pack(value)) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value && !std::is_same<T, float>::value>>
  explicit Sixteen(T value) : bits(pack((float)value)) {}
  operator float() const { return unpack(bits); }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  Sixteen& operator=(T value) {
    bits = pack((float)value);
    return *this;
  }
  template <typename T> Sixteen& operator+=(T value) { return *this = (float)*this + (float)value; }
  template <typename T> Sixteen& operator-=(T value) { return *this = (float)*this - (float)value; }
  template <typename T> Sixteen& operator*=(T value) { return *this = (float)*this * (float)value; }
  template <typename T> Sixteen& operator/=(T value) { return *this = (float)*this / (float)value; }
};
typedef Sixteen<float_to_half, half_to_float> Half;
typedef Sixteen<float_to_brain, brain_to_float> Brain;

}  // namespace cuda_on_cpu

typedef cuda_on_cpu::Half __half;
typedef cuda_on_cpu::Half half;
typedef cuda_on_cpu::Half float16;
typedef cuda_on_cpu::Brain __nv_bfloat16;
typedef cuda_on_cpu::Brain nv_bfloat16;
typedef cuda_on_cpu::Brain bfloat16;

#define CUDA_ON_CPU_SIXTEEN(T, name, from, to)                             \
  inline T __float2##name(float x) { return T(x); }                        \
  inline T __float2##name##_rn(float x) { return T(x); }                   \
  inline T __double2##name(double x) { return T((float)x); }               \
  inline float __##name##2float(T x) { return (float)x; }                  \
  inline T __ushort_as_##name(unsigned short x) { T r; r.bits = x; return r; } \
  inline unsigned short __##name##_as_ushort(T x) { return x.bits; }
CUDA_ON_CPU_SIXTEEN(__half, half, , )
CUDA_ON_CPU_SIXTEEN(__nv_bfloat16, bfloat16, , )
#define CUDA_ON_CPU_OPERATORS(T)                                               \
  inline T __hadd(T a, T b) { return T((float)a + (float)b); }                 \
  inline T __hsub(T a, T b) { return T((float)a - (float)b); }                 \
  inline T __hmul(T a, T b) { return T((float)a * (float)b); }                 \
  inline T __hdiv(T a, T b) { return T((float)a / (float)b); }                 \
  inline T __hfma(T a, T b, T c) { return T(std::fma((float)a, (float)b, (float)c)); } \
  inline T __hmax(T a, T b) { return T(std::fmax((float)a, (float)b)); }       \
  inline T __hmin(T a, T b) { return T(std::fmin((float)a, (float)b)); }       \
  inline T __habs(T a) { return T(std::fabs((float)a)); }                      \
  inline T __hneg(T a) { return T(-(float)a); }                                \
  inline bool __hisnan(T a) { return std::isnan((float)a); }                   \
  inline T hexp(T a) { return T(std::exp((float)a)); }                         \
  inline T hlog(T a) { return T(std::log((float)a)); }                         \
  inline T hsqrt(T a) { return T(std::sqrt((float)a)); }                       \
  inline T hrsqrt(T a) { return T(1 / std::sqrt((float)a)); }
CUDA_ON_CPU_OPERATORS(__half)
CUDA_ON_CPU_OPERATORS(__nv_bfloat16)

// --- Vectors ---------------------------------------------------------------------------------------

#define CUDA_ON_CPU_VECTORS(T, name, a2, a4)                                     \
  struct name##1 { T x; };                                                       \
  struct alignas(a2) name##2 { T x, y; };                                        \
  struct name##3 { T x, y, z; };                                                 \
  struct alignas(a4) name##4 { T x, y, z, w; };                                  \
  inline name##1 make_##name##1(T x) { return {x}; }                             \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                     \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }             \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_ON_CPU_VECTORS(float, float, 8, 16)
CUDA_ON_CPU_VECTORS(double, double, 16, 16)
CUDA_ON_CPU_VECTORS(int, int, 8, 16)
CUDA_ON_CPU_VECTORS(unsigned int, uint, 8, 16)
CUDA_ON_CPU_VECTORS(short, short, 4, 8)
CUDA_ON_CPU_VECTORS(unsigned short, ushort, 4, 8)
CUDA_ON_CPU_VECTORS(signed char, char, 2, 4)
CUDA_ON_CPU_VECTORS(unsigned char, uchar, 2, 4)
CUDA_ON_CPU_VECTORS(long long, longlong, 16, 16)
CUDA_ON_CPU_VECTORS(unsigned long long, ulonglong, 16, 16)
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(4) __half2 { __half x, y; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;
inline float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }

// --- Bits ------------------------------------------------------------------------------------------

inline float __int_as_float(int x) { return cuda_on_cpu::bits_to_float((uint32_t)x); }
inline int __float_as_int(float x) { return (int)cuda_on_cpu::float_to_bits(x); }
inline float __uint_as_float(unsigned x) { return cuda_on_cpu::bits_to_float(x); }
inline unsigned __float_as_uint(float x) { return cuda_on_cpu::float_to_bits(x); }
inline long long __double_as_longlong(double x) { long long r; memcpy(&r, &x, 8); return r; }
inline double __longlong_as_double(long long x) { double r; memcpy(&r, &x, 8); return r; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((int64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
