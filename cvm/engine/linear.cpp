// Which body a linear step gets, and the epilogue that they share.
#include "linear.h"

#include <algorithm>

namespace cvm {
namespace {

// Whether a tensor is one that tiles of a matrix can load: row by row, one row for all, or one value per row.
bool rows_stride(const Operand& operand, const Operand& result, std::int64_t& stride) {
  if (operand.rows() == result.rows()) {
    stride = operand.pitch;
    return true;
  }
  stride = 0;
  return operand.rows() == 1;
}

}  // namespace

Expected<Epilogue> Epilogue::make(const StepCall& call) {
  Expected<Chain> chain = Chain::make(call.spec, call.constants, call.kernels, true);
  if (!chain) return chain.problem();
  Epilogue epilogue(std::move(*chain));
  epilogue.result_ = call.result();
  epilogue.loads_.resize(call.spec.operands.size());
  for (const StageSpec& stage : call.spec.stages) {
    if (stage.opcode != Opcode::load_) continue;
    const auto place = static_cast<std::size_t>(stage.operand);
    const Operand& operand = call.operand(place);
    Loaded& loaded = epilogue.loads_[place];
    loaded.operand = operand;
    loaded.used = true;
    loaded.column_stride = operand.shape.last() == 1 ? 0 : 1;
    CVM_REQUIRE(operand.shape.last() == 1 || operand.shape.last() == call.result().shape.last(),
                "a loaded operand does not broadcast to the result");
    CVM_REQUIRE(rows_stride(operand, call.result(), loaded.row_stride),
                "a loaded operand does not broadcast to the result");
  }
  const bool loads_turn = std::all_of(epilogue.loads_.begin(), epilogue.loads_.end(),
                                      [](const Loaded& loaded) { return !loaded.used || loaded.row_stride <= 1; });
  epilogue.turned_ = call.result().shape.last() == 1 && call.result().pitch == 1 && loads_turn;
  const std::optional<EpilogueForm> form = EpilogueForm::match(call, epilogue.chain_);
  if (form && !epilogue.turned_) epilogue.tile_ = TileEpilogue::make(call, *form);
  if (epilogue.chain_.front() == 0) epilogue.form_ = form;
  return epilogue;
}

void Epilogue::run(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const {
  if (tile_ && tile_->takes(tile)) {
    chain_.run_front(tile, scratch);
    return tile_->run(buffers, row, tile, sums(scratch));
  }
  run_chain(buffers, row, tile, scratch, false);
}

void Epilogue::run_on(std::int32_t* dense, const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const {
  if (tile_ && tile_->takes(tile) && chain_.front() == 0) return tile_->run(buffers, row, tile, dense);
  std::copy_n(dense, tile.rows * tile.width, sums(scratch));
  run(buffers, row, tile, scratch);
}

void Epilogue::run_from_words(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch) const {
  run_chain(buffers, row, tile, scratch, true);
}

void Epilogue::run_chain(const Buffers& buffers, std::int64_t row, const Tile& tile, std::byte* scratch, bool from_words) const {
  TileOperand tiles[kMaxLoads];
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const Loaded& loaded = loads_[i];
    if (!loaded.used) continue;
    const std::int64_t start = row * loaded.row_stride + tile.channel * loaded.column_stride;
    const std::byte* data = buffers.read(loaded.operand) + start * size_of(loaded.operand.dtype);
    tiles[i] = {data, loaded.row_stride, loaded.column_stride};
    if (turned_) tiles[i] = {data, 0, loaded.row_stride};
  }
  const std::int64_t start = row * result_.pitch + tile.channel;
  std::byte* result = buffers.write(result_) + start * size_of(result_.dtype);
  const Tile turned{1, tile.rows, 0};  // whatever stages have for each channel, they have one
  chain_.run(turned_ ? turned : tile, tiles, result, result_.pitch, scratch, from_words);
}

Made make_step_conv2d(const StepCall& call) {
  Expected<ConvGeometry> geometry = conv2d_geometry(call);
  if (!geometry) return geometry.problem();
  if (geometry->depthwise()) return make_depthwise(call, *geometry);
  return suits_winograd(call, *geometry) ? make_winograd(call, *geometry) : make_products(call, *geometry);
}

Made make_step_dense(const StepCall& call) {
  Expected<ConvGeometry> geometry = dense_geometry(call);
  return geometry ? make_products(call, *geometry) : Made(geometry.problem());
}

}  // namespace cvm
