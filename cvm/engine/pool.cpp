// Threads and barriers.
#include "pool.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace cvm {
namespace {

// Windows forks no process.
std::int64_t this_process() {
#if defined(_WIN32)
  return 0;
#else
  return getpid();
#endif
}

// A barrier of a step that takes microseconds: waiting in the kernel would cost more than the step.
constexpr int kSpins = 4096;
// Whoever is waited for may be in line for this very core, as on a busy machine: it gets it from then on, now and then.
constexpr int kAlone = 256, kTurn = 32;

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void wait_a_little(int spin) {
  if (spin >= kAlone && spin % kTurn == 0) {
    std::this_thread::yield();
  } else {
    pause();
  }
}

// Until `value` is no longer `seen`: spin, then sleep.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t seen) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != seen) return;
    wait_a_little(spin);
  }
  value.wait(seen, std::memory_order_acquire);
}

}  // namespace

int cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

// A system may refuse a thread; those that it gave must be joined before anybody hears of it.
Pool::Pool(int workers) : process_(this_process()) {
  try {
    for (int worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (...) {
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) alive() ? thread.join() : thread.detach();
}

bool Pool::alive() const { return threads_.empty() || process_ == this_process(); }

void Pool::run(const std::function<void(int)>& task) {
  if (!threads_.empty()) {
    task_ = &task;
    unfinished_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  task(0);
  for (unsigned spin = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spin) {
    wait_a_little(static_cast<int>(spin % kSpins));
  }
}

void Pool::work(int worker) {
  std::uint32_t seen = 0;
  while (true) {
    wait_while(round_, seen);
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*task_)(worker);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void Barrier::wait() {
  if (workers_ == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
  } else {
    wait_while(phase_, phase);
  }
}

}  // namespace cvm
