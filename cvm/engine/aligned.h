// Memory that begins at a cache line: a load of 64 bytes that crosses one costs two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace cvm {

constexpr std::align_val_t kLine{64};
constexpr std::int64_t kSlack = 64;  // kernels may read, never write, this far past a stored value

constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

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

// A block of bytes. Large blocks lie in huge pages where the system has them: their addresses are translated faster.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::int64_t size, bool zero = true);
  AlignedBytes(AlignedBytes&& other) noexcept : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  AlignedBytes& operator=(AlignedBytes&&) = delete;
  ~AlignedBytes();
  std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

}  // namespace cvm
