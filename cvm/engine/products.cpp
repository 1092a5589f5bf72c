// Convolutions and dense layers as products of rows with packed weights.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "linear.h"
#include "linear_weights.h"
#include "panels.h"
#include "register_epilogue.h"
#include "row_blocks.h"

namespace cvm {
namespace {

constexpr std::int64_t kBlockBytes = 192 * 1024;  // weights that stay in the second cache while all rows pass
constexpr std::int64_t kTileBytes = 24 * 1024;    // gathered rows that stay in the first cache while panels pass
constexpr std::int64_t kBroughtBytes = 32 * 1024;  // of the next weights, while products of those before them are computed
constexpr std::int64_t kLeastLine = 3;  // rows of shorter ones would wait for weights; of longer ones than a tile few lie outside
constexpr std::int64_t kEnoughPieces = 32;        // so that a few threads get equal shares
constexpr std::int64_t kSlots = 8;                // tiles whose rows stay prepared where preparing them is work
constexpr std::int64_t kSlotBytes = 1024 * 1024;  // and what all of them may take of the second cache

class Products final : public Kernel {
 public:
  Products(const StepCall& call, const ConvGeometry& geometry, Epilogue epilogue)
      : g_(geometry),
        x_(call.operand(0)),
        result_(call.result()),
        panels_(Panels::of(call, geometry)),
        biases_(panels_.biases(whole_biases(call), geometry.zero_point)),
        epilogue_(std::move(epilogue)),
        registers_(epilogue_.form() ? RegisterEpilogue::make(call, *epilogue_.form(), panels_.channels(), kernels_, biases_)
                                    : std::nullopt),
        first_stage_(epilogue_.takes_words() ? RegisterEpilogue::first_stage(call, epilogue_.chain().stages()[0],
                                                                             panels_.channels(), kernels_)
                                             : std::nullopt) {
    const std::int64_t longest = std::max(g_.group_channels(), panels_.gathered() ? 0 : panels_.depth());
    outside_.assign(static_cast<std::size_t>(longest * element() + 64), static_cast<std::uint8_t>(g_.zero_point));
    if (!panels_.gathered() && !panels_.lined()) list_taps();
    if (kernels_.blocks != nullptr) row_blocks_.emplace(*kernels_.blocks, panels_.runs(), panels_.depth(), g_.row() / panels_.runs());
    cut();
  }

  std::int64_t pieces() const override { return row_tiles_ * static_cast<std::int64_t>(blocks_.size()); }
  std::int64_t multiply_accumulates() const override {
    return g_.out_pixels() * g_.outputs * g_.row();
  }
  const char* epilogue() const override { return registers_ ? "registers" : epilogue_.path(); }
  const char* products() const override {
    if (row_blocks_) return "blocks";
    return x_.dtype == DType::i16 || kernels_.widens ? "words" : "bytes";
  }
  std::int64_t scratch_bytes() const override { return slots_at() + slots_ * slot_bytes() + 64; }

  bool take(const Kernel& former) override {
    const auto* producer = dynamic_cast<const Products*>(&former);
    if (producer == nullptr || !registers_ || !registers_->adds_passed() || !producer->gives_tiles(panels_.list())) return false;
    former_ = producer;
    choose_slots();
    return true;
  }

  void run(const Buffers& buffers, Part part, std::byte* scratch) const override {
    const Products* former = buffers.every_result ? nullptr : former_;
    const BlockKernels* by_blocks = row_blocks_ ? kernels_.blocks : nullptr;
    if (former != nullptr && former->row_blocks_) by_blocks = former->kernels_.blocks;
    if (by_blocks != nullptr) by_blocks->begin();
    std::byte* const slots = scratch + slots_at();
    const std::int64_t whole_slot = slot_bytes(), own_slot = slot_bytes(tile_rows_);
    std::array<Ready, kSlots> ready;
    for (std::int64_t piece = part.begin; piece < part.end; ++piece) {
      const Block& block = blocks_[static_cast<std::size_t>(piece / row_tiles_)];
      const std::int64_t tile = piece % row_tiles_, group = panels_.list()[block.first].group, slot = tile % slots_;
      const std::int64_t first = first_row(tile), last = first_row(tile + 1);
      Ready& entry = ready[static_cast<std::size_t>(slot)];
      if (tile != entry.tile || group != entry.group) {
        std::byte* at = slots + slot * whole_slot;
        entry = {tile, group, prepare(buffers, group, first, last - first, at), {}};
        if (former != nullptr) entry.former = former->prepare(buffers, group, first, last - first, at + own_slot);
      }
      run_tile(buffers, block, first, entry, former, scratch);
    }
    if (by_blocks != nullptr) by_blocks->end();
  }

