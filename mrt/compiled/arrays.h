// What the functions of mrt._compiled have in common: arrays of numpy's, checked, and code for several processors.
#ifndef MRT_COMPILED_ARRAYS_H_
#define MRT_COMPILED_ARRAYS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

// What is marked so is compiled twice, and the processor's own code is taken. Vectors of other lengths add in the same
// order. A C library other than glibc may not be able to choose.
#if defined(__x86_64__) && defined(__GLIBC__) && (defined(__GNUC__) || defined(__clang__))
#define MRT_CLONED __attribute__((target_clones("avx2", "default")))
#define MRT_INLINE __attribute__((always_inline)) inline
#else
#define MRT_CLONED
#define MRT_INLINE inline
#endif

namespace mrt {

namespace nb = nanobind;

template <typename Number, int Rank>
using Array = nb::ndarray<Number, nb::ndim<Rank>, nb::c_contig, nb::device::cpu>;

inline void require(bool good) {
  if (!good) throw std::invalid_argument("arrays that do not fit each other");
}

}  // namespace mrt

#endif  // MRT_COMPILED_ARRAYS_H_
