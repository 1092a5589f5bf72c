// Threads that run one function together, again and again, without a lock on the way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace cvm {

// The cores that this process may run on, which a container may make fewer than the machine has; 0 where that is unknown.
int cores();

// One task at a time; its caller is worker 0. Workers spin for a little while between tasks, then sleep.
class Pool {
 public:
  explicit Pool(int workers);  // at least 1
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()) + 1; }
  // Whether it can run: a forked process has the pool, but not its threads.
  bool alive() const;

  // Calls task(worker) for every worker and returns when all have. The task must not throw.
  void run(const std::function<void(int)>& task);

 private:
  void work(int worker);
  void stop();

  const std::function<void(int)>* task_ = nullptr;
  std::atomic<std::uint32_t> round_{0};
  std::atomic<int> unfinished_{0};
  std::atomic<bool> stop_{false};
  const std::int64_t process_;  // whose threads they are
  std::vector<std::thread> threads_;
};

// Between steps of one task: nobody passes until all have arrived.
class Barrier {
 public:
  explicit Barrier(int workers) : workers_(workers) {}
  void wait();

 private:
  const int workers_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
};

}  // namespace cvm
