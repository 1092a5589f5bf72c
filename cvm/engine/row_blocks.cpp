// Blocks of rows: where they lie, or copies of them.
#include "row_blocks.h"

#include <algorithm>

#include "aligned.h"

namespace cvm {
namespace {

std::int64_t distance(const void* from, const void* to) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from));
}

// Whether kBlockRows rows lie equally far apart.
bool equally_far(const void* const* rows) {
  const std::int64_t pitch = distance(rows[0], rows[1]);
  bool same = true;
  for (std::int64_t r = 2; r < kBlockRows; ++r) same &= distance(rows[r - 1], rows[r]) == pitch;
  return same;
}

}  // namespace

std::int64_t RowBlocks::list_bytes() const {
  return whole_lines(runs_ * kTileBlocks * static_cast<std::int64_t>(sizeof(RowBlock)));
}

std::int64_t RowBlocks::scratch_bytes() const { return list_bytes() + runs_ * kTileBlocks * copy_bytes(); }

const RowBlock* RowBlocks::list(const void* const* rows, std::int64_t row_count, std::byte* scratch) const {
  RowBlock* const blocks = reinterpret_cast<RowBlock*>(scratch);
  std::uint8_t* copy = reinterpret_cast<std::uint8_t*>(scratch + list_bytes());
  for (std::int64_t run = 0; run < runs_; ++run, rows += kMaxTileRows) {
    for (std::int64_t row = 0; row < row_count; row += kBlockRows) {
      const void* const* first = rows + row;
      RowBlock& block = blocks[run * kTileBlocks + row / kBlockRows];
      const std::int64_t count = std::min(kBlockRows, row_count - row);
      if (kernels_.planes == 1 && count == kBlockRows && equally_far(first)) {
        block = {static_cast<const std::uint8_t*>(first[0]), distance(first[0], first[1]), kBlockDepth};
      } else {
        kernels_.copy(first, count, length_, copy);
        block = {copy, kBlockDepth, kernels_.planes * kPlane};
        copy += copy_bytes();
      }
    }
  }
  return blocks;
}

}  // namespace cvm