 private:
  struct Block {  // neighbouring panels of one group
    std::size_t first, last;
  };
  struct Rows {  // of a tile, where products find them
    std::int64_t count = 0;
    const void* const* pointers = nullptr;
    const RowBlock* blocks = nullptr;
  };
  struct Ready {  // rows that are prepared: with few tiles, one block after the other takes the same
    std::int64_t tile = -1, group = -1;
    Rows rows, former;
  };
  struct Pixel {  // of the output
    std::int64_t image, line, column;
  };
  struct Inside {  // the columns of the output whose runs begin and end inside a line of x, and where that of column 0 begins
    std::int64_t begin, end, at;
  };

  std::int64_t element() const { return size_of(x_.dtype); }
  std::int64_t pointer_bytes() const {
    return divide_up(panels_.runs() * kMaxTileRows * std::int64_t{sizeof(void*)}, 64) * 64;
  }
  std::int64_t gathered_row_bytes() const {
    return panels_.gathered() ? divide_up(panels_.depth() * (kernels_.widens ? 2 : element()) + 64, 64) * 64 : 0;
  }

  // Copies have room for 15 elements further.
  std::int64_t line_bytes() const { return (panels_.depth() + 16) * element(); }
  std::int64_t copied_lines_bytes() const { return panels_.lined() ? panels_.runs() * line_bytes() : 0; }
  std::int64_t block_bytes() const { return row_blocks_ ? whole_lines(row_blocks_->scratch_bytes()) : 0; }
  // Of a slot: for a tile of so many rows of this step, or for this step and the former.
  std::int64_t slot_bytes(std::int64_t rows) const {
    return pointer_bytes() + block_bytes() + whole_lines(rows * (gathered_row_bytes() + copied_lines_bytes()));
  }
  std::int64_t slot_bytes() const {
    return slot_bytes(tile_rows_) + (former_ == nullptr ? 0 : former_->slot_bytes(tile_rows_));
  }
  // Scratch: what the epilogue needs, a tile of the former's result, the slots.
  std::int64_t passed_at() const { return whole_lines(epilogue_.scratch_bytes()); }
  std::int64_t slots_at() const {
    return passed_at() + (former_ == nullptr ? 0 : kMaxTileRows * kMaxPanelColumns * std::int64_t{sizeof(std::int32_t)});
  }
  void choose_slots() {
    if (row_blocks_) slots_ = std::clamp<std::int64_t>(kSlotBytes / slot_bytes(), 1, std::min(kSlots, row_tiles_));
  }

  // Whether any tile of the result, of the same columns as these panels, can be computed by itself.
  bool gives_tiles(const std::vector<Panel>& panels) const {
    const auto same = [](const Panel& a, const Panel& b) {
      return a.group == b.group && a.channel == b.channel && a.columns == b.columns;
    };
    return registers_ && registers_->gives_wide() && !by_lines_ &&
           std::equal(panels.begin(), panels.end(), panels_.list().begin(), panels_.list().end(), same);
  }

  // Of a run of so many pixels that begins at this one, where the window is at the left border of x.
  Inside inside(std::int64_t from, std::int64_t pixels) const {
    const std::int64_t left = from - g_.pad_left, room = g_.width - pixels - left;
    const std::int64_t begin = left >= 0 ? 0 : std::min(divide_up(-left, g_.stride_right), g_.out_width);
    const std::int64_t end = room < 0 ? 0 : std::min(room / g_.stride_right + 1, g_.out_width);
    return {begin, std::max(begin, end), left * g_.pixel_pitch * element()};
  }

