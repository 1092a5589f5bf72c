// Rescales in the order in which vectors of sums want them.
#pragma once

#include <stdint.h>

namespace cvm {

// A rescale as vectors want it, in blocks of `lanes` channels: int32 multiplier[lanes], int32 last[lanes], then int64
// half_even, half_odd, shift_even, shift_odd [lanes / 2 each], for even and odd channels. The product of x and the
// multiplier plus the half is a 64-bit integer whose bits from `shift` on are wanted. It depends on the form where they are:
//   bytes     shifts are 32..53; the half holds the zero point too; `last` more shifts the high half, arithmetically
//   words     the same without a zero point
//   left      shifts are at most 32; `shift` moves the wanted bits to the high half
//   integers  any shifts; the half holds 2^62, so that a logical shift is right; `last` takes 2^62 away again
// One more form, of rescales to bytes whose products fit 32 bits, has blocks of int32 multiplier, constant, shift [lanes each]:
//   short_bytes  a byte is (x multiplier + constant) >> shift; the constant holds the half and the zero point
// And of those whose multipliers are odd, or 0 without a constant, int32 multiplier, shift [lanes each]:
//   odd_bytes    a byte is (x multiplier) >> shift; x holds the constant times the multiplier's inverse modulo 2^32
// And of those whose multipliers have at most 15 bits and zeros after them, and whose shifts are greater than 32, int32 multiplier,
// constant, multiplier 2^16, shift [lanes each]; x = high 2^16 + low, with low from 0 to 65535:
//   half_bytes, half_words  (high multiplier + (low multiplier >> 16) + constant) >> shift, which drops no bit that is wanted
enum class ScaleForm { bytes, words, left, integers, short_bytes, odd_bytes, half_bytes, half_words };

// Whether results are stored bytes already.
inline bool gives_bytes(ScaleForm form) {
  return form == ScaleForm::bytes || form == ScaleForm::short_bytes || form == ScaleForm::odd_bytes || form == ScaleForm::half_bytes;
}

struct ScaleBlocks {
  const uint8_t* data;
  int64_t stride;  // bytes from one block to the next
  ScaleForm form;
};

// Rescales of stored bytes q to 32 bits in 32 bits, in blocks of `lanes` channels: int32 low, high, low_add, high_add, shift
// [lanes each]. A result is (q high + high_add + ((q low + low_add) >> 16)) >> shift, where high 2^16 + low is the multiplier
// (low signed, in 16 bits; high 0..32767), and the same of the adds is the half less zero point times multiplier.
struct ByteBlocks {
  const uint8_t* data;
  int64_t stride;  // bytes from one block to the next
};

// (sums << shift) + constant + q factor for stored bytes q, in blocks of `lanes` channels: int32 shift, constant, factor [lanes
// each]. Factors are 0..32767.
struct ShiftBlocks {
  const uint8_t* data;
  int64_t stride;  // bytes from one block to the next
};

}  // namespace cvm
