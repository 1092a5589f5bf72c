// Sums of products with AMX: tdpbusd multiplies 16 rows of 64 bytes by 16 columns of signed bytes, 16384 products in an instruction,
// and adds them to 32 bits without saturating. Its registers hold two blocks of rows, two vectors of columns and their sums.
#include "kernels/amx.h"
#include "kernels/products_avx512.h"

namespace cvm {

extern const ProductKernels kProductsAvx512vnni, kWordBlocksAmx, kWholeBlocksAmx;

namespace {

void copy(const void* const* rows, int64_t row_count, int64_t length, uint8_t* to) {
  for (int64_t r = 0; r < row_count; ++r, to += kBlockDepth) {
    const uint8_t* from = static_cast<const uint8_t*>(rows[r]);
    for (int64_t k = 0; k < length; k += kBlockDepth) _mm512_store_si512(to + k * kBlockRows, load(from + k));
  }
}

// The sums of B blocks of rows and V vectors of columns, to rows of V vectors.
template <int B, int V>
CVM_NEVER_INLINE void add_products(const ProductTask& task, int32_t* sums) {
  // A pitch of 0 loads one row of biases sixteen times.
  _tile_loadd(0, task.bias, 0);
  if constexpr (V == 2) _tile_loadd(1, task.bias + kLanes, 0);
  if constexpr (B == 2) _tile_loadd(2, task.bias, 0);
  if constexpr (B == 2 && V == 2) _tile_loadd(3, task.bias + kLanes, 0);
  constexpr int64_t kPitch = V * 64;
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
  for (int64_t tap = 0; tap < task.taps; ++tap) {
    RowBlock first = task.blocks[tap * kTileBlocks], second = task.blocks[tap * kTileBlocks + B - 1];
    for (int64_t k = 0; k < task.depth; k += kBlockDepth) {
      fetch_step<kBlockDepth / kBlockStep * kPitch>(weights);
      _tile_loadd(6, weights, kPitch);
      if constexpr (V == 2) _tile_loadd(7, weights + 64, kPitch);
      _tile_loadd(4, first.from, first.pitch);
      if constexpr (B == 2) _tile_loadd(5, second.from, second.pitch);
      _tile_dpbusd(0, 4, 6);
      if constexpr (V == 2) _tile_dpbusd(1, 4, 7);
      if constexpr (B == 2) _tile_dpbusd(2, 5, 6);
      if constexpr (B == 2 && V == 2) _tile_dpbusd(3, 5, 7);
      weights += kBlockDepth / kBlockStep * kPitch;
      first.from += first.step;
      second.from += second.step;
    }
  }
  _tile_stored(0, sums, kPitch);
  if constexpr (V == 2) _tile_stored(1, sums + kLanes, kPitch);
  sums += kBlockRows * V * kLanes;
  if constexpr (B == 2) _tile_stored(2, sums, kPitch);
  if constexpr (B == 2 && V == 2) _tile_stored(3, sums + kLanes, kPitch);
}

// Sums of a whole tile, in memory.
struct Stored {
  const int32_t* sums;

  template <int R, int V>
  CVM_ALWAYS_INLINE void take(int64_t row, __m512i (&to)[R][V]) const {
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) to[r][v] = load(sums + ((row + r) * V + v) * kLanes);
    }
  }
};

struct Tiles {
  template <typename Body>
  static void for_shares(const ProductTask& task, Body body) {
    const bool two = task.vectors == 2, second = task.row_count > kBlockRows;
    alignas(64) int32_t sums[kMaxTileRows * kMaxPanelColumns];
    if (two) {
      second ? add_products<2, 2>(task, sums) : add_products<1, 2>(task, sums);
    } else {
      second ? add_products<2, 1>(task, sums) : add_products<1, 1>(task, sums);
    }
    for (int64_t row = 0; row < task.row_count; row += kRows) {
      const int64_t rest = task.row_count - row;
      for_rows(Stored{sums}, rest < kRows ? rest : kRows, two, row, body);
    }
  }
};

// Four sums of two blocks and two vectors, and operands that stay where they are.
int64_t peak(int64_t rounds) {
  static const uint8_t ones[kBlockRows * kBlockDepth] = {1};
  begin_tiles();
  _tile_loadd(4, ones, kBlockDepth);
  _tile_loadd(5, ones, kBlockDepth);
  _tile_loadd(6, ones, kBlockDepth);
  _tile_loadd(7, ones, kBlockDepth);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  end_tiles();
  return rounds * 4 * kBlockRows * kLanes * kBlockDepth;
}

constexpr BlockKernels kBlocks = {begin_tiles, end_tiles, copy, 1};

ProductKernels kernels() {
  ProductKernels kernels = kProductsAvx512vnni;
  kernels.rows = kMaxTileRows;
  kernels.step8 = kBlockDepth;
  kernels.sums8 = sums_of<Tiles>;
  kernels.bytes8 = bytes_of<Tiles>;
  kernels.residual8 = residual_of<Tiles>;
  kernels.wide8 = wide_of<Tiles>;
  kernels.words8 = words_of<Tiles>;
  kernels.transform_tile = nullptr;  // fewer products of 16-bit integers would take longer
  kernels.untransform_tiles = nullptr;
  kernels.peak = peak;
  kernels.skips = false;
  kernels.by_quads = &kProductsAvx512vnni;
  kernels.blocks = &kBlocks;
  kernels.word_blocks = &kWordBlocksAmx;
  kernels.whole_blocks = &kWholeBlocksAmx;
  return kernels;
}

}  // namespace

extern const ProductKernels kProductsAmx;
const ProductKernels kProductsAmx = kernels();

}  // namespace cvm
