// Log densities and gradients at all rows of an array, over a C function that does one: BridgeStan's
// bs_log_density_gradient, whichever library it comes from.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace {

using Gradient = int (*)(const void* model, bool propto, bool jacobian, const double* point,
                         double* value, double* gradient, char** message);
using Clock = std::chrono::steady_clock;

// A thread of its own pays for rows that take longer than this: it starts some 40 microseconds late.
constexpr double kWorthAThread = 80e-6;
// Fewer of them contend for the next block and write to one line of the cache.
constexpr std::int64_t kMostAtOnce = 16;

struct Rows {
  Gradient gradient;
  std::int64_t count, dimension;
  const double* points;
  double* values;
  double* gradients;
  std::int64_t block;  // rows that a thread takes at once
  std::atomic<std::int64_t> next{0};
};

bool finite(const double* entries, std::int64_t count) {
  return std::all_of(entries, entries + count, [](double entry) { return std::isfinite(entry); });
}

// What harness.stan_rows says of rows without a density holds here, word for word.
void evaluate(const Rows& rows, const void* model, std::int64_t row) {
  const double* point = rows.points + row * rows.dimension;
  double* value = rows.values + row;
  double* gradient = rows.gradients + row * rows.dimension;
  int status = -1;
  if (finite(point, rows.dimension)) {
    try {
      status = rows.gradient(model, true, true, point, value, gradient, nullptr);
    } catch (...) {
      status = -1;
    }
  }
  const bool known = status == 0;
  if (known && std::isfinite(*value) && finite(gradient, rows.dimension)) return;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!(known && *value == infinity)) *value = -infinity;
  std::fill(gradient, gradient + rows.dimension, 0.0);
}

// Whether there was a row left.
bool take_block(Rows& rows, const void* model) {
  const std::int64_t first = rows.next.fetch_add(rows.block);
  const std::int64_t end = std::min(first + rows.block, rows.count);
  for (std::int64_t row = first; row < end; ++row) evaluate(rows, model, row);
  return end < rows.count;
}

void take_all(Rows& rows, const void* model) {
  while (take_block(rows, model)) {
  }
}

}  // namespace

// One model for each thread that there may be.  No exception leaves this function.
extern "C" void harness_rows(Gradient gradient, const void* const* models, std::int64_t threads,
                             std::int64_t count, std::int64_t dimension, const double* points,
                             double* values, double* gradients) noexcept {
  const std::int64_t block = std::clamp<std::int64_t>(count / (16 * threads), 1, kMostAtOnce);
  Rows rows{gradient, count, dimension, points, values, gradients, block};
  std::vector<std::thread> helpers;
  const auto started = Clock::now();
  while (static_cast<std::int64_t>(helpers.size()) + 1 < threads && take_block(rows, models[0])) {
    const std::int64_t done = std::min(rows.next.load(), count);
    const std::chrono::duration<double> taken = Clock::now() - started;
    const double ahead = taken.count() / done * (count - done);
    if (ahead < kWorthAThread * (helpers.size() + 1)) continue;
    try {
      const void* model = models[helpers.size() + 1];
      helpers.emplace_back([&rows, model] { take_all(rows, model); });
    } catch (...) {
      break;  // there is no room for another thread: the rows are all done here
    }
  }
  take_all(rows, models[0]);
  for (std::thread& helper : helpers) helper.join();
}
