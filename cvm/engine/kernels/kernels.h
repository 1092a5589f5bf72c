// What every instruction set offers: tables of functions. Only plain C types in these headers, because the files that
// implement them are compiled for different processors and must share no inline code.
#pragma once

#include "kernels/depthwise.h"
#include "kernels/elements.h"
#include "kernels/finish.h"
#include "kernels/lookups.h"
#include "kernels/pooling.h"
#include "kernels/products.h"

namespace cvm {

// Three planes of bytes, `plane` apart, to `count` pixels of three bytes side by side, all of them ^ flip.
using ThreePlanes = void (*)(const uint8_t* from, int64_t plane, uint8_t* to, int64_t count, uint8_t flip);

struct Kernels {
  const char* name;
  const ElementKernels* elements;
  const ProductKernels* products;
  const DepthwiseKernels* depthwise;
  const PoolingKernels* pooling;
  const FinishKernels* finish;
  const LookupKernels* lookups;
  bool short_bytes;  // whether they have ScaleForm::short_bytes, and DepthwiseScale::offset: not where a long rescale is as fast
  ThreePlanes three_planes = nullptr;  // or none
};

}  // namespace cvm
