// BridgeStan's C functions over a program that stanc has translated to C++ and that is compiled
// together with this file.  Whoever calls them is harness/engine/stan_library.py.  A function that can
// fail returns -1 (or no pointer) and leaves a message, which the caller frees.
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "stan_headers.hpp"

// Defined in the translated program.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);

namespace {

struct Model {
  std::unique_ptr<stan::model::model_base> program;
  // The text of the last list of names: valid until the next is asked for.
  std::string names;
};

void leave(char** room, const std::string& text) {
  if (room != nullptr) *room = strdup(text.c_str());
}

// Calls a function that may throw; what the program prints meanwhile is not shown.
template <typename Function>
int guarded(char** room, const Function& function) noexcept {
  try {
    std::stringstream printed;
    function(printed);
    return 0;
  } catch (const std::exception& error) {
    leave(room, error.what());
  } catch (...) {
    leave(room, "an unknown error");
  }
  return -1;
}

struct LogDensity {
  const stan::model::model_base& program;
  bool propto, jacobian;
  std::ostream* printed;

  template <typename T>
  T operator()(Eigen::Matrix<T, Eigen::Dynamic, 1>& at) const {
    if (propto) {
      return jacobian ? program.log_prob_propto_jacobian(at, printed)
                      : program.log_prob_propto(at, printed);
    }
    return jacobian ? program.log_prob_jacobian(at, printed) : program.log_prob(at, printed);
  }
};

}  // namespace

extern "C" {

void* bs_model_construct(const char* data, unsigned int seed, char** room) {
  auto model = std::make_unique<Model>();
  const int failed = guarded(room, [&](std::ostream& printed) {
    std::istringstream text(data);
    stan::json::json_data context(text);
    model->program.reset(&new_model(context, seed, &printed));
  });
  return failed ? nullptr : model.release();
}

void bs_model_destruct(void* model) { delete static_cast<Model*>(model); }

void bs_free_error_msg(char* text) { std::free(text); }

const char* bs_param_names(void* model, bool transformed, bool generated) {
  auto& own = *static_cast<Model*>(model);
  std::vector<std::string> names;
  own.program->constrained_param_names(names, transformed, generated);
  own.names.clear();
  for (const auto& name : names) own.names += (own.names.empty() ? "" : ",") + name;
  return own.names.c_str();
}

int bs_param_unc_num(void* model) {
  return static_cast<int>(static_cast<Model*>(model)->program->num_params_r());
}

int bs_log_density_gradient(const void* model, bool propto, bool jacobian, const double* point,
                            double* value, double* gradient, char** room) {
  return guarded(room, [&](std::ostream& printed) {
    // Stan's stack of derivatives belongs to a thread, and each thread needs one.
    static thread_local stan::math::ChainableStack stack;
    const auto& program = *static_cast<const Model*>(model)->program;
    const auto size = static_cast<Eigen::Index>(program.num_params_r());
    const Eigen::VectorXd at = Eigen::Map<const Eigen::VectorXd>(point, size);
    Eigen::VectorXd slope;
    stan::math::gradient(LogDensity{program, propto, jacobian, &printed}, at, *value, slope);
    Eigen::Map<Eigen::VectorXd>(gradient, size) = slope;
  });
}

int bs_param_constrain(const void* model, bool transformed, bool generated, const double* point,
                       double* values, void* random, char** room) {
  return guarded(room, [&](std::ostream& printed) {
    const auto& program = *static_cast<const Model*>(model)->program;
    Eigen::VectorXd at = Eigen::Map<const Eigen::VectorXd>(
        point, static_cast<Eigen::Index>(program.num_params_r()));
    Eigen::VectorXd written;
    auto fallback = stan::services::util::create_rng(0, 0);
    auto& rng = random == nullptr ? fallback : *static_cast<stan::rng_t*>(random);
    program.write_array(rng, at, written, transformed, generated, &printed);
    Eigen::Map<Eigen::VectorXd>(values, written.size()) = written;
  });
}

int bs_param_unconstrain(const void* model, const double* values, double* point, char** room) {
  return guarded(room, [&](std::ostream& printed) {
    const auto& program = *static_cast<const Model*>(model)->program;
    std::vector<std::string> names;
    program.constrained_param_names(names, false, false);
    const Eigen::VectorXd given = Eigen::Map<const Eigen::VectorXd>(
        values, static_cast<Eigen::Index>(names.size()));
    Eigen::VectorXd at;
    program.unconstrain_array(given, at, &printed);
    Eigen::Map<Eigen::VectorXd>(point, at.size()) = at;
  });
}

void* bs_rng_construct(unsigned int seed, char** room) {
  stan::rng_t* random = nullptr;
  guarded(room, [&](std::ostream&) {
    random = new stan::rng_t(stan::services::util::create_rng(seed, 1));
  });
  return random;
}

void bs_rng_destruct(void* random) { delete static_cast<stan::rng_t*>(random); }

}  // extern "C"
