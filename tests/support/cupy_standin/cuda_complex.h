// Complex numbers as CuPy's element-wise kernels, and texts that include cupy/complex.cuh, know them.
#pragma once

using std::arg;
using std::complex;
using std::conj;
using std::imag;
using std::real;
template <typename T> bool isnan(complex<T> z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
template <typename T> bool isinf(complex<T> z) { return std::isinf(z.real()) || std::isinf(z.imag()); }
template <typename T> bool isfinite(complex<T> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
namespace thrust { using std::complex; }
