// Recognises in a chain stages that one kernel does at once (kernels/lookups.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stage.h"

namespace cvm {

// `inner` has the places of the stages before the last one, which no other stage reads. `stage` does the work of all of
// them, and of the last one, on register x.
//   gate   x -> rescale to i16 -> interpolate, times x -> rescale to i16 -> cast to i32, by a product with a shift of 7; the
//          rescales may be one
//   table  the accumulator -> rescale to i8 -> table of i8
struct Joined {
  std::vector<std::size_t> inner;
  int x;
  Stage stage;
};

// The joined stage that ends with stage `last`, if there is one. Register `first` is that of the first stage.
std::optional<Joined> find_joined(std::span<const StageSpec> specs, std::span<const Stage> stages, std::size_t first,
                                  std::size_t last, const Kernels& kernels);

}  // namespace cvm
