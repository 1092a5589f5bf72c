// Element-wise kernels on AArch64. Compilers make vectors of the plain loops; what they do not is here: rescales, products of 64
// bits, look-ups, and bytes side by side. Every processor of this kind has these instructions.
#include "kernels/elements.h"

#include "kernels/integer_loops.h"
#include "kernels/rescale_rows.h"
#include "kernels/scales_neon.h"

namespace cvm {
namespace {

// A rescale of 8 channels in registers. Products fit 63 bits, so a rounding shift of 64 bits finds every result; where all shifts
// are from 32 on and x has no zero point, or room for it, 32 bits do (scales_neon.h).
struct Scale {
  Eight multiplier, input, high_shift;
  int64x2_t shift[4];
  int32x4_t zero_point, low, high;
};

// The result saturates before the zero point is added: low - zero point fits 32 bits because only i8 results have one.
inline Scale scale_of(const Rescale& r, Eight multiplier, Eight shift, Eight input) {
  const Eight right{vnegq_s32(shift.front), vnegq_s32(shift.back)};
  const int32x4_t half = vdupq_n_s32(31);
  return {multiplier,
          input,
          {vaddq_s32(right.front, half), vaddq_s32(right.back, half)},
          {vmovl_s32(vget_low_s32(right.front)), vmovl_high_s32(right.front), vmovl_s32(vget_low_s32(right.back)), vmovl_high_s32(right.back)},
          vdupq_n_s32(r.output_zero_point),
          vdupq_n_s32(r.low - r.output_zero_point),
          vdupq_n_s32(r.high - r.output_zero_point)};
}

// `wide` saturates what does not fit 32 bits; else it wraps.
template <bool kWide>
inline int32x4_t in_64_bits(int32x4_t x, int32x4_t multiplier, int32x4_t input, const int64x2_t* shift) {
  const int64x2_t low = vmlsl_s32(vmull_s32(vget_low_s32(x), vget_low_s32(multiplier)), vget_low_s32(input), vget_low_s32(multiplier));
  const int64x2_t high = vmlsl_high_s32(vmull_high_s32(x, multiplier), input, multiplier);
  const int64x2_t front = vrshlq_s64(low, shift[0]), back = vrshlq_s64(high, shift[1]);
  if constexpr (kWide) return vqmovn_high_s64(vqmovn_s64(front), back);
  return vuzp1q_s32(vreinterpretq_s32_s64(front), vreinterpretq_s32_s64(back));
}

template <Shifts kShifts, bool kNarrow, bool kRoom>
inline Eight scaled(Eight x, const Scale& s) {
  Eight y;
  if constexpr (kShifts == Shifts::high && kRoom) {
    y = {vrshlq_s32(vqdmulhq_s32(vsubq_s32(x.front, s.input.front), s.multiplier.front), s.high_shift.front),
         vrshlq_s32(vqdmulhq_s32(vsubq_s32(x.back, s.input.back), s.multiplier.back), s.high_shift.back)};
  } else {
    y = {in_64_bits<kShifts == Shifts::wide>(x.front, s.multiplier.front, s.input.front, s.shift),
         in_64_bits<kShifts == Shifts::wide>(x.back, s.multiplier.back, s.input.back, s.shift + 2)};
  }
  if constexpr (!kNarrow) return y;
  return sum(held(y, s.low, s.high), {s.zero_point, s.zero_point});
}

inline Eight get(const int32_t* from) { return integers(from); }
inline Eight get(const int16_t* from) {
  const int16x8_t words = vld1q_s16(from);
  return {vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)};
}
inline Eight get(const uint8_t* from) {
  const int16x8_t words = words_of_bytes(from);
  return {vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)};
}

// What does not fit wraps.
inline void put(int32_t* to, Eight x) { store_integers(x, kLanes, to); }
inline void put(int16_t* to, Eight x) { vst1q_s16(to, low_words(x)); }
inline void put(uint8_t* to, Eight x) { vst1_u8(to, vmovn_u16(vreinterpretq_u16_s16(low_words(x)))); }

// Fewer than 8 elements.
template <typename T>
inline Eight get(int64_t count, const T* from) {
  T spare[kLanes];
  return get(whole(from, count, spare));
}

