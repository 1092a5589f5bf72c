// Vectors that begin at a cache line: a load of 64 bytes that crosses one costs two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace cvm {

constexpr std::align_val_t kLine{64};

template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename Other>
  LineAllocator(const LineAllocator<Other>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* data, std::size_t) { ::operator delete(data, kLine); }
  template <typename Other>
  bool operator==(const LineAllocator<Other>&) const {
    return true;
  }
};

template <typename T>
using Aligned = std::vector<T, LineAllocator<T>>;

}  // namespace cvm