  void list_taps() {
    for (std::int64_t q = 0; q < g_.kernel_width; ++q) taps_.push_back(inside(q * g_.dilation_right, 1));
  }

  // Whether kernels skip what lies outside x: where the zeros that stand for it add nothing, and tiles of whole lines
  // pay.
  bool skips_outside() const {
    const std::int64_t bottom = (g_.out_height - 1) * g_.stride_down - g_.pad_top + reach_down_;
    const std::int64_t right = (g_.out_width - 1) * g_.stride_right - g_.pad_left + reach_right_;
    const bool reaches = g_.pad_top > 0 || g_.pad_left > 0 || bottom >= g_.height || right >= g_.width;
    return kernels_.skips && !panels_.gathered() && g_.zero_point == 0 && reaches && g_.out_width >= kLeastLine &&
           g_.out_width <= kMaxTileRows;
  }

  // The first row of a tile: it may lie anywhere, or it begins a line.
  std::int64_t first_row(std::int64_t tile) const {
    if (by_lines_) return g_.batch * g_.out_height * tile / row_tiles_ * g_.out_width;
    return g_.out_pixels() * tile / row_tiles_;
  }

  // Tiles of nearly equal height; blocks of panels small enough for the cache, and enough of both for several threads.
  void cut() {
    const std::int64_t by_cache_rows = gathered_row_bytes() == 0 ? kMaxTileRows : kTileBytes / gathered_row_bytes();
    const std::int64_t rows = std::clamp(by_cache_rows, kernels_.rows, kMaxTileRows);
    row_tiles_ = divide_up(g_.out_pixels(), rows / kernels_.rows * kernels_.rows);
    by_lines_ = skips_outside();
    if (by_lines_) row_tiles_ = divide_up(g_.batch * g_.out_height, kMaxTileRows / g_.out_width);
    for (std::int64_t tile = 0; tile < row_tiles_; ++tile) {
      tile_rows_ = std::max(tile_rows_, first_row(tile + 1) - first_row(tile));
    }
    choose_slots();
    const std::int64_t shares = divide_up(kEnoughPieces, row_tiles_);
    const std::int64_t total = static_cast<std::int64_t>(panels_.list().size());
    const std::int64_t by_cache =
        std::max<std::int64_t>(1, kBlockBytes / std::max<std::int64_t>(1, panels_.panel_bytes()));
    const std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(1, std::min(by_cache, total / shares)));
    for (std::size_t i = 0; i < panels_.list().size(); ++i) {
      const bool extend = !blocks_.empty() && i - blocks_.back().first < most &&
                          panels_.list()[i].group == panels_.list()[blocks_.back().first].group;
      if (extend) {
        blocks_.back().last = i + 1;
      } else {
        blocks_.push_back({i, i + 1});
      }
    }
  }

  // Prepares rows of x for one group of channels, so that products find them: lists and copies lie in a slot.
  Rows prepare(const Buffers& buffers, std::int64_t group, std::int64_t first, std::int64_t rows, std::byte* slot) const {
    const void** to = reinterpret_cast<const void**>(slot);
    std::byte* spare = slot + pointer_bytes() + block_bytes();
    const std::byte* x = buffers.read(x_) + group * g_.group_channels() * element();
    if (panels_.gathered()) {
      gather(x, first, rows, spare);
      for (std::int64_t r = 0; r < rows; ++r) to[r] = spare + r * gathered_row_bytes();
    } else if (panels_.lined()) {
      point_lines(x, first, rows, to, spare);
    } else {
      point(x, first, rows, to);
    }
    return {rows, to, row_blocks_ ? row_blocks_->list(to, rows, slot + pointer_bytes()) : nullptr};
  }