template <typename T>
inline void put(int64_t count, T* to, Eight x) {
  T spare[kLanes];
  put(spare, x);
  store_some(spare, count, to);
}

// Factors of these channels; those of a tensor are all the same.
inline Scale scale_at(const Rescale& r, int64_t channel, int64_t count) {
  const auto lanes = [&](const int32_t* each, bool many, int32_t one) {
    const int32x4_t same = vdupq_n_s32(one);
    return many ? get(count, each + channel) : Eight{same, same};
  };
  return scale_of(r, lanes(r.multiplier, r.count > 1, r.multiplier[0]), lanes(r.shift, r.count > 1, r.shift[0]),
                  lanes(r.input_zero_points, r.input_zero_points != nullptr, r.input_zero_point));
}

struct Loop {
  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_channels(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    has_room<In>(r) ? channels<kShifts, kNarrow, true>(r, tile, x, x_pitch, out, pitch)
                    : channels<kShifts, kNarrow, false>(r, tile, x, x_pitch, out, pitch);
  }

  template <Shifts kShifts, bool kNarrow, typename In, typename Out>
  static void by_tensor(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    has_room<In>(r) ? rows<kShifts, kNarrow, true>(r, tile, x, x_pitch, out, pitch)
                    : rows<kShifts, kNarrow, false>(r, tile, x, x_pitch, out, pitch);
  }

 private:
  template <typename In>
  static bool has_room(const Rescale& r) { return sizeof(In) < 4 || (r.input_zero_points == nullptr && r.input_zero_point == 0); }

  // Channels outside, rows inside: factors are made once for all rows of the tile.
  template <Shifts kShifts, bool kNarrow, bool kRoom, typename In, typename Out>
  static void channels(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    for (int64_t column = 0; column < tile.width; column += kLanes) {
      const int64_t count = tile.width - column;
      const Scale scale = scale_at(r, tile.channel + column, count);
      const In* from = x + column;
      Out* to = out + column;
      for (int64_t row = 0; row < tile.rows; ++row, from += x_pitch, to += pitch) {
        if (count >= kLanes) {
          put(to, scaled<kShifts, kNarrow, kRoom>(get(from), scale));
        } else {
          put(count, to, scaled<kShifts, kNarrow, kRoom>(get(count, from), scale));
        }
      }
    }
  }

  template <Shifts kShifts, bool kNarrow, bool kRoom, typename In, typename Out>
  static void rows(const Rescale& r, const Tile& tile, const In* x, int64_t x_pitch, Out* out, int64_t pitch) {
    const Scale scale = scale_at(r, 0, kLanes);
    for (int64_t row = 0; row < tile.rows; ++row, x += x_pitch, out += pitch) {
      int64_t i = 0;
      for (; i + kLanes <= tile.width; i += kLanes) put(out + i, scaled<kShifts, kNarrow, kRoom>(get(x + i), scale));
      const int64_t count = tile.width - i;
      if (count > 0) put(count, out + i, scaled<kShifts, kNarrow, kRoom>(get(count, x + i), scale));
    }
  }
};

void clamp(int32_t low, int32_t high, int64_t count, const int32_t* x, int32_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

template <bool kRepeated>
void mul_row_shifted(int amount, int64_t count, const int32_t* x, const int32_t* y, int32_t* out) {
  const int64x2_t right = vdupq_n_s64(-amount);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const int32x4_t a = vld1q_s32(x + i), b = kRepeated ? vdupq_n_s32(*y) : vld1q_s32(y + i);
    const int64x2_t front = vrshlq_s64(vmull_s32(vget_low_s32(a), vget_low_s32(b)), right);
    const int64x2_t back = vrshlq_s64(vmull_high_s32(a, b), right);
    vst1q_s32(out + i, vuzp1q_s32(vreinterpretq_s32_s64(front), vreinterpretq_s32_s64(back)));
  }
  for (; i < count; ++i) out[i] = product_shifted(x[i], y[kRepeated ? 0 : i], amount);
}

void mul_shifted(int amount, const Tile& tile, const int32_t* x, const Second& y, int32_t* out) {
  for_rows(tile, x, y, out, [&](int64_t count, const int32_t* a, const int32_t* b, int32_t* to) {
    y.repeated ? mul_row_shifted<true>(amount, count, a, b, to) : mul_row_shifted<false>(amount, count, a, b, to);
  });
}

