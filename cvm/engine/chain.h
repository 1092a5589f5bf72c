// Stages in a row over one tile: what a fused step does between its accumulator, or the tensors it loads, and its
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stage.h"

namespace cvm {

constexpr std::int64_t kTileElements = 1024;  // behind an accumulator
constexpr std::int64_t kLongTileElements = 3072;  // of a chain by itself: more elements share the fixed cost of a tile
constexpr std::size_t kMaxLoads = 16;
constexpr std::size_t kMaxStages = 64;

// Where one tile lies in memory. Strides count elements; a column stride is 1, or 0 for a repeated value.
struct TileOperand {
  const std::byte* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

class Chain {
 public:
  // Checks every stage. `has_accumulator`: register 0 is an i32 tile that the caller fills in.
  static Expected<Chain> make(const StepSpec& step, std::span<const Constant> constants, const Kernels& kernels,
                              bool has_accumulator);

  std::int64_t scratch_bytes() const { return (slots_ * 2 + 1) * slot_elements() * 2; }
  static std::int32_t* accumulator(std::byte* scratch) { return reinterpret_cast<std::int32_t*>(scratch); }
  // Whether a caller may store the result of the first stage, in 16 bits, at `words` instead of filling in the
  // accumulator. It may not if the first stage is no rescale to 16 bits, or if another stage reads its result as a
  // tile.
  bool takes_words() const { return takes_words_; }
  std::int16_t* words(std::byte* scratch) const {
    return reinterpret_cast<std::int16_t*>(accumulator(scratch) + slots_ * slot_elements());
  }
  const std::vector<Stage>& stages() const { return stages_; }
  // How many stages are joined (joined.h) to a stage that reads the accumulator and comes before all others. run_front
  // runs that stage alone, and its results replace the accumulator.
  std::size_t front() const { return front_; }
  void run_front(const Tile& tile, std::byte* scratch) const;
  DType dtype() const { return result_dtype_; }

  // Runs all stages over one tile and stores the result, whose rows are `pitch` elements apart. `operands` are those of
  // the step; only the loaded ones are looked at. `from_words`: runs all stages but the first, over the integers at
  // `words`.
  void run(const Tile& tile, std::span<const TileOperand> operands, std::byte* result, std::int64_t pitch,
           std::byte* scratch, bool from_words = false) const;

 private:
  struct Link {
    int sources[3] = {0, 0, 0};  // registers
    int slot = 0;                // of the scratch, where its result goes unless that lies somewhere already
    int operand = -1;            // of a load
    std::int32_t bias = 0;       // of a load
    bool in_place = false;       // a load whose readers all take elements as they lie
    bool repeats = false;        // and a single one for each row
    bool unread = false;         // nothing is done
  };
  // Returns where the elements lie: in the tile `out`, or in the operand itself where nothing needs to be done.
  Source load(const Link& link, const Stage& stage, const Tile& tile, const TileOperand& operand, std::int32_t* out) const;
  void load_row(const Link& link, const Stage& stage, std::int64_t width, const TileOperand& operand, std::int64_t row,
                std::int32_t* out) const;
  void store(const Tile& tile, const std::int32_t* x, std::byte* result, std::int64_t pitch) const;
  Problem add(const StageSpec& spec, const StepSpec& step, std::span<const Constant> constants,
              std::vector<DType>& dtypes);
  std::int64_t slot_elements() const { return first_ == 1 ? kTileElements : kLongTileElements; }
  void join(StepSpec& step);
  void assign_slots(const StepSpec& step);
  void fold_zero_points(const StepSpec& step, std::span<const Constant> constants);
  bool takes_zero_points(const StepSpec& step, std::size_t rescale, std::span<const Constant> constants) const;
  void find_loads_in_place(const StepSpec& step, std::span<const std::size_t> root);

  const Kernels* kernels_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<Link> links_;
  int slots_ = 1;
  bool takes_words_ = false;
  std::size_t first_ = 0;  // register of the first stage
  std::size_t front_ = 0;
  DType result_dtype_ = DType::i32;
  std::int32_t result_bias_ = 0;
};

}  // namespace cvm
