// Weights in the order of kernels, packed once for all steps that read the same weights in the same order: the steps of a
// recurrence, the levels of a detector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "aligned.h"

namespace cvm {

// Weights that were packed. They lie where they were made until the engine moves them to a place that outlives them.
class Packing {
 public:
  Packing() = default;
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;
  virtual ~Packing() = default;
  std::int64_t bytes() const { return bytes_; }
  void move(std::byte* to);

 protected:
  // Room for so many integers, which are 0. Once.
  template <typename Weight>
  Weight* room(std::size_t count) {
    made_.assign(count * sizeof(Weight), 0);
    bytes_ = static_cast<std::int64_t>(made_.size());
    return reinterpret_cast<Weight*>(made_.data());
  }
  const std::byte* data() const { return moved_; }

 private:
  Aligned<std::uint8_t> made_;
  const std::byte* moved_ = nullptr;
  std::int64_t bytes_ = 0;
};

// All packings of an engine. Its kernels are one set, so they need not be told apart.
class Packings {
 public:
  // The packing of constant number `weights` in this order, made by the first who asks. `order` is whatever else it depends on.
  template <typename Kind, typename Make>
  const Kind& share(std::int64_t weights, std::vector<std::int64_t> order, const Make& make) {
    const auto [place, first] = places_.try_emplace({typeid(Kind), weights, std::move(order)}, made_.size());
    if (first) made_.push_back(make());
    return static_cast<const Kind&>(*made_[place->second]);
  }

  std::int64_t bytes() const;  // of all
  // All of them, side by side in the order of the steps: each by itself would be too small for a huge page.
  void move();

 private:
  using Key = std::tuple<std::type_index, std::int64_t, std::vector<std::int64_t>>;
  std::map<Key, std::size_t> places_;
  std::vector<std::unique_ptr<Packing>> made_;
  std::unique_ptr<AlignedBytes> block_;
};

}  // namespace cvm
