// Tables of bytes by plain loads, behind an instruction set's own rescales.
#pragma once

#include "kernels/lookups.h"

namespace cvm {
namespace {

// A block of indices at a time, in memory of its own because results may overwrite x. Factors are made once for its
// rows.
constexpr int64_t kRowsAtOnce = 32, kColumns = 64;

template <typename Out>
void look_up_rows(const int16_t* entries, int32_t bias, const Tile& block, const uint8_t* indices, Out* out, int64_t pitch) {
  for (int64_t row = 0; row < block.rows; ++row, indices += kColumns, out += pitch) {
    for (int64_t i = 0; i < block.width; ++i) out[i] = static_cast<Out>(entries[indices[i]] + bias);
  }
}

inline int64_t at_most(int64_t count, int64_t most) { return count < most ? count : most; }

void table_by_rows(const ElementKernels& elements, const ByteTable& table, const Tile& tile, const int32_t* x, int32_t bias,
                   const ToRows& out) {
  uint8_t indices[kRowsAtOnce * kColumns];
  for (int64_t row = 0; row < tile.rows; row += kRowsAtOnce) {
    for (int64_t column = 0; column < tile.width; column += kColumns) {
      const Tile block{at_most(tile.rows - row, kRowsAtOnce), at_most(tile.width - column, kColumns), tile.channel + column};
      const FromRows from{reinterpret_cast<const unsigned char*>(x + row * tile.width + column), tile.width, 4};
      elements.rescale_rows(table.index, block, from, {indices, kColumns, 1});
      unsigned char* to = out.data + (row * out.pitch + column) * out.size;
      if (out.size == 1) {
        look_up_rows(table.entries, bias, block, indices, to, out.pitch);
      } else {
        look_up_rows(table.entries, bias, block, indices, reinterpret_cast<int32_t*>(to), out.pitch);
      }
    }
  }
}

}  // namespace
}  // namespace cvm
