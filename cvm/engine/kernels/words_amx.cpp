// Sums of products of 16-bit integers with AMX, which multiplies bytes: x = 256 * high + low, and so are weights of more than 8 bits.
// Products of low and of high bytes have sums of their own, in 32 bits. Shifted and added, modulo 2^32, they are the sum of the whole products.
#include "kernels/amx.h"
#include "kernels/products_avx512.h"

namespace cvm {

extern const ProductKernels kProductsAvx512vnni;

namespace {

// So many 16-bit integers, as far as there are any, and zeros.
CVM_ALWAYS_INLINE __m512i words_at(const int16_t* from, int64_t count) {
  const __mmask32 mask = count >= 32 ? 0xFFFFFFFFu : count <= 0 ? 0 : (1u << count) - 1;
  return _mm512_maskz_loadu_epi16(mask, from);
}

// The low bytes of 64 integers, and their high bytes.
CVM_ALWAYS_INLINE void store_planes(__m512i first, __m512i second, uint8_t* to) {
  const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), byte = _mm512_set1_epi16(0xFF);
  const __m512i low = _mm512_packus_epi16(_mm512_and_si512(first, byte), _mm512_and_si512(second, byte));
  const __m512i high = _mm512_packs_epi16(_mm512_srai_epi16(first, 8), _mm512_srai_epi16(second, 8));
  _mm512_store_si512(to, _mm512_permutexvar_epi64(order, low));
  _mm512_store_si512(to + kPlane, _mm512_permutexvar_epi64(order, high));
}

void split(const void* const* rows, int64_t row_count, int64_t length, uint8_t* to) {
  for (int64_t r = 0; r < row_count; ++r, to += kBlockDepth) {
    const int16_t* from = static_cast<const int16_t*>(rows[r]);
    uint8_t* next = to;
    for (int64_t k = 0; k < length; k += kBlockDepth, next += 2 * kPlane) {
      store_planes(words_at(from + k, length - k), words_at(from + k + 32, length - k - 32), next);
    }
  }
}

constexpr int64_t kSums = kBlockRows * kMaxPanelColumns;  // of a block of rows, for one shift
constexpr int kMostShifts = 3;

// The sums of a block of rows and V vectors of columns by weights of bytes: those of low bytes of x, then of high ones, in rows of V vectors.
template <int V>
CVM_NEVER_INLINE void add_products(const ProductTask& task, int64_t block, int32_t* sums) {
  constexpr int kPitch = V * 64;
  _tile_loadd(0, task.bias, 0);  // a pitch of 0 loads one row of biases sixteen times
  if constexpr (V == 2) _tile_loadd(1, task.bias + kLanes, 0);
  _tile_zero(2);
  if constexpr (V == 2) _tile_zero(3);
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights);
  for (int64_t tap = 0; tap < task.taps; ++tap) {
    RowBlock x = task.blocks[tap * kTileBlocks + block];
    for (int64_t k = 0; k < task.depth; k += kBlockDepth, x.from += x.step, weights += kBlockDepth / kBlockStep * kPitch) {
      fetch_step<kBlockDepth / kBlockStep * kPitch>(weights);
      _tile_loadd(6, weights, kPitch);
      if constexpr (V == 2) _tile_loadd(7, weights + 64, kPitch);
      _tile_loadd(4, x.from, x.pitch);
      _tile_loadd(5, x.from + kPlane, x.pitch);
      _tile_dpbusd(0, 4, 6);
      if constexpr (V == 2) _tile_dpbusd(1, 4, 7);
      _tile_dpbssd(2, 5, 6);
      if constexpr (V == 2) _tile_dpbssd(3, 5, 7);
    }
  }
  _tile_stored(0, sums, kPitch);
  if constexpr (V == 2) _tile_stored(1, sums + kLanes, kPitch);
  _tile_stored(2, sums + kSums, kPitch);
  if constexpr (V == 2) _tile_stored(3, sums + kSums + kLanes, kPitch);
}