  void run_tile(const Buffers& buffers, const Block& block, std::int64_t first, const Ready& ready, const Products* former,
                std::byte* scratch) const {
    ProductTask task = task_of(ready.rows);
    if (former == nullptr) {
      for (std::size_t i = block.first; i < block.last; ++i) finish(buffers, for_panel(task, i, first), panels_.list()[i], first, scratch);
      return;
    }
    ProductTask before = former->task_of(ready.former);
    auto* passed = reinterpret_cast<std::int32_t*>(scratch + passed_at());
    for (std::size_t i = block.first; i < block.last; ++i) {
      const Panel& panel = panels_.list()[i];
      const std::int64_t column = former->panels_.list()[i].column;
      former->registers_->to_wide(former->for_panel(before, i, first), column, panel.columns, passed, panel.columns);
      registers_->run(for_panel(task, i, first), buffers, first, panel.channel, panel.column, panel.columns, passed);
    }
  }

  ProductTask task_of(const Rows& rows) const {
    ProductTask task{rows.pointers, panels_.runs(), panels_.depth(), nullptr, nullptr, rows.count, 0};
    task.blocks = rows.blocks;
    if (by_lines_) {
      task.zeros = outside();
      task.line = g_.out_width;
    }
    return task;
  }

  // Sets the task to the panel of this number; its rows stay the same.
  const ProductTask& for_panel(ProductTask& task, std::size_t number, std::int64_t first) const {
    const Panel& panel = panels_.list()[number];
    task.weights = panels_.weights(panel);
    task.bias = biases_.data() + panel.column;
    task.vectors = panel.vectors;
    task.offsets = panels_.offsets(panel);
    task.doubles = panel.doubles;
    task.singles = panel.singles;
    if (first == 0 && number + 1 < panels_.list().size()) {  // so that the other rows find them near
      task.next = panels_.weights(panels_.list()[number + 1]);
      task.next_bytes = std::min(panels_.list()[number + 1].offset - panel.offset, kBroughtBytes);
    }
    return task;
  }

  void finish(const Buffers& buffers, const ProductTask& task, const Panel& panel, std::int64_t row,
              std::byte* scratch) const {
    if (registers_) {
      registers_->run(task, buffers, row, panel.channel, panel.column, panel.columns);
      return;
    }
    const Tile tile{task.row_count, panel.columns, panel.channel};
    if (first_stage_) {
      first_stage_->to_words(task, panel.column, panel.columns, epilogue_.words(scratch));
      epilogue_.run_from_words(buffers, row, tile, scratch);
      return;
    }
    std::int32_t* sums = Epilogue::sums(scratch);
    x_.dtype == DType::i16 ? kernels_.sums16(task, sums) : kernels_.sums8(task, sums);
    const std::int64_t width = panel.vectors * kernels_.lanes;
    if (width != panel.columns) {
      for (std::int64_t r = 1; r < task.row_count; ++r) {
        std::memmove(sums + r * panel.columns, sums + r * width, static_cast<std::size_t>(panel.columns) * 4);
      }
    }
    epilogue_.run(buffers, row, tile, scratch);
  }

  // Whether each row is the pixel of its own place.
  bool is_in_order() const {
    return g_.kernel_height * g_.kernel_width == 1 && g_.out_height == g_.height && g_.out_width == g_.width && g_.pad_top == 0 &&
           g_.pad_left == 0 && g_.stride_down == 1 && g_.stride_right == 1;
  }

  Pixel pixel_at(std::int64_t row) const {
    const std::int64_t column = row % g_.out_width, line = row / g_.out_width % g_.out_height;
    return {row / g_.out_width / g_.out_height, line, column};
  }

  // Goes on to the next pixel of the result without divisions, which cost more than the products of a short row.
  void advance(Pixel& pixel) const {
    if (++pixel.column < g_.out_width) return;
    pixel.column = 0;
    if (++pixel.line < g_.out_height) return;
    pixel.line = 0;
    ++pixel.image;
  }

  const std::byte* outside() const { return reinterpret_cast<const std::byte*>(outside_.data()); }

