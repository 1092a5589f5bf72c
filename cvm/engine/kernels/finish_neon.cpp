// Finishes tiles of sums on AArch64: 8 columns at a time.
#include "kernels/finish.h"
#include "kernels/scales_neon.h"

namespace cvm {
namespace {

// Calls body(sums of a row, row, column, count) for every eight columns; `count` is how many columns there are from
// there on. scales(number) makes the body of a block, once for all rows.
template <typename Scales>
inline void for_blocks(const SumTile& tile, Scales scales) {
  for (int64_t column = 0; column < tile.columns; column += kLanes) {
    const auto body = scales(column / kLanes);
    const int64_t count = tile.columns - column;
    for (int64_t row = 0; row < tile.rows; ++row) body(tile.sums + row * tile.pitch + column, row, column, count);
  }
}

inline Eight integers_at(const int32_t* from, int64_t count) {
  int32_t spare[kLanes];
  return integers(whole(from, count, spare));
}

// A shortcut's elements at one place.
inline int16x8_t elements_at(const uint8_t* from, int64_t count) {
  uint8_t spare[kLanes];
  return words_of_bytes(whole(from, count, spare));
}
inline Eight elements_at(const int16_t* from, int64_t count) {
  int16_t spare[kLanes];
  const int16x8_t words = vld1q_s16(whole(from, count, spare));
  return {vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)};
}
inline Eight elements_at(const int32_t* from, int64_t count) { return integers_at(from, count); }

// The sums become sum_of(number)(sums, elements of the shortcut).
template <typename T, typename SumOf>
void add(const SumTile& tile, const Shortcut& shortcut, SumOf sum_of) {
  const T* from = static_cast<const T*>(shortcut.data);
  for_blocks(tile, [&](int64_t number) {
    return [&, sum_all = sum_of(number)](int32_t* sums, int64_t row, int64_t column, int64_t count) {
      const auto added = elements_at(from + row * shortcut.pitch + column, count);
      store_integers(sum_all(integers_at(sums, count), added), count, sums);
    };
  });
}

// Sums rescaled, and second_of(number)(elements of the shortcut).
template <typename T, typename SecondOf>
void add_rescaled(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut, SecondOf second_of) {
  add<T>(tile, shortcut, [&](int64_t number) {
    return [own = LongScale::of(scale, number), second = second_of(number)](Eight sums, auto added) {
      return sum(own(sums), second(added));
    };
  });
}

void add_shifted(const SumTile& tile, const Shortcut& shortcut) {
  if (shortcut.size == 1) return add<uint8_t>(tile, shortcut, [&](int64_t number) { return ShiftScale::of(shortcut.shifted, number); });
  add<int32_t>(tile, shortcut, [&](int64_t number) {
    return [own = ShiftScale::of(shortcut.shifted, number)](Eight sums, Eight added) { return sum(own(sums), added); };
  });
}

void add_shortcut(const SumTile& tile, const ScaleBlocks& scale, const Shortcut& shortcut) {
  if (shortcut.shifted.data != nullptr) return add_shifted(tile, shortcut);
  if (shortcut.size == 1) {
    add_rescaled<uint8_t>(tile, scale, shortcut, [&](int64_t number) { return ByteScale::of(shortcut.bytes, number); });
  } else if (shortcut.size == 2) {
    add_rescaled<int16_t>(tile, scale, shortcut, [&](int64_t number) { return LongScale::of(shortcut.words, number); });
  } else {
    add_rescaled<int32_t>(tile, scale, shortcut, [](int64_t) { return [](Eight added) { return added; }; });
  }
}

// Integers are held within the range of their size.
inline void store(Eight x, int64_t count, int32_t* to) { store_integers(x, count, to); }

inline void store(Eight x, int64_t count, int16_t* to) {
  if (count >= kLanes) return vst1q_s16(to, low_words(x));
  int16_t spare[kLanes];
  vst1q_s16(spare, low_words(x));
  store_some(spare, count, to);
}

inline void store(Eight x, int64_t count, uint8_t* to) {
  const uint8x8_t bytes = vmovn_u16(vreinterpretq_u16_s16(low_words(x)));
  if (count >= kLanes) return vst1_u8(to, bytes);
  uint8_t spare[kLanes];
  vst1_u8(spare, bytes);
  store_some(spare, count, to);
}

template <typename Scale, typename T>
void store_as(const SumTile& tile, const Finish& finish, T* to, int64_t pitch) {
  const int32x4_t zero_point = vdupq_n_s32(zero_point_of(finish.scale)), add = vdupq_n_s32(finish.add);
  const int32x4_t low = vdupq_n_s32(finish.low), high = vdupq_n_s32(finish.high);
  for_blocks(tile, [&](int64_t number) {
    return [&, scale = Scale::of(finish.scale, number)](const int32_t* sums, int64_t row, int64_t column, int64_t count) {
      const Eight integers = sum(scale(integers_at(sums, count)), {zero_point, zero_point});
      store(sum(held(integers, low, high), {add, add}), count, to + row * pitch + column);
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

void store_tile(const SumTile& tile, const Finish& finish, void* to, int64_t pitch) {
  const bool high = finish.scale.form == ScaleForm::bytes || finish.scale.form == ScaleForm::words;
  high ? store_sized<HighScale>(tile, finish, to, pitch) : store_sized<LongScale>(tile, finish, to, pitch);
}

}  // namespace

extern const FinishKernels kFinishNeon;
const FinishKernels kFinishNeon = {add_shortcut, store_tile};

}  // namespace cvm
