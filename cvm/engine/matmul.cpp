// Batched products of two computed matrices. Both are turned to 16-bit integers around their zero points as they are
// needed, a panel of b at a time, so that no correction for zero points is left over. Where kernels take bytes as they are and
// b has no zero point, as in attention, rows of a stay where they lie, and the zero point of a meets the sums of b's columns.
#include <algorithm>
#include <cstring>

#include "linear.h"

namespace cvm {
namespace {

constexpr std::int64_t kDepth = 1024;  // elements of K at a time: a panel and a tile of rows stay in the nearest caches
constexpr std::int64_t kShallow = 256;  // up to here as many rows as a tile has stay there
constexpr std::int64_t kPanels = 4;    // panels of one piece, which share the rows of a
constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kTotals = kBlockRows * kMaxPanelColumns;  // of one panel

class Matmul final : public Kernel {
 public:
  Matmul(const StepCall& call, std::int64_t a_zp, std::int64_t b_zp, Epilogue epilogue)
      : kernels_(call.kernels.products->by_quads != nullptr ? *call.kernels.products->by_quads : *call.kernels.products),
        elements_(*call.kernels.elements),
        a_(call.operand(0)),
        b_(call.operand(1)),
        a_zp_(static_cast<std::int32_t>(a_zp + (a_.biased() ? 128 : 0))),
        b_zp_(static_cast<std::int32_t>(b_zp + (b_.biased() ? 128 : 0))),
        bytes_(a_.biased() && b_.biased() && b_zp == 0 && !kernels_.widens),
        multiplied_zp_(a_zp_ - (kernels_.less_128 ? 128 : 0)),
        epilogue_(std::move(epilogue)) {}

  std::int64_t pieces() const override { return a_.shape[0] * row_blocks() * column_blocks(); }
  std::int64_t multiply_accumulates() const override { return a_.shape.elements() * columns(); }
  const char* epilogue() const override { return epilogue_.path(); }
  std::int64_t scratch_bytes() const override {
    return epilogue_.scratch_bytes() + 2 * tile_bytes() + row_bytes() + kPanels * panel_bytes() + bias_bytes();
  }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const std::int64_t block = piece % column_blocks(), rest = piece / column_blocks();
      run_block(buffers, rest / row_blocks(), rest % row_blocks() * kBlockRows, block * kPanels * width(), scratch);
    }
  }

 private:
  std::int64_t rows() const { return a_.shape[1]; }
  std::int64_t depth() const { return a_.shape[2]; }
  std::int64_t columns() const { return b_.shape[2]; }
  std::int64_t width() const { return 2 * kernels_.lanes; }
  std::int64_t row_blocks() const { return divide_up(rows(), kBlockRows); }
  std::int64_t column_blocks() const { return divide_up(columns(), kPanels * width()); }
  static std::int64_t tile_bytes() { return kBlockRows * kMaxPanelColumns * kPanels * 4; }
  static std::int64_t row_bytes() { return kMaxTileRows * kDepth * 2; }
  static std::int64_t panel_bytes() { return kMaxPanelColumns * kDepth * 2; }
  static std::int64_t bias_bytes() { return kPanels * kMaxPanelColumns * 4; }

  // One block: panels of b, rows of a, and where sums go that do not become results at once.
  struct Block {
    std::int64_t batch, row, last_row, column, last_column;
    std::int16_t *a, *b;
    std::int32_t *totals, *part, *bias;
  };

  // Sums over K in parts of kDepth, kept in 32 bits; then the epilogue, tile by tile.
  void run_block(const Buffers& buffers, std::int64_t batch, std::int64_t row, std::int64_t column,
                 std::byte* scratch) const {
    std::byte* at = scratch + epilogue_.scratch_bytes();
    std::byte* rows_at = at + 2 * tile_bytes();
    std::byte* panels_at = rows_at + row_bytes();
    const Block block{batch,
                      row,
                      std::min(rows(), row + kBlockRows),
                      column,
                      std::min(columns(), column + kPanels * width()),
                      reinterpret_cast<std::int16_t*>(rows_at),
                      reinterpret_cast<std::int16_t*>(panels_at),
                      reinterpret_cast<std::int32_t*>(at),
                      reinterpret_cast<std::int32_t*>(at + tile_bytes()),
                      reinterpret_cast<std::int32_t*>(panels_at + kPanels * panel_bytes())};
    std::fill_n(block.bias, kPanels * kMaxPanelColumns, 0);
    for (std::int64_t k = 0; k < depth(); k += kDepth) add_products(buffers, block, k, scratch);
    for (std::int64_t c = column; c < block.last_column; c += width()) {
      const std::int64_t count = std::min(width(), block.last_column - c);
      if (!at_once(count)) {
        finish(buffers, batch, row, block.last_row, c, count, block.totals + (c - column) / width() * kTotals, scratch);
      }
    }
  }

