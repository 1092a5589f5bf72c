// Pairs the channel of the greatest weights with one of those of small weights, and so on.
#include "paired_channels.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "byte_steps.h"

namespace cvm {
namespace {

constexpr std::ptrdiff_t kTries = 64;  // partners that are looked at; more found hardly better ones

struct Pair {
  std::int32_t first, second;
  std::vector<bool> excess;  // by panel
  std::ptrdiff_t panels;     // that have one
};

class Channels {
 public:
  Channels(std::span<const std::int8_t> weights, std::int64_t channels)
      : weights_(weights), rows_(static_cast<std::int64_t>(weights.size()) / channels), channels_(channels) {}

  // From the heaviest to the lightest.
  std::vector<std::int32_t> by_weight() const {
    std::vector<std::int64_t> squares(static_cast<std::size_t>(channels_));
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      const std::int8_t* from = row(channel);
      squares[static_cast<std::size_t>(channel)] =
          std::inner_product(from, from + rows_, from, std::int64_t{0});
    }
    std::vector<std::int32_t> order(squares.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return squares[static_cast<std::size_t>(a)] > squares[static_cast<std::size_t>(b)];
    });
    return order;
  }

  // How many panels have an excess, as far as they are fewer than `most`.
  std::int64_t excess(std::int32_t a, std::int32_t b, std::int64_t most) const {
    std::int64_t count = 0;
    for (std::int64_t first = 0; first < rows_ && count < most; first += kPanelRows) count += exceeds(a, b, first);
    return count;
  }

  Pair pair(std::int32_t a, std::int32_t b) const {
    std::vector<bool> excess;
    for (std::int64_t first = 0; first < rows_; first += kPanelRows) excess.push_back(exceeds(a, b, first));
    const std::ptrdiff_t panels = std::count(excess.begin(), excess.end(), true);
    return {a, b, std::move(excess), panels};
  }

  std::int64_t panels() const { return rows_ / kPanelRows; }

 private:
  const std::int8_t* row(std::int64_t channel) const { return weights_.data() + channel * rows_; }

  // Weights of two signs never sum to more.
  bool exceeds(std::int32_t a, std::int32_t b, std::int64_t first) const {
    const std::int8_t *of_a = row(a) + first, *of_b = row(b) + first;
    bool any = false;
    for (std::int64_t i = 0; i < kPanelRows; ++i) any |= std::abs(int{of_a[i]} + int{of_b[i]}) > kMostOfPair;
    return any;
  }

  std::span<const std::int8_t> weights_;
  std::int64_t rows_, channels_;
};

// The place of the last channels', the lightest, that has the fewest panels with an excess beside `channel`.
std::ptrdiff_t partner_of(const Channels& channels, std::int32_t channel, std::span<const std::int32_t> others) {
  auto best = std::ssize(others) - 1;
  std::int64_t least = channels.panels() + 1;
  for (auto place = best; place >= std::max(std::ssize(others) - kTries, std::ptrdiff_t{0}) && least > 0; --place) {
    const std::int64_t count = channels.excess(channel, others[static_cast<std::size_t>(place)], least);
    if (count < least) least = count, best = place;
  }
  return best;
}

// Partners are taken from the end, where that moves few others. A single channel is left over if their number is odd.
std::vector<Pair> pairs_of(const Channels& channels, std::vector<std::int32_t>& left) {
  std::vector<Pair> pairs;
  std::size_t paired = 0;  // at the beginning of `left`
  while (left.size() - paired > 1) {
    const std::int32_t heaviest = left[paired++];
    const auto others = left.begin() + static_cast<std::ptrdiff_t>(paired);
    const auto partner = others + partner_of(channels, heaviest, {others, left.end()});
    pairs.push_back(channels.pair(heaviest, *partner));
    left.erase(partner);
  }
  left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(paired));
  return pairs;
}

std::ptrdiff_t shared(const Pair& a, const Pair& b) {
  std::ptrdiff_t count = 0;
  for (std::size_t panel = 0; panel < a.excess.size(); ++panel) count += a.excess[panel] && b.excess[panel];
  return count;
}

// Brings behind each pair the one that shares the most panels with it.
void put_in_fours(std::vector<Pair>& pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.panels > b.panels; });
  for (std::size_t place = 0; place + 1 < pairs.size() && pairs[place].panels > 0; place += 2) {
    const auto begin = pairs.begin() + static_cast<std::ptrdiff_t>(place) + 1;
    const auto end = begin + std::min<std::ptrdiff_t>(pairs.end() - begin, kTries);
    const auto best = std::max_element(
        begin, end, [&](const Pair& a, const Pair& b) { return shared(pairs[place], a) < shared(pairs[place], b); });
    std::rotate(begin, best, best + 1);
  }
}

}  // namespace

std::vector<std::int32_t> paired_channels(std::span<const std::int8_t> weights, std::int64_t channels) {
  const Channels all(weights, channels);
  std::vector<std::int32_t> left = all.by_weight();
  std::vector<Pair> pairs = pairs_of(all, left);
  put_in_fours(pairs);
  std::vector<std::int32_t> order;
  for (const Pair& pair : pairs) order.insert(order.end(), {pair.first, pair.second});
  order.insert(order.end(), left.begin(), left.end());
  return order;
}

}  // namespace cvm
