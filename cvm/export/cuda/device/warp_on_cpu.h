/* A warp on a processor: 32 contexts that take turns, since its threads meet where they multiply together. */
#pragma once
#include <cstdint>
#include <functional>
#include <ucontext.h>
#include "on_cpu.h"

struct Warp {
  static constexpr int lanes = 32;
  ucontext_t outside, inside[lanes];
  alignas(16) char stacks[lanes][1 << 16];
  bool done[lanes];
  int lane;
  std::function<void()> body;
  uint32_t given[2][lanes][6];
  int turn[lanes];
};
inline Warp warp;

inline void run_lane()
{
  warp.body();
  warp.done[warp.lane] = true;
}

/* Run the body once for each thread. */
inline void run_warp(std::function<void()> body)
{
  warp.body = body;
  for (int k = 0; k < Warp::lanes; k++) {
    getcontext(&warp.inside[k]);
    warp.inside[k].uc_stack.ss_sp = warp.stacks[k];
    warp.inside[k].uc_stack.ss_size = sizeof warp.stacks[k];
    warp.inside[k].uc_link = &warp.outside;
    makecontext(&warp.inside[k], run_lane, 0);
    warp.done[k] = false;
    warp.turn[k] = 0;
  }
  for (bool more = true; more;) {
    more = false;
    for (warp.lane = 0; warp.lane < Warp::lanes; warp.lane++) {
      if (warp.done[warp.lane]) continue;
      threadIdx.x = static_cast<uint32_t>(warp.lane);
      swapcontext(&warp.outside, &warp.inside[warp.lane]);
      more |= !warp.done[warp.lane];
    }
  }
}

template <typename... Parameters>
void launch_warps(int32_t threads, int32_t samples, void (*kernel)(Parameters...), Parameters... arguments)
{
  launch_blocks(threads, samples, [&] { run_warp([&] { kernel(arguments...); }); });
}

/* One byte of a word, as a number. */
template <bool is_signed>
int32_t byte_of(uint32_t word, int place)
{
  const uint8_t byte = static_cast<uint8_t>(word >> (8 * place));
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

/* As the instruction mma.m16n8k32 does: all threads give their words, then each adds up what its sums need.
   Words given in turns of odd and even number lie apart, so that no thread overwrites what another has yet to read. */
template <bool a_signed, bool b_signed>
void add_products(int32_t (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
  const int lane = warp.lane;
  const int turn = warp.turn[lane]++ % 2;
  const uint32_t words[6] = {a0, a1, a2, a3, b0, b1};
  memcpy(warp.given[turn][lane], words, sizeof words);
  swapcontext(&warp.inside[lane], &warp.outside);
  for (int s = 0; s < 4; s++) {
    const int row = lane / 4, column = lane % 4 * 2 + s % 2;
    uint32_t sum = static_cast<uint32_t>(sums[s]);
    for (int k = 0; k < 32; k++) {
      const int half = k / 16, quarter = k % 16 / 4;
      const uint32_t a = warp.given[turn][row * 4 + quarter][half * 2 + s / 2];
      const uint32_t b = warp.given[turn][column * 4 + quarter][4 + half];
      sum += static_cast<uint32_t>(byte_of<a_signed>(a, k % 4) * byte_of<b_signed>(b, k % 4));
    }
    sums[s] = static_cast<int32_t>(sum);
  }
}
