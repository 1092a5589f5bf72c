// Planes of an image to pixels by shuffles: 16 pixels of three colours are three vectors on both sides.
#include <immintrin.h>

#include "kernels/kernels.h"

namespace cvm {
namespace {

// For each byte of vector kPart of 16 pixels its place in the plane of this colour; or -1, which shuffles make 0, for
// bytes of other colours.
template <int kPart, int kColour>
__m128i places() {
  alignas(16) int8_t places[16];
  for (int i = 0; i < 16; ++i) {
    const int byte = 16 * kPart + i;
    places[i] = static_cast<int8_t>(byte % 3 == kColour ? byte / 3 : -1);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(places));
}

template <int kPart>
inline __m128i part_of(__m128i a, __m128i b, __m128i c) {
  return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, places<kPart, 0>()), _mm_shuffle_epi8(b, places<kPart, 1>())),
                      _mm_shuffle_epi8(c, places<kPart, 2>()));
}

}  // namespace

void three_planes_avx2(const uint8_t* from, int64_t plane, uint8_t* to, int64_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  const auto at = [&](int64_t place) {
    return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + place)), flips);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i a = at(i), b = at(plane + i), c = at(2 * plane + i);
    __m128i* next = reinterpret_cast<__m128i*>(to + 3 * i);
    _mm_storeu_si128(next, part_of<0>(a, b, c));
    _mm_storeu_si128(next + 1, part_of<1>(a, b, c));
    _mm_storeu_si128(next + 2, part_of<2>(a, b, c));
  }
  for (; i < count; ++i) {
    for (int64_t colour = 0; colour < 3; ++colour) to[3 * i + colour] = from[colour * plane + i] ^ flip;
  }
}

}  // namespace cvm
