// Sums of products on one tile: a few rows of x against one panel of weights, with what may follow in registers.
#pragma once

#include <stdint.h>

#include "kernels/scales.h"

namespace cvm {

constexpr int64_t kMaxTileRows = 32;
constexpr int64_t kMaxPanelColumns = 32;

// Kernels that take blocks of rows load this many at once, and this many bytes of each.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kBlockDepth = 64;
constexpr int64_t kPlane = kBlockRows * kBlockDepth;
constexpr int64_t kBlockStep = 4;  // the order of their weights is that of kernels whose steps are so long
constexpr int64_t kTileBlocks = kMaxTileRows / kBlockRows;

// One run of a block of rows: that of row r begins at `from + r * pitch`, and what follows its first kBlockDepth bytes is `step` bytes
// further on, as often as the run is long.
struct RowBlock {
  const uint8_t* from;
  int64_t pitch;
  int64_t step;
};

// One tile. Run t of row r starts at rows[t * kMaxTileRows + r] and holds `depth` elements, a multiple of the kernel's
// step; reading stops there. Weights lie in the order depth / step, column, step, run after run.
struct ProductTask {
  const void* const* rows;
  int64_t taps;
  int64_t depth;
  const void* weights;
  const int32_t* bias;  // one for each column, added to the sums
  int64_t row_count;    // 1..kMaxTileRows
  int64_t vectors;      // 1 or 2: columns are vectors * lanes
  // For kernels that pair: weights are byte steps (byte_steps.h) of one run, first `doubles` pairs of them, then `singles`.
  const int32_t* offsets = nullptr;  // of each step in its row
  int64_t doubles = 0, singles = 0;
  // The weights of the next task, which kernels may prefetch meanwhile.
  const void* next = nullptr;
  int64_t next_bytes = 0;
  // For kernels that skip: a run of zeros, or null. A run that begins here adds nothing.
  const void* zeros = nullptr;
  int64_t line = kMaxTileRows;  // rows whose runs tend to be zeros together lie in lines of so many
  // For kernels that take blocks: run t of block i is blocks[t * kTileBlocks + i].
  const RowBlock* blocks = nullptr;
};

// rescale to 8 bits: sums become bytes between low and high (in stored form).
struct ToBytes {
  ScaleBlocks scale;  // at the panel's first channel
  int32_t low;
  int32_t high;
};

// sums to int32: rescaled; or, in the form bytes, the byte that ToBytes would store and `add` more, which widens it.
struct ToWide {
  ScaleBlocks scale;  // at the panel's first channel; of any form but words
  int32_t low;
  int32_t high;
  int32_t add;
};

// sums to int16: rescaled, then saturated, then held between low and high.
struct ToWords {
  ScaleBlocks scale;  // at the panel's first channel; of any form but bytes
  int32_t low;
  int32_t high;
};

// sum = rescale(sums) + shortcut, then rescale to 8 bits. The shortcut is either bytes, rescaled, or int32. Where
// `shifted` has data, it replaces both rescales before the sum.
struct Residual {
  ScaleBlocks scale;           // at the panel's first channel; left or integers
  ByteBlocks shortcut_scale;   // of bytes
  const void* shortcut;        // at the tile's first row and the panel's first channel
  int64_t shortcut_pitch;      // elements
  bool shortcut_is_wide;       // int32, added as it is
  ShiftBlocks shifted;         // no data where a rescale is something else; only with it `out` may be short, and then has its constants
  ToBytes out;
};

// How sums are rescaled before a shortcut is added.
enum class Own { left, integers, shifted };

// What kernels that take blocks of rows need besides.
struct BlockKernels {
  // Called on every thread before and after all products of a step.
  void (*begin)();
  void (*end)();
  // Copies `length` elements of up to kBlockRows rows side by side, as a block of pitch kBlockDepth and step planes * kPlane. Of bytes,
  // all up to the next multiple of kBlockDepth are read.
  void (*copy)(const void* const* rows, int64_t row_count, int64_t length, uint8_t* to);
  // 1: rows are bytes. 2: rows are 16-bit integers, which are always copied: the low bytes of kBlockDepth columns, then their high bytes.
  int64_t planes;
};

struct ProductKernels {
  int64_t lanes;   // 32-bit integers in a vector
  int64_t rows;    // rows that a kernel takes at once; tiles have any number of them
  int64_t step8;   // elements of depth that a kernel takes at once from 8-bit rows
  int64_t step16;  // the same for 16-bit rows
  bool widens;     // 8-bit rows must be handed over as 16-bit integers, in steps of step8; weights stay bytes
  // To int32 [row_count][columns]; x is u8 (i16 if `widens`), weights are int8.
  void (*sums8)(const ProductTask&, int32_t* out);
  // The same on i16 rows with i16 weights.
  void (*sums16)(const ProductTask&, int32_t* out);
  // What follows, by 8-bit rows; null where kernels have only sums. To bytes, `columns` of them in each row, rows `pitch` apart.
  void (*bytes8)(const ProductTask&, const ToBytes&, int64_t columns, uint8_t* to, int64_t pitch);
  void (*residual8)(const ProductTask&, const Residual&, int64_t columns, uint8_t* to, int64_t pitch);
  // To int32, `columns` of them in each row, rows `pitch` apart.
  void (*wide8)(const ProductTask&, const ToWide&, int64_t columns, int32_t* to, int64_t pitch);
  // To int16, `columns` of them in each row, rows `pitch` apart.
  void (*words8)(const ProductTask&, const ToWords&, int64_t columns, int16_t* to, int64_t pitch);
  // To bytes and to int16 on i16 rows, or null.
  void (*bytes16)(const ProductTask&, const ToBytes&, int64_t columns, uint8_t* to, int64_t pitch);
  void (*words16)(const ProductTask&, const ToWords&, int64_t columns, int16_t* to, int64_t pitch);
  // Bytes to 16-bit integers; may read and write up to 15 elements further.
  void (*widen)(const uint8_t* from, int64_t count, int16_t* to);
  // Winograd's transforms (winograd.cpp), or null. The first: 6x6 pixels, less the zero point, to 36 places `stride` apart; may read and
  // write up to 15 channels further. The second: tiles side by side, from 36 places `stride` apart of sums [tile][width], divided by 576,
  // plus the bias, to out[4 lines][4 pixels of each tile][columns].
  void (*transform_tile)(const uint8_t* const* pixels, int32_t zero_point, int64_t channels, int16_t* to, int64_t stride);
  void (*untransform_tiles)(const int32_t* sums, int64_t stride, int64_t tiles, const int32_t* bias, int64_t width, int64_t columns,
                            int32_t* out);
  // Runs `rounds` rounds of the best dot products in registers; returns the number of multiply-accumulates.
  int64_t (*peak)(int64_t rounds);
  bool pairs = false;  // 8-bit weights must be byte steps
  const ProductKernels* by_bytes = nullptr;  // faster kernels, which pair, for weights that suit
  bool less_128 = false;  // 8-bit rows are multiplied as bytes with a sign, 128 less than stored ones: biases make up for it
  bool skips = false;  // leaves out runs of zeros
  const ProductKernels* by_quads = nullptr;  // those that take 8-bit rows in steps of 4, if these take other steps
  const BlockKernels* blocks = nullptr;      // rows come in blocks
  bool odd_bytes = false;                    // bytes8 and bytes16 have ScaleForm::odd_bytes
  bool halves = false;                       // they have ScaleForm::half_bytes, and words8 and words16 have half_words
  // Those that take 16-bit rows in blocks, if there are any: with weights of bytes, or with the low and then the high bytes of weights.
  const ProductKernels* word_blocks = nullptr;
  const ProductKernels* whole_blocks = nullptr;
};

}  // namespace cvm
