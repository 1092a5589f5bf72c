// The one primitive of movement: a box of elements copied from one set of strides to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "step.h"

namespace cvm {

// Strides count elements; `from` may be 0 (the same element again) or negative (backwards).
struct CopyAxis {
  std::int64_t count = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// Where element [j, i] of a tile lies: j steps of the second axis and i steps of the inner one.
struct CopyTile {
  CopyAxis second, inner;
};

class StridedCopy {
 public:
  // Axes come outermost first. `from_start` and `to_start` are the places of element [0, 0, ...] in elements; `flip` is
  // as flip_between has it; `three_planes` may be null. Every address that the axes reach must be valid.
  StridedCopy(std::vector<CopyAxis> axes, std::int64_t from_start, std::int64_t to_start, std::int64_t element_bytes,
              std::uint64_t flip, ThreePlanes three_planes);

  std::int64_t pieces() const { return groups_ * second_tiles_ * inner_tiles_; }
  void run(const std::byte* from, std::byte* to, Part part) const;

 private:
  using TileBody = void (*)(const CopyTile& tile, const std::byte* from, std::byte* to, std::uint64_t flip);
  template <typename T>
  void choose_body();
  void choose_second();
  void cut_sides();

  std::vector<CopyAxis> outer_;
  CopyAxis second_{1, 0, 0}, inner_{1, 0, 0};
  std::int64_t from_start_, to_start_, element_bytes_;
  std::uint64_t flip_;
  TileBody body_ = nullptr;
  ThreePlanes three_planes_;  // in place of the body where tiles are such pixels, else null
  std::int64_t outers_ = 1;  // indices of the outer axes together
  std::int64_t outers_a_piece_ = 1, groups_ = 1;
  std::int64_t height_ = 1, width_ = 1;  // of a tile, on the second and the inner axis
  std::int64_t second_tiles_ = 1, inner_tiles_ = 1;
};

}  // namespace cvm
