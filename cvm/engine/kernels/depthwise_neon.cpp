// Depthwise sums of every AArch64 processor: products of 16-bit integers.
#include "kernels/depthwise_neon.h"

namespace cvm {

extern const DepthwiseKernels kDepthwiseNeon;
const DepthwiseKernels kDepthwiseNeon = {
    .lanes = kChannels,
    .order = nullptr,
    .step8 = 1,
    .step16 = 1,
    .wide_weights = true,
    .square = nullptr,
    .square_slots = 0,
    .sums8 = word_sums<uint8_t>,
    .sums16 = word_sums<int16_t>,
    .bytes8 = word_bytes<uint8_t>,
    .bytes16 = word_bytes<int16_t>,
    .run = 1,
    .run_order = nullptr,
    .run8 = nullptr,
    .adds_bias = true,
};

}  // namespace cvm
