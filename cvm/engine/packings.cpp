// Puts packings into one block.
#include "packings.h"

#include <cstring>

namespace cvm {

void Packing::move(std::byte* to) {
  std::memcpy(to, made_.data(), made_.size());
  made_ = decltype(made_)();  // gives the memory back, which clearing keeps
  moved_ = to;
}

std::int64_t Packings::bytes() const {
  std::int64_t total = 0;
  for (const auto& packing : made_) total += packing->bytes();
  return total;
}

void Packings::move() {
  std::int64_t total = kSlack;
  for (const auto& packing : made_) total += whole_lines(packing->bytes());
  block_ = std::make_unique<AlignedBytes>(total, false);
  std::byte* to = block_->data();
  for (const auto& packing : made_) {
    packing->move(to);
    to += whole_lines(packing->bytes());
  }
}

}  // namespace cvm
