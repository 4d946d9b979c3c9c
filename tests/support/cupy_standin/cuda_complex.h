// Complex numbers as provided to CuPy's elementwise kernels and to sources that include cupy/complex.cuh.
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
