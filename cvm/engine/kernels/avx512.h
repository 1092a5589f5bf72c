// The intrinsics of the avx512vnni files: the compiler's own or, in a build with CVM_EMULATE_AVX512, others of the same
// names that compute the same bytes on a processor without AVX-512.
#pragma once

#if defined(CVM_EMULATE_AVX512)
#include "kernels/avx512_emulated.h"
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12 warns of its own _mm512_undefined_epi32
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