// The same by weights of two bytes, for one of V vectors of columns: sums of products of low bytes, of low and high ones, of high ones.
template <int V>
CVM_NEVER_INLINE void add_whole_products(const ProductTask& task, int64_t block, int v, int32_t* sums) {
  constexpr int kPitch = V * 64;
  constexpr int kStep = kBlockDepth / kBlockStep * kPitch;
  _tile_loadd(0, task.bias + v * kLanes, 0);
  _tile_zero(1);
  _tile_zero(2);
  const uint8_t* weights = static_cast<const uint8_t*>(task.weights) + v * 64;
  for (int64_t tap = 0; tap < task.taps; ++tap) {
    RowBlock x = task.blocks[tap * kTileBlocks + block];
    for (int64_t k = 0; k < task.depth; k += kBlockDepth, x.from += x.step, weights += 2 * kStep) {
      _tile_loadd(6, weights, kPitch);
      _tile_loadd(7, weights + kStep, kPitch);
      _tile_loadd(4, x.from, x.pitch);
      _tile_loadd(5, x.from + kPlane, x.pitch);
      _tile_dpbuud(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbsud(1, 5, 6);
      _tile_dpbssd(2, 5, 7);
    }
  }
  sums += v * kLanes;
  _tile_stored(0, sums, kPitch);
  _tile_stored(1, sums + kSums, kPitch);
  _tile_stored(2, sums + 2 * kSums, kPitch);
}

// Sums of one block of rows, in memory: of each shift by a byte.
template <int kShifts>
struct Stored {
  const int32_t* sums;
  int64_t first;  // row of the block

  template <int R, int V>
  CVM_ALWAYS_INLINE void take(int64_t row, __m512i (&to)[R][V]) const {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        const int32_t* from = sums + ((row - first + r) * V + v) * kLanes;
        to[r][v] = _mm512_add_epi32(load(from), _mm512_slli_epi32(load(from + kSums), 8));
        if constexpr (kShifts == 3) to[r][v] = _mm512_add_epi32(to[r][v], _mm512_slli_epi32(load(from + 2 * kSums), 16));
      }
    }
  }
};

template <bool kWhole, int V>
void add(const ProductTask& task, int64_t block, int32_t* sums) {
  if constexpr (kWhole) {
    for (int v = 0; v < V; ++v) add_whole_products<V>(task, block, v, sums);
  } else {
    add_products<V>(task, block, sums);
  }
}

template <bool kWhole>
struct Blocks {
  template <typename Body>
  static void for_shares(const ProductTask& task, Body body) {
    const bool two = task.vectors == 2;
    alignas(64) int32_t sums[kMostShifts * kSums];
    for (int64_t first = 0; first < task.row_count; first += kBlockRows) {
      two ? add<kWhole, 2>(task, first / kBlockRows, sums) : add<kWhole, 1>(task, first / kBlockRows, sums);
      const int64_t end = first + kBlockRows < task.row_count ? first + kBlockRows : task.row_count;
      for (int64_t row = first; row < end; row += kRows) {
        const int64_t rest = end - row;
        for_rows(Stored<kWhole ? 3 : 2>{sums, first}, rest < kRows ? rest : kRows, two, row, body);
      }
    }
  }
};

constexpr BlockKernels kBlocks = {begin_tiles, end_tiles, split, 2};

template <bool kWhole>
ProductKernels kernels() {
  ProductKernels kernels = kProductsAvx512vnni;
  kernels.rows = kMaxTileRows;
  kernels.step16 = kBlockDepth;
  kernels.sums16 = sums_of<Blocks<kWhole>>;
  kernels.bytes16 = bytes_of<Blocks<kWhole>>;
  kernels.words16 = words_of<Blocks<kWhole>>;
  kernels.skips = false;
  kernels.blocks = &kBlocks;
  return kernels;
}

}  // namespace

extern const ProductKernels kWordBlocksAmx, kWholeBlocksAmx;
const ProductKernels kWordBlocksAmx = kernels<false>();
const ProductKernels kWholeBlocksAmx = kernels<true>();

}  // namespace cvm