  // Whether sums of so many columns are those of the epilogue's tile as a kernel writes them.
  bool at_once(std::int64_t columns_here) const { return depth() <= kDepth && columns_here == width(); }

  // The products of elements k.. of K.
  void add_products(const Buffers& buffers, const Block& block, std::int64_t k, std::byte* scratch) const {
    const std::int64_t count = std::min(kDepth, depth() - k);
    const std::int64_t padded = bytes_ ? divide_up(count, 4) * 4 : divide_up(count, 2) * 2;
    for (std::int64_t c = block.column; c < block.last_column; c += width()) {
      const std::int64_t panel = (c - block.column) / width(), columns_here = std::min(width(), block.last_column - c);
      std::int16_t* to = block.b + panel * kMaxPanelColumns * kDepth;
      if (bytes_) {
        pack_bytes(buffers, block.batch, k, count, c, columns_here, reinterpret_cast<std::int8_t*>(to), bias_of(block, panel));
      } else {
        pack(buffers, block.batch, k, count, c, columns_here, to);
      }
    }
    const std::int64_t step = count <= kShallow ? kMaxTileRows : kernels_.rows;
    for (std::int64_t r = block.row; r < block.last_row; r += step) {
      const std::int64_t tile_rows = std::min(step, block.last_row - r);
      const void* pointers[kMaxTileRows];
      for (std::int64_t i = 0; i < tile_rows; ++i) {
        pointers[i] = bytes_ ? row_of_a(buffers, block.batch, r + i, k) : reinterpret_cast<std::byte*>(block.a + i * kDepth);
        if (!bytes_) widen(buffers, block.batch, r + i, k, count, block.a + i * kDepth);
      }
      for (std::int64_t c = block.column; c < block.last_column; c += width()) {
        const std::int64_t panel = (c - block.column) / width();
        const ProductTask task{pointers, 1, padded, block.b + panel * kMaxPanelColumns * kDepth, bias_of(block, panel), tile_rows, 2};
        const auto sums = bytes_ ? kernels_.sums8 : kernels_.sums16;
        if (at_once(std::min(width(), block.last_column - c))) {
          sums(task, Epilogue::sums(scratch));
          epilogue_.run(buffers, block.batch * rows() + r, {tile_rows, width(), c}, scratch);
          continue;
        }
        std::int32_t* total = block.totals + panel * kTotals + (r - block.row) * width();
        sums(task, k == 0 ? total : block.part);
        if (k > 0) add(block.part, tile_rows * width(), total);
      }
    }
  }

  static std::int32_t* bias_of(const Block& block, std::int64_t panel) { return block.bias + panel * kMaxPanelColumns; }

  static void add(const std::int32_t* sums, std::int64_t count, std::int32_t* total) {
    for (std::int64_t i = 0; i < count; ++i) {
      total[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(total[i]) + static_cast<std::uint32_t>(sums[i]));
    }
  }

  void finish(const Buffers& buffers, std::int64_t batch, std::int64_t row, std::int64_t last, std::int64_t column,
              std::int64_t count, const std::int32_t* totals, std::byte* scratch) const {
    for (std::int64_t r = row; r < last; r += kMaxTileRows) {
      const std::int64_t tile_rows = std::min(kMaxTileRows, last - r);
      std::int32_t* sums = Epilogue::sums(scratch);
      for (std::int64_t i = 0; i < tile_rows; ++i)
        std::copy_n(totals + (r - row + i) * width(), count, sums + i * count);
      epilogue_.run(buffers, batch * rows() + r, {tile_rows, count, column}, scratch);
    }
  }

  const std::byte* row_of_a(const Buffers& buffers, std::int64_t batch, std::int64_t row, std::int64_t k) const {
    return buffers.read(a_) + ((batch * rows() + row) * a_.pitch + k) * size_of(a_.dtype);
  }

