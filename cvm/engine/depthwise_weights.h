// The weights, biases and scales of depthwise steps in blocks of channels, as its kernels take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "geometry.h"
#include "kernels/depthwise.h"
#include "scale_blocks.h"
#include "stage.h"

namespace cvm {

class DepthwiseWeights final : public Packing {
 public:
  // `taps`: the tap in each slot, or -1 for none. `run_channels`: so many of the first channels are taken by runs of blocks, those of
  // x's pixels.
  static const DepthwiseWeights& of(const StepCall& call, const ConvGeometry& geometry, std::span<const std::int64_t> taps,
                                    std::int64_t run_channels);
  DepthwiseWeights(const StepCall& call, const ConvGeometry& geometry, std::span<const std::int64_t> taps,
                   std::int64_t run_channels);

  const std::byte* weights(std::int64_t block) const { return data() + block * block_bytes_; }
  // Of each lane, as kernels add them.
  std::vector<std::int32_t> in_lanes(std::span<const std::int64_t> biases) const;

 private:
  std::vector<std::int64_t> channels_;  // of the lanes
  std::int64_t block_bytes_;
};

// One bias for each output: zero points are summed as if they were zero.
std::vector<std::int64_t> biases_without_zero_point(const StepCall& call, const ConvGeometry& geometry);

// The runs of pixels of these kernels.
inline const DepthwiseRuns& runs_of(const DepthwiseKernels& kernels, bool words) { return words ? kernels.runs16 : kernels.runs8; }

class DepthwiseScales {
 public:
  // Whether kernels take the rescale in registers: to bytes or to 16 bits, whatever its result has.
  static bool fits(const Stage& rescale);
  DepthwiseScales(const Stage& rescale, std::span<const std::int64_t> biases, const DepthwiseKernels& kernels, const DepthwiseRuns& runs,
                  std::int64_t run_channels);

  // `low` and `high` in plain form.
  DepthwiseScale at(std::int64_t block, std::int32_t low, std::int32_t high) const;

 private:
  // As they are, or by halves.
  void add_short(const ShortScale& scale);
  void add_wide(std::int32_t multiplier, std::int32_t shift, std::int64_t bias);

  std::int64_t lanes_;
  std::int32_t stored_;  // what is added to plain integers
  std::int32_t zero_point_;
  bool by_halves_ = false;
  std::vector<std::int32_t> multiplier_, shift_;
  std::vector<std::int32_t> offset_;                    // where products fit 32 bits, and by halves
  std::vector<std::int64_t> even_offset_, odd_offset_;  // elsewhere
};

}  // namespace cvm
