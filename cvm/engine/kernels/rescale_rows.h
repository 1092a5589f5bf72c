// Chooses the loop of a rescale: by its shifts, and by the sizes of the elements that it reads and writes.
#pragma once

#include "kernels/elements.h"

namespace cvm {
namespace {

// How the wanted 32 bits of a 64-bit product are found, by its shifts: all from 32 on, all up to 32, or any; or (`wide`) they
// saturate in 64 bits first.
enum class Shifts { high, low, any, wide };

// Loop::run<shifts, narrow>(rescale, tile, x, pitch of x, out, pitch of out). Results of 32 bits need no limits unless they are
// narrow or wide.
template <typename Loop, Shifts kShifts, typename In>
void rescale_from(const Rescale& r, const Tile& tile, const In* x, int64_t pitch, const ToRows& out) {
  auto* wide = reinterpret_cast<int32_t*>(out.data);
  switch (out.size) {
    case 1: return Loop::template run<kShifts, true>(r, tile, x, pitch, out.data, out.pitch);
    case 2: return Loop::template run<kShifts, true>(r, tile, x, pitch, reinterpret_cast<int16_t*>(out.data), out.pitch);
    default:
      return r.high != INT32_MAX ? Loop::template run<kShifts, true>(r, tile, x, pitch, wide, out.pitch)
                                 : Loop::template run<kShifts, false>(r, tile, x, pitch, wide, out.pitch);
  }
}

template <typename Loop, Shifts kShifts>
void rescale_by(const Rescale& r, const Tile& tile, const FromRows& x, const ToRows& out) {
  switch (x.size) {
    case 1: return rescale_from<Loop, kShifts>(r, tile, x.data, x.pitch, out);
    case 2: return rescale_from<Loop, kShifts>(r, tile, reinterpret_cast<const int16_t*>(x.data), x.pitch, out);
    default: return rescale_from<Loop, kShifts>(r, tile, reinterpret_cast<const int32_t*>(x.data), x.pitch, out);
  }
}

template <typename Loop>
void rescale_any(const Rescale& r, const Tile& tile, const FromRows& x, const ToRows& out) {
  if (r.wide) {
    const auto* from = reinterpret_cast<const int32_t*>(x.data);
    auto* to = reinterpret_cast<int32_t*>(out.data);
    return r.high != INT32_MAX ? Loop::template run<Shifts::wide, true>(r, tile, from, x.pitch, to, out.pitch)
                               : Loop::template run<Shifts::wide, false>(r, tile, from, x.pitch, to, out.pitch);
  }
  if (r.least_shift >= 32) return rescale_by<Loop, Shifts::high>(r, tile, x, out);
  return r.most_shift <= 32 ? rescale_by<Loop, Shifts::low>(r, tile, x, out) : rescale_by<Loop, Shifts::any>(r, tile, x, out);
}

// Of and to a dense tile of 32-bit integers.
template <typename Loop>
void rescale_tile(const Rescale& r, const Tile& tile, const int32_t* x, int32_t* out) {
  rescale_any<Loop>(r, tile, {reinterpret_cast<const unsigned char*>(x), tile.width, 4},
                    {reinterpret_cast<unsigned char*>(out), tile.width, 4});
}

}  // namespace
}  // namespace cvm
