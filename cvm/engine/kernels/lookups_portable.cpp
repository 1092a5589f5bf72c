// Look-ups in plain C++, stage by stage: right on any processor, and what the others are compared with.
#include "kernels/lookups.h"

#include "kernels/table_rows.h"

namespace cvm {

extern const ElementKernels kElementsPortable;

namespace {

void gate(const Gate& g, const Tile& tile, const int32_t* x, int32_t* out) {
  const ElementKernels& elements = kElementsPortable;
  int32_t places[kColumns], values[kColumns];
  for (int64_t row = 0; row < tile.rows; ++row, x += tile.width, out += tile.width) {
    for (int64_t column = 0; column < tile.width; column += kColumns) {
      const int64_t count = tile.width - column < kColumns ? tile.width - column : kColumns;
      const Tile strip{1, count, tile.channel + column};
      elements.rescale(g.place, strip, x + column, places);
      elements.rescale(g.value, strip, x + column, values);
      elements.interpolate(g.points, count, places, places);
      elements.mul_shifted(7, strip, values, {places, count, false}, out + column);
    }
  }
}

void table(const ByteTable& t, const Tile& tile, const int32_t* x, int32_t bias, const ToRows& out) {
  table_by_rows(kElementsPortable, t, tile, x, bias, out);
}

}  // namespace

extern const LookupKernels kLookupsPortable;
const LookupKernels kLookupsPortable = {gate, table};

}  // namespace cvm
