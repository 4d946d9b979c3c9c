/* Makes Clang read C as Visual Studio's compiler does; included before all else (cross_compile.py).

   The headers of the system and of Python are read first, as MinGW's. After them, Clang no longer says what it is, and
   what Visual Studio's compiler lacks is an error. */

#define WIN32_LEAN_AND_MEAN
#include <Python.h>
#include <frameobject.h>
#include <pythread.h>
#include <structmember.h>
#include <assert.h>
#include <complex.h>
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <immintrin.h>
#include <intrin.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <process.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The names that windows.h takes, which most files do not include. */
#define SIZE SIZE_OF_WINDOWS
#include <windows.h>
#undef SIZE
#undef FAR
#undef IN
#undef NEAR
#undef OUT
#undef far
#undef near

#undef __GNUC__
#undef __GNUC_MINOR__
#undef __clang__
#undef __MINGW32__
#undef __MINGW64__
#undef __x86_64
#undef __x86_64__
#undef __amd64
#undef __amd64__
#undef __SSE__
#undef __SSE2__
#undef __FMA__
#undef __SIZEOF_INT128__
#undef __STDC_VERSION__
#undef __has_attribute
#undef __has_builtin
#undef complex
#undef I
#define _MSC_VER 1944
#define _MSC_FULL_VER 194435207
#define _M_X64 100
#define _M_AMD64 100
#define _MSVC_TRADITIONAL 0 /* the preprocessor of /Zc:preprocessor */
#define __INTRIN_H          /* Clang's own, which it would read now */

/* What MinGW lacks. C's complex numbers are structures there. */
void __cpuidex(int registers[4], int leaf, int part);
typedef struct { double _Val[2]; } _Dcomplex, _Lcomplex;
typedef struct { float _Val[2]; } _Fcomplex;
#define creal(z) (z)._Val[0]
#define cimag(z) (z)._Val[1]
#define crealf creal
#define cimagf cimag
#define creall creal
#define cimagl cimag

#pragma GCC poison __attribute__ __extension__ __int128 __thread __typeof__ _Complex asm __asm __asm__ typeof
