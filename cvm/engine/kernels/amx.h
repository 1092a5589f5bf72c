// The instructions of AMX: the compiler's own or, in a build with CVM_EMULATE_AMX, functions of the same names that compute
// the same bytes on a processor without them.
#pragma once

#include <stdint.h>

#include "kernels/avx512.h"

namespace cvm {
namespace {

// The configuration of the tile registers in the form that the processor loads: all eight have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kTiles;

}  // namespace
}  // namespace cvm

#if defined(CVM_EMULATE_AMX)
#include <string.h>

namespace cvm {
namespace {

inline void configure(const TileConfig&) {}

thread_local uint8_t amx_registers[8][16][64];  // all rows of all registers are in use

inline void amx_load(int to, const void* from, int64_t pitch) {
  for (int64_t r = 0; r < 16; ++r) memcpy(amx_registers[to][r], static_cast<const uint8_t*>(from) + r * pitch, 64);
}

inline void amx_store(int from, void* to, int64_t pitch) {
  for (int64_t r = 0; r < 16; ++r) memcpy(static_cast<uint8_t*>(to) + r * pitch, amx_registers[from][r], 64);
}

inline void amx_zero(int to) { memset(amx_registers[to], 0, sizeof amx_registers[to]); }

// Every second byte of a vector as a 16-bit integer, from the first or from the second on.
template <bool kSigned, bool kSecond>
inline __m512i amx_bytes(__m512i x) {
  if constexpr (!kSecond) x = _mm512_slli_epi16(x, 8);
  return kSigned ? _mm512_srai_epi16(x, 8) : _mm512_srli_epi16(x, 8);
}

template <bool kSignedX, bool kSignedW>
inline void amx_add_products(int to, int x, int w) {
  for (int r = 0; r < 16; ++r) {
    __m512i sums = _mm512_loadu_si512(amx_registers[to][r]);
    for (int k = 0; k < 16; ++k) {
      int32_t four;
      memcpy(&four, amx_registers[x][r] + 4 * k, 4);
      const __m512i fours = _mm512_set1_epi32(four), weights = _mm512_loadu_si512(amx_registers[w][k]);
      sums = _mm512_dpwssd_epi32(sums, amx_bytes<kSignedX, false>(fours), amx_bytes<kSignedW, false>(weights));
      sums = _mm512_dpwssd_epi32(sums, amx_bytes<kSignedX, true>(fours), amx_bytes<kSignedW, true>(weights));
    }
    _mm512_storeu_si512(amx_registers[to][r], sums);
  }
}

}  // namespace
}  // namespace cvm

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbuud
#undef _tile_dpbusd
#undef _tile_dpbsud
#undef _tile_dpbssd
#define _tile_loadd(to, from, pitch) ::cvm::amx_load(to, from, pitch)
#define _tile_stored(from, to, pitch) ::cvm::amx_store(from, to, pitch)
#define _tile_zero(to) ::cvm::amx_zero(to)
#define _tile_dpbuud(to, x, w) ::cvm::amx_add_products<false, false>(to, x, w)
#define _tile_dpbusd(to, x, w) ::cvm::amx_add_products<false, true>(to, x, w)
#define _tile_dpbsud(to, x, w) ::cvm::amx_add_products<true, false>(to, x, w)
#define _tile_dpbssd(to, x, w) ::cvm::amx_add_products<true, true>(to, x, w)
#define _tile_release() static_cast<void>(0)
#else

namespace cvm {
namespace {

// gcc's _tile_loadconfig names eight of the 64 bytes that the processor reads: those of a variable that come after them need
// not have been written yet.
inline void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" ::"m"(config)); }

}  // namespace
}  // namespace cvm

#endif

namespace cvm {
namespace {

inline void begin_tiles() { configure(kTiles); }

inline void end_tiles() { _tile_release(); }

// Prefetches the weights of the step after the next: registers would wait for the second cache, row by row.
template <int kBytes>
inline __attribute__((always_inline)) void fetch_step(const uint8_t* weights) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(weights) + 2 * kBytes;
  for (int line = 0; line < kBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(place + line), _MM_HINT_T0);
}

}  // namespace
}  // namespace cvm
