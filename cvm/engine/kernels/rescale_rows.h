// Chooses the loop of a rescale: by its shifts, and by the sizes of the elements that it reads and writes.
#pragma once

#include "kernels/elements.h"

namespace cvm {
namespace {

// How the wanted 32 bits of a 64-bit product are found, by its shifts: all from 32 on, all up to 32, or any; or (`wide`) they
// saturate in 64 bits first.
enum class Shifts { high, low, any, wide };

// Loop::by_channels<shifts, narrow>(rescale, tile, x, pitch of x, out, pitch of out), or by_tensor where all factors are the same,
// of one row where rows follow each other.
template <typename Loop, Shifts kShifts, bool kNarrow, typename In, typename Out>
void run_loop(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
  if (r.count > 1 || r.input_zero_points != nullptr) {
    Loop::template by_channels<kShifts, kNarrow>(r, tile, x, x_pitch, out, pitch);
  } else if (x_pitch == tile.width && pitch == tile.width) {
    Loop::template by_tensor<kShifts, kNarrow>(r, {1, tile.rows * tile.width, 0}, x, x_pitch, out, pitch);
  } else {
    Loop::template by_tensor<kShifts, kNarrow>(r, tile, x, x_pitch, out, pitch);
  }
}

// Results of 32 bits need no limits unless they are narrow or wide.
template <typename Loop, Shifts kShifts, typename In>
void rescale_from(const Rescale& r, const Tile& tile, const In* x, int64_t pitch, const ToRows& out) {
  auto* wide = reinterpret_cast<int32_t*>(out.data);
  switch (out.size) {
    case 1: return run_loop<Loop, kShifts, true>(r, tile, x, pitch, out.data, out.pitch);
    case 2: return run_loop<Loop, kShifts, true>(r, tile, x, pitch, reinterpret_cast<int16_t*>(out.data), out.pitch);
    default:
      return r.high != INT32_MAX ? run_loop<Loop, kShifts, true>(r, tile, x, pitch, wide, out.pitch)
                                 : run_loop<Loop, kShifts, false>(r, tile, x, pitch, wide, out.pitch);
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
    return r.high != INT32_MAX ? run_loop<Loop, Shifts::wide, true>(r, tile, from, x.pitch, to, out.pitch)
                               : run_loop<Loop, Shifts::wide, false>(r, tile, from, x.pitch, to, out.pitch);
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