  void widen(const Buffers& buffers, std::int64_t batch, std::int64_t row, std::int64_t k, std::int64_t count,
             std::int16_t* to) const {
    const std::byte* from = row_of_a(buffers, batch, row, k);
    if (a_.dtype == DType::i16) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * 2);
    } else {
      elements_.centre8(a_zp_, count, reinterpret_cast<const std::uint8_t*>(from), to);
    }
    if (count % 2 == 1) to[count] = 0;
  }

  // Pairs of K side by side for each column; spare columns and an odd end of K are 0.
  void pack(const Buffers& buffers, std::int64_t batch, std::int64_t k, std::int64_t count, std::int64_t column,
            std::int64_t columns_here, std::int16_t* to) const {
    const std::int64_t size = size_of(b_.dtype);
    const std::byte* from = buffers.read(b_) + ((batch * depth() + k) * b_.pitch + column) * size;
    if (columns_here < width()) std::fill_n(to, divide_up(count, 2) * 2 * width(), std::int16_t{0});
    for (std::int64_t i = 0; i < count; i += 2, from += 2 * b_.pitch * size, to += 2 * width()) {
      const bool last = i + 1 == count;
      pair(from, last ? from : from + b_.pitch * size, columns_here, to);
      for (std::int64_t c = 0; last && c < columns_here; ++c) to[2 * c + 1] = 0;
    }
  }

  // Four of K side by side for each column, as signed bytes; spare columns and the end of K are 0. sum((a - z) b) =
  // sum(a b) - z sum(b), modulo 2^32.
  void pack_bytes(const Buffers& buffers, std::int64_t batch, std::int64_t k, std::int64_t count, std::int64_t column,
                  std::int64_t columns_here, std::int8_t* to, std::int32_t* bias) const {
    const auto* from = reinterpret_cast<const std::uint8_t*>(buffers.read(b_)) + (batch * depth() + k) * b_.pitch + column;
    std::uint8_t zeros[kMaxPanelColumns];
    std::fill_n(zeros, kMaxPanelColumns, std::uint8_t{128});
    if (columns_here < width()) std::fill_n(to, divide_up(count, 4) * 4 * width(), std::int8_t{0});
    std::fill_n(bias, kMaxPanelColumns, 0);
    for (std::int64_t i = 0; i < count; i += 4, to += 4 * width()) {
      const std::uint8_t* rows_of_b[4];
      for (std::int64_t row = 0; row < 4; ++row) rows_of_b[row] = i + row < count ? from + (i + row) * b_.pitch : zeros;
      elements_.quads8(columns_here, rows_of_b, to, bias);
    }
    for (std::int64_t c = 0; c < columns_here; ++c) {
      bias[c] = static_cast<std::int32_t>(0u - static_cast<std::uint32_t>(multiplied_zp_) * static_cast<std::uint32_t>(bias[c]));
    }
  }

  void pair(const std::byte* first, const std::byte* second, std::int64_t count, std::int16_t* to) const {
    if (b_.dtype == DType::i16) {
      elements_.pair16(count, reinterpret_cast<const std::int16_t*>(first), reinterpret_cast<const std::int16_t*>(second), to);
    } else {
      elements_.pair8(b_zp_, count, reinterpret_cast<const std::uint8_t*>(first),
                      reinterpret_cast<const std::uint8_t*>(second), to);
    }
  }

  const ProductKernels& kernels_;
  const ElementKernels& elements_;
  Operand a_, b_;
  std::int32_t a_zp_, b_zp_;
  bool bytes_;
  std::int32_t multiplied_zp_;  // of bytes of a as kernels multiply them
  Epilogue epilogue_;
};

}  // namespace

Made make_step_matmul(const StepCall& call) {
  CVM_REQUIRE(call.spec.operands.size() >= 2 && call.spec.parameters.empty(), "takes a and b");
  const Operand &a = call.operand(0), &b = call.operand(1);
  const bool bytes = a.dtype == DType::i8 && b.dtype == DType::i8 && a.biased() && b.biased();
  CVM_REQUIRE(bytes || (a.dtype == DType::i16 && b.dtype == DType::i16), "a and b are not both stored i8 or both i16");
  CVM_REQUIRE(a.shape.rank == 3 && b.shape.rank == 3 && a.shape[0] == b.shape[0] && a.shape[2] == b.shape[1],
              "the shapes are not [B,M,K] and [B,K,N]");
  const Operand& result = call.result();
  CVM_REQUIRE(result.shape.last() == b.shape[2] && result.rows() == a.shape[0] * a.shape[1],
              "the result has not a's rows of b's columns");
  const auto *a_zp = call.ints("a_zp", 1), *b_zp = call.ints("b_zp", 1);
  CVM_REQUIRE(a_zp && b_zp, "a_zp or b_zp is missing");
  for (const std::int64_t zero_point : {(*a_zp)[0], (*b_zp)[0]}) {
    CVM_REQUIRE(bytes ? -128 <= zero_point && zero_point <= 127 : zero_point == 0, "a zero point does not fit");
  }
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Matmul>(call, (*a_zp)[0], (*b_zp)[0], std::move(*epilogue)));
}

}  // namespace cvm