  // The line of x under tap row p, or nullptr if it lies outside.
  const std::byte* line_at(const std::byte* x, const Pixel& pixel, std::int64_t p) const {
    const std::int64_t v = pixel.line * g_.stride_down - g_.pad_top + p * g_.dilation_down;
    if (v < 0 || v >= g_.height) return nullptr;
    return x + (pixel.image * g_.height + v) * g_.width * g_.pixel_pitch * element();
  }

  // Calls with the first pixel of each line's part of some rows, with its place among them and with the count of the part.
  template <typename Body>
  void for_lines(std::int64_t first, std::int64_t rows, const Body& body) const {
    Pixel pixel = pixel_at(first);
    for (std::int64_t row = 0; row < rows;) {
      const std::int64_t count = std::min(rows - row, g_.out_width - pixel.column);
      body(pixel, row, count);
      row += count;
      pixel.column += count - 1;
      advance(pixel);
    }
  }

  static void point_at(const std::byte* from, std::int64_t step, std::int64_t count, const void** pointers) {
    for (std::int64_t i = 0; i < count; ++i, from += step) pointers[i] = from;
  }

  // Pointers to runs of neighbouring pixels of a line of x, or to the one that stands for places outside. Gives which of the
  // pixels have a run inside the line.
  Part point_inside(const Inside& run, const std::byte* line, std::int64_t column, std::int64_t count, const void** pointers) const {
    const std::int64_t begin = line == nullptr ? count : std::clamp<std::int64_t>(run.begin - column, 0, count);
    const std::int64_t end = line == nullptr ? count : std::clamp<std::int64_t>(run.end - column, begin, count);
    std::fill(pointers, pointers + begin, outside());
    const std::int64_t step = g_.stride_right * g_.pixel_pitch * element();
    if (begin < end) point_at(line + (run.at + (column + begin) * step), step, end - begin, pointers + begin);
    std::fill(pointers + end, pointers + count, outside());
    return {begin, end};
  }

  // The run of x under tap column q of a line, or the one that stands for places outside.
  const std::byte* run_at(const std::byte* line, std::int64_t left, std::int64_t q) const {
    const std::int64_t u = left + q * g_.dilation_right;
    return line == nullptr || u < 0 || u >= g_.width ? outside() : line + u * g_.pixel_pitch * element();
  }

  // Pointers to every run of every row: no byte of x is copied. Those to one tap of a line's neighbouring pixels are as far
  // from each other as the pixels.
  void point(const std::byte* x, std::int64_t first, std::int64_t rows, const void** pointers) const {
    if (in_order_) return point_at(x + first * g_.pixel_pitch * element(), g_.pixel_pitch * element(), rows, pointers);
    for_lines(first, rows, [&](const Pixel& pixel, std::int64_t row, std::int64_t count) {
      const void** next = pointers + row;
      for (std::int64_t p = 0; p < g_.kernel_height; ++p) {
        const std::byte* line = line_at(x, pixel, p);
        for (const Inside& tap : taps_) {
          point_inside(tap, line, pixel.column, count, next);
          next += kMaxTileRows;
        }
      }
    });
  }

  // Pointers to whole lines of windows: only those that reach outside x are copied, to `spare`. What is read past the end of
  // a line meets weights of 0.
  void point_lines(const std::byte* x, std::int64_t first, std::int64_t rows, const void** pointers, std::byte* spare) const {
    const std::int64_t pixel_bytes = g_.channels * element();
    for_lines(first, rows, [&](const Pixel& pixel, std::int64_t row, std::int64_t count) {
      const void** next = pointers + row;
      for (std::int64_t p = 0; p < g_.kernel_height; ++p, next += kMaxTileRows) {
        const std::byte* line = line_at(x, pixel, p);
        const Part whole = point_inside(window_, line, pixel.column, count, next);
        const auto copy_line = [&](std::int64_t r) {
          const std::int64_t left = (pixel.column + r) * g_.stride_right - g_.pad_left;
          for (std::int64_t q = 0; q < g_.kernel_width; ++q) copy(run_at(line, left, q), g_.channels, spare + q * pixel_bytes);
          next[r] = spare;
          spare += line_bytes();
        };
        if (line == nullptr) continue;
        for (std::int64_t r = 0; r < whole.begin; ++r) copy_line(r);
        for (std::int64_t r = whole.end; r < count; ++r) copy_line(r);
      }
    });
  }

