// Recognises in a chain stages that one kernel does at once (kernels/lookups.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stage.h"

namespace cvm {

// Stages by their places: the last one and those before it, which nothing else reads. `stage` does the work of all of them on
// register x.
//   gate   x -> rescale to i16 -> interpolate, times x -> rescale to i16 -> cast to i32, by a product with a shift of 7; the
//          rescales may be one
//   table  the accumulator -> rescale to i8 -> table of i8
struct Joined {
  std::vector<std::size_t> inner;
  int x;
  Stage stage;
};

// What ends with this stage, if anything does. Register `first` is the first stage's.
std::optional<Joined> find_joined(std::span<const StageSpec> specs, std::span<const Stage> stages, std::size_t first,
                                  std::size_t last, const Kernels& kernels);

}  // namespace cvm
