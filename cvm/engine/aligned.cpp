// Takes memory from the system so that it may give huge pages.
#include "aligned.h"

#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cvm {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::align_val_t alignment(std::size_t size) { return size >= kHugePage ? std::align_val_t{kHugePage} : kLine; }

}  // namespace

AlignedBytes::AlignedBytes(std::int64_t size, bool zero)
    : size_(static_cast<std::size_t>(size)), data_(static_cast<std::byte*>(::operator new(size_, alignment(size_)))) {
#if defined(__linux__)
  // Whether it is granted changes nothing but the time.
  if (size_ >= kHugePage) static_cast<void>(madvise(data_, size_ / kHugePage * kHugePage, MADV_HUGEPAGE));
#endif
  if (zero) std::memset(data_, 0, size_);
}

AlignedBytes::~AlignedBytes() { ::operator delete(data_, alignment(size_)); }

}  // namespace cvm