  // Copies (or widens) the runs of every row one after the other.
  void gather(const std::byte* x, std::int64_t first, std::int64_t rows, std::byte* to) const {
    const std::int64_t size = kernels_.widens || x_.dtype == DType::i16 ? 2 : 1, channels = g_.group_channels();
    const std::int64_t line_elements = channels * g_.kernel_width;
    Pixel pixel = pixel_at(first);
    for (std::int64_t r = 0; r < rows; ++r, advance(pixel), to += gathered_row_bytes()) {
      const std::int64_t left = pixel.column * g_.stride_right - g_.pad_left, top = pixel.line * g_.stride_down - g_.pad_top;
      const bool whole = merges_ && left >= 0 && left + g_.kernel_width <= g_.width;
      std::byte* next = to;
      if (whole && top >= 0 && top + reach_down_ < g_.height) {  // nearly always
        const std::byte* line = line_at(x, pixel, 0) + left * g_.pixel_pitch * element();
        for (std::int64_t p = 0; p < g_.kernel_height; ++p, line += tap_line_bytes_, next += line_elements * size) {
          copy(line, line_elements, next);
        }
        continue;
      }
      for (std::int64_t p = 0; p < g_.kernel_height; ++p) {
        const std::byte* line = line_at(x, pixel, p);
        if (whole && line != nullptr) {
          copy(line + left * g_.pixel_pitch * element(), line_elements, next);
          next += line_elements * size;
        } else {
          for (std::int64_t q = 0; q < g_.kernel_width; ++q, next += channels * size)
            copy(run_at(line, left, q), channels, next);
        }
      }
    }
  }

  // A run into the gathered row. Bytes may be read and written up to 15 elements further: both sides have that room.
  void copy(const std::byte* from, std::int64_t count, std::byte* to) const {
    if (x_.dtype == DType::i16) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * 2);
    } else if (kernels_.widens) {
      kernels_.widen(reinterpret_cast<const std::uint8_t*>(from), count, reinterpret_cast<std::int16_t*>(to));
    } else {
      for (std::int64_t i = 0; i < count; i += 16) std::memcpy(to + i, from + i, 16);
    }
  }

  ConvGeometry g_;
  Operand x_, result_;
  const Panels& panels_;
  Aligned<std::int32_t> biases_;  // of each column of the panels
  const ProductKernels& kernels_ = panels_.kernels();
  Epilogue epilogue_;
  std::optional<RegisterEpilogue> registers_, first_stage_;
  std::vector<std::uint8_t> outside_;  // a run of zero points
  std::optional<RowBlocks> row_blocks_;  // for kernels that take them
  const Products* former_ = nullptr;     // whose result this step computes tile by tile
  std::vector<Block> blocks_;
  std::int64_t row_tiles_ = 1, slots_ = 1;
  std::int64_t tile_rows_ = 1;  // of the highest tile
  bool by_lines_ = false;       // tiles are whole lines
  // From the top left of a window to its last line and column.
  std::int64_t reach_down_ = (g_.kernel_height - 1) * g_.dilation_down;
  std::int64_t reach_right_ = (g_.kernel_width - 1) * g_.dilation_right;
  std::vector<Inside> taps_;
  Inside window_ = inside(0, g_.kernel_width);
  std::int64_t tap_line_bytes_ = g_.dilation_down * g_.width * g_.pixel_pitch * element();  // from tap to tap
  bool in_order_ = is_in_order();
  // Whether neighbouring taps of one line lie side by side in x.
  bool merges_ = g_.dilation_right == 1 && g_.groups == 1 && g_.pixel_pitch == g_.channels;
};

}  // namespace

Made make_products(const StepCall& call, const ConvGeometry& geometry) {
  Expected<Epilogue> epilogue = Epilogue::make(call);
  if (!epilogue) return epilogue.problem();
  return Made(std::make_unique<Products>(call, geometry, std::move(*epilogue)));
}

}  // namespace cvm
