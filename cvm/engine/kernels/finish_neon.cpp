// Finishes tiles of sums on AArch64: 4 columns at a time.
#include "kernels/finish.h"
#include "kernels/scales_neon.h"

namespace cvm {
namespace {

// Calls body(quarter, count, sums of a row, row) for four columns after another; `count` of them exist, or more. The body is made
// by `scales` once for all rows.
template <typename Scales>
inline void for_quarters(const SumTile& tile, Scales scales) {
  for (int64_t column = 0; column < tile.columns; column += 4) {
    const auto body = scales(column / 4);
    const int64_t count = tile.columns - column;
    for (int64_t row = 0; row < tile.rows; ++row) body(tile.sums + row * tile.pitch + column, row, column, count);
  }
}

// A shortcut's elements at one place.
inline int16x4_t elements_at(const uint8_t* from, int64_t count) { return bytes_at(from, count); }
inline int16x4_t elements_at(const int16_t* from, int64_t count) { return words_at(from, count); }
inline int32x4_t elements_at(const int32_t* from, int64_t count) { return integers_at(from, count); }

// The sums become sum_of(quarter)(sums, elements of the shortcut).
template <typename T, typename SumOf>
void add(const SumTile& tile, const Shortcut& shortcut, SumOf sum_of) {
  const T* from = static_cast<const T*>(shortcut.data);
  for_quarters(tile, [&](int64_t quarter) {
    return [&, sum = sum_of(quarter)](int32_t* sums, int64_t row, int64_t column, int64_t count) {
      const auto added = elements_at(from + row * shortcut.pitch + column, count);
      store_integers(sum(integers_at(sums, count), added), count, sums);
    };
  });
}

template <typename T, typename Second>
void add_rescaled(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut, Second second_of) {
  add<T>(tile, shortcut, [&](int64_t quarter) {
    const LongScale own = LongScale::of(scale, quarter);
    return [own, second = second_of(quarter)](int32x4_t sums, auto added) { return vaddq_s32(own(sums), second(added)); };
  });
}

void add_shifted(const SumTile& tile, const Shortcut& shortcut) {
  if (shortcut.size == 1) return add<uint8_t>(tile, shortcut, [&](int64_t quarter) { return ShiftScale::of(shortcut.shifted, quarter); });
  add<int32_t>(tile, shortcut, [&](int64_t quarter) {
    return [own = ShiftScale::of(shortcut.shifted, quarter)](int32x4_t sums, int32x4_t added) { return vaddq_s32(own(sums), added); };
  });
}

void add_shortcut(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  if (shortcut.shifted.data != nullptr) return add_shifted(tile, shortcut);
  if (shortcut.size == 1) {
    add_rescaled<uint8_t>(tile, scale, shortcut, [&](int64_t quarter) { return ByteScale::of(shortcut.bytes, quarter); });
  } else if (shortcut.size == 2) {
    add_rescaled<int16_t>(tile, scale, shortcut, [&](int64_t quarter) {
      return [words = LongScale::of(shortcut.words, quarter)](int16x4_t added) { return words(vmovl_s16(added)); };
    });
  } else {
    add_rescaled<int32_t>(tile, scale, shortcut, [](int64_t) { return [](int32x4_t added) { return added; }; });
  }
}

template <typename T>
inline void store_narrow(const T* from, int64_t count, T* to) {
  for (int64_t i = 0; i < 4 && i < count; ++i) to[i] = from[i];
}

// Integers are held within the range of their size.
inline void store_some(int32x4_t x, int64_t count, int32_t* to) { store_integers(x, count, to); }

inline void store_some(int32x4_t x, int64_t count, int16_t* to) {
  const int16x4_t words = vmovn_s32(x);
  if (count >= 4) return vst1_s16(to, words);
  int16_t spare[4];
  vst1_s16(spare, words);
  store_narrow(spare, count, to);
}

inline void store_some(int32x4_t x, int64_t count, uint8_t* to) {
  const int16x4_t words = vmovn_s32(x);
  const uint8x8_t bytes = vmovn_u16(vreinterpretq_u16_s16(vcombine_s16(words, words)));
  if (count >= 4) return vst1_lane_u32(reinterpret_cast<uint32_t*>(to), vreinterpret_u32_u8(bytes), 0);
  uint8_t spare[8];
  vst1_u8(spare, bytes);
  store_narrow(spare, count, to);
}

template <typename Scale, typename T>
void store_as(const SumTile& tile, const Finish& finish, T* to, int64_t pitch) {
  const int32x4_t zero_point = vdupq_n_s32(zero_point_of(finish.scale)), add = vdupq_n_s32(finish.add);
  const int32x4_t low = vdupq_n_s32(finish.low), high = vdupq_n_s32(finish.high);
  for_quarters(tile, [&](int64_t quarter) {
    return [&, scale = Scale::of(finish.scale, quarter)](const int32_t* sums, int64_t row, int64_t column, int64_t count) {
      const int32x4_t found = vaddq_s32(scale(integers_at(sums, count)), zero_point);
      store_some(vaddq_s32(vminq_s32(vmaxq_s32(found, low), high), add), count, to + row * pitch + column);
    };
  });
}

template <typename Scale>
void store_sized(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  switch (finish.size) {
    case 1: return store_as<Scale>(tile, finish, static_cast<uint8_t*>(to), pitch);
    case 2: return store_as<Scale>(tile, finish, static_cast<int16_t*>(to), pitch);
    default: return store_as<Scale>(tile, finish, static_cast<int32_t*>(to), pitch);
  }
}

void store(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  const bool high = finish.scale.form == ScaleForm::bytes || finish.scale.form == ScaleForm::words;
  high ? store_sized<HighScale>(tile, finish, to, pitch) : store_sized<LongScale>(tile, finish, to, pitch);
}

}  // namespace

extern const FinishKernels kFinishNeon;
const FinishKernels kFinishNeon = {add_shortcut, store};

}  // namespace cvm
