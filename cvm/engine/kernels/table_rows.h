// Tables of bytes by plain loads, behind an instruction set's own rescales.
#pragma once

#include "kernels/lookups.h"

namespace cvm {
namespace {

constexpr int64_t kColumns = 64;  // at a time, in room of their own: results may take the place of x

template <typename Out>
void look_up_row(const int16_t* entries, int32_t bias, int64_t count, const uint8_t* indices, Out* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(entries[indices[i]] + bias);
}

void table_by_rows(const ElementKernels& elements, const ByteTable& table, const Tile& tile, const int32_t* x, int32_t bias,
                   const ToRows& out) {
  uint8_t indices[kColumns];
  unsigned char* to = out.data;
  for (int64_t row = 0; row < tile.rows; ++row, x += tile.width, to += out.pitch * out.size) {
    for (int64_t column = 0; column < tile.width; column += kColumns) {
      const int64_t count = tile.width - column < kColumns ? tile.width - column : kColumns;
      const FromRows from{reinterpret_cast<const unsigned char*>(x + column), tile.width, 4};
      elements.rescale_rows(table.index, {1, count, tile.channel + column}, from, {indices, count, 1});
      if (out.size == 1) {
        look_up_row(table.entries, bias, count, indices, to + column);
      } else {
        look_up_row(table.entries, bias, count, indices, reinterpret_cast<int32_t*>(to) + column);
      }
    }
  }
}

}  // namespace
}  // namespace cvm