// A point and the next are one load of 32 bits.
inline int32_t points_at(const int16_t* points, uint32_t number) {
  int32_t two;
  memcpy(&two, points + number, 4);
  return two;
}

inline int32x4_t points_at(const int16_t* points, uint32x4_t number) {
  int32x4_t pairs = vdupq_n_s32(points_at(points, vgetq_lane_u32(number, 0)));
  pairs = vsetq_lane_s32(points_at(points, vgetq_lane_u32(number, 1)), pairs, 1);
  pairs = vsetq_lane_s32(points_at(points, vgetq_lane_u32(number, 2)), pairs, 2);
  return vsetq_lane_s32(points_at(points, vgetq_lane_u32(number, 3)), pairs, 3);
}

void interpolate(const int16_t* points, int64_t count, const int32_t* x, int32_t* out) {
  const uint32x4_t middle = vdupq_n_u32(32768), fraction = vdupq_n_u32(127);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const uint32x4_t place = vaddq_u32(vreinterpretq_u32_s32(vld1q_s32(x + i)), middle);
    const int32x4_t pairs = points_at(points, vshrq_n_u32(vshlq_n_u32(place, 16), 23));
    const int32x4_t second = vshrq_n_s32(pairs, 16), first = vshrq_n_s32(vshlq_n_s32(pairs, 16), 16);
    const int32x4_t share = vreinterpretq_s32_u32(vandq_u32(place, fraction));
    vst1q_s32(out + i, vmlaq_s32(vshlq_n_s32(first, 7), share, vsubq_s32(second, first)));
  }
  for (; i < count; ++i) out[i] = interpolated(points, x[i]);
}

void load8(int32_t bias, int64_t width, const uint8_t* from, int32_t* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = from[i] - bias;
}

void store8(int32_t bias, int64_t width, const int32_t* x, uint8_t* to) {
  for (int64_t i = 0; i < width; ++i) to[i] = static_cast<uint8_t>(static_cast<uint32_t>(x[i]) + static_cast<uint32_t>(bias));
}

void load16(int64_t width, const int16_t* from, int32_t* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = from[i];
}

void store16(int64_t width, const int32_t* x, int16_t* to) {
  for (int64_t i = 0; i < width; ++i) to[i] = static_cast<int16_t>(x[i]);
}

// Four bytes of one column side by side, and their sum.
void quad(const uint8_t* const* rows, int64_t column, int8_t* to, int32_t* sums) {
  for (int64_t row = 0; row < 4; ++row) {
    to[4 * column + row] = static_cast<int8_t>(rows[row][column] ^ 128);
    sums[column] += to[4 * column + row];
  }
}

void quads8(int64_t count, const uint8_t* const* rows, int8_t* to, int32_t* sums) {
  const uint8x8_t sign = vdup_n_u8(128);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto row = [&](int number) { return vreinterpret_s8_u8(veor_u8(vld1_u8(rows[number] + i), sign)); };
    const int8x8x4_t four = {{row(0), row(1), row(2), row(3)}};
    vst4_s8(to + 4 * i, four);
    const int16x8_t quad_sums = vaddq_s16(vaddl_s8(four.val[0], four.val[1]), vaddl_s8(four.val[2], four.val[3]));
    vst1q_s32(sums + i, vaddw_s16(vld1q_s32(sums + i), vget_low_s16(quad_sums)));
    vst1q_s32(sums + i + 4, vaddw_high_s16(vld1q_s32(sums + i + 4), quad_sums));
  }
  for (; i < count; ++i) quad(rows, i, to, sums);
}

}  // namespace

extern const ElementKernels kElementsNeon;
const ElementKernels kElementsNeon = {
    rescale_tile<Loop>, rescale_any<Loop>, clamp,      add,        sub,     mul,   mul_shifted, divide,      maximum, minimum,
    abs,       shift_left, shift_right, shift_right_rounded, load8, store8, load16, store16,
    wrap8,     wrap16,     interpolate, sum,     greatest, least,   fill,        centre8, pair8, pair16, quads8};

}  // namespace cvm
