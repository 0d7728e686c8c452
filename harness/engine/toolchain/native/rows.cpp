// Log densities at all rows of an array, with or without gradients, over a C function that does one:
// BridgeStan's bs_log_density_gradient or bs_log_density, whichever library it comes from.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>

namespace {

using Gradient = int (*)(const void* model, bool propto, bool jacobian, const double* point,
                         double* value, double* gradient, char** message);
using Value = int (*)(const void* model, bool propto, bool jacobian, const double* point,
                      double* value, char** message);
using Clock = std::chrono::steady_clock;

// Work ahead that is worth another thread, which wakes some 40 microseconds late.
constexpr double kWorthAThread = 120e-6;
// Rows that a thread takes at once: fewer contend for the next, and for one line of the cache.
constexpr std::int64_t kMostAtOnce = 16;

struct Rows {
  Gradient gradient;  // null if values alone are wanted
  Value value;        // then this is not
  std::int64_t count, dimension;
  const double* points;
  double* values;
  double* gradients;
  std::int64_t block;
  std::atomic<std::int64_t> next{0};
  int helped = 0;  // helpers at work on it; the mutex of Helpers guards it
};

bool finite(const double* entries, std::int64_t count) {
  return std::all_of(entries, entries + count, [](double entry) { return std::isfinite(entry); });
}

// What harness/engine/stan_rows.py says of rows without a density holds here.
void evaluate(const Rows& rows, const void* model, std::int64_t row) noexcept {
  const double* point = rows.points + row * rows.dimension;
  double* value = rows.values + row;
  // Values alone are evaluated as if there were no entries of the gradient.
  const std::int64_t slopes = rows.gradient == nullptr ? 0 : rows.dimension;
  double* gradient = rows.gradients + row * slopes;
  bool known = false;
  if (finite(point, rows.dimension)) {
    try {
      const int failed = rows.gradient == nullptr
                             ? rows.value(model, true, true, point, value, nullptr)
                             : rows.gradient(model, true, true, point, value, gradient, nullptr);
      known = failed == 0;
    } catch (...) {
      known = false;
    }
  }
  if (known && std::isfinite(*value) && finite(gradient, slopes)) return;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!(known && *value == infinity)) *value = -infinity;
  std::fill(gradient, gradient + slopes, 0.0);
}

// Returns whether there are rows left.
bool take_block(Rows& rows, const void* model) noexcept {
  const std::int64_t first = rows.next.fetch_add(rows.block);
  const std::int64_t end = std::min(first + rows.block, rows.count);
  for (std::int64_t row = first; row < end; ++row) evaluate(rows, model, row);
  return end < rows.count;
}

void take_all(Rows& rows, const void* model) noexcept {
  while (take_block(rows, model)) {
  }
}

// Threads that wait for rows.  They are kept, because a new one costs more than a call may, and a
// caller never waits for one that has not begun: on a busy machine it does all rows itself.
class Helpers {
 public:
  // Those of this process: a fork leaves its parent's threads behind.
  static Helpers& mine() {
    static std::atomic<Helpers*> current{nullptr};
    Helpers* found = current.load();
    while (found == nullptr || found->owner_ != getpid()) {
      Helpers* fresh = new Helpers;  // never deleted: its threads use it until the process ends
      if (current.compare_exchange_strong(found, fresh)) return *fresh;
      delete fresh;
    }
    return *found;
  }

  void ask(Rows& rows, const void* model) {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_.push_back({&rows, model});
    if (idle_ < asked_.size()) {
      std::thread(&Helpers::serve, this).detach();
      ++idle_;  // from now on, though it has yet to start
    }
    wake_.notify_one();
  }

  // Withdraws what nobody has begun, and waits for the rest.
  void finish(Rows& rows) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto of_rows = [&rows](const Task& task) { return task.rows == &rows; };
    asked_.erase(std::remove_if(asked_.begin(), asked_.end(), of_rows), asked_.end());
    done_.wait(lock, [&rows] { return rows.helped == 0; });
  }

 private:
  struct Task {
    Rows* rows;
    const void* model;
  };

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !asked_.empty(); });
      const Task task = asked_.front();
      asked_.pop_front();
      --idle_;
      ++task.rows->helped;
      lock.unlock();
      take_all(*task.rows, task.model);
      lock.lock();
      --task.rows->helped;
      ++idle_;
      done_.notify_all();
    }
  }

  const pid_t owner_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Task> asked_;
  std::size_t idle_ = 0;
};

}  // namespace

// One model for each thread that there may be.  One of the two functions is null, and so are the
// gradients with the first of them.  No exception leaves this function.
extern "C" void harness_rows(Gradient gradient, Value value, const void* const* models,
                             std::int64_t threads, std::int64_t count, std::int64_t dimension,
                             const double* points, double* values, double* gradients) noexcept {
  const std::int64_t block = std::clamp<std::int64_t>(count / (16 * threads), 1, kMostAtOnce);
  Rows rows{gradient, value, count, dimension, points, values, gradients, block};
  const auto started = Clock::now();
  Helpers* helpers = nullptr;
  std::int64_t asked = 0;
  while (asked + 1 < threads && take_block(rows, models[0])) {
    const std::int64_t done = std::min(rows.next.load(), count);
    const std::chrono::duration<double> taken = Clock::now() - started;
    const double ahead = taken.count() / done * (count - done);
    if (ahead < kWorthAThread * (asked + 1)) continue;
    try {
      helpers = &Helpers::mine();
      helpers->ask(rows, models[++asked]);
    } catch (...) {
      break;  // there is no room for another thread
    }
  }
  take_all(rows, models[0]);
  if (helpers != nullptr) helpers->finish(rows);
}
