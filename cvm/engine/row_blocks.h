// Rows of a tile for kernels that load blocks of them at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/products.h"

namespace cvm {

// Rows of bytes that lie equally far apart are read where they lie, others are copied side by side.
class RowBlocks {
 public:
  // `depth` is that of a run, a multiple of kBlockDepth; `length` of it are elements of x.
  RowBlocks(const BlockKernels& kernels, std::int64_t runs, std::int64_t depth, std::int64_t length)
      : kernels_(kernels), runs_(runs), depth_(depth), length_(length) {}

  std::int64_t scratch_bytes() const;
  // The blocks of up to kMaxTileRows rows, listed and copied in scratch, which begins at a cache line. `rows` as in ProductTask.
  const RowBlock* list(const void* const* rows, std::int64_t row_count, std::byte* scratch) const;

 private:
  std::int64_t list_bytes() const;
  std::int64_t copy_bytes() const { return kBlockRows * depth_ * kernels_.planes; }

  const BlockKernels& kernels_;
  std::int64_t runs_, depth_, length_;
};

}  // namespace cvm
