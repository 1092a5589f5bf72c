// Where a depthwise kernel finds its input: a table of pointers to pixels, so that borders cost its inner loop nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "geometry.h"
#include "kernels/depthwise.h"

namespace cvm {

class PixelTable {
 public:
  // `taps`: the tap in each slot, or -1 for none; nullptr in place of it asks for the table of a square.
  PixelTable(const ConvGeometry& geometry, std::int64_t element_bytes, const std::vector<std::int64_t>* taps);

  bool is_square() const { return taps_.empty(); }
  // Of the table for `count` output pixels.
  std::int64_t columns(std::int64_t count) const;
  std::int64_t entries(std::int64_t count) const;
  // For output pixels [first, first + count) of one row.
  void fill(const std::byte* x, std::int64_t row, std::int64_t first, std::int64_t count, const void** table) const;

 private:
  void fill_square(const std::byte* image, std::int64_t top, std::int64_t left, std::int64_t count,
                   const void** table) const;
  void fill_general(const std::byte* image, std::int64_t top, std::int64_t left, std::int64_t count,
                    const void** table) const;
  bool inside(std::int64_t left) const;
  const std::byte* pixel(const std::byte* image, std::int64_t down, std::int64_t right) const;

  ConvGeometry geometry_;
  std::int64_t pixel_bytes_;
  std::vector<std::int64_t> taps_;
  std::vector<std::byte> padding_;  // a pixel of zero points
};

}  // namespace cvm
