// The command line of a compiled Stan model.
//
// This file is compiled once to an object; the C++ that stanc generates for a Stan program is
// compiled to another; linked together they are an executable that takes CmdStan's arguments and
// writes CmdStan's files. The algorithms are `stan::services`, unchanged: what is here reads
// arguments and input files, opens output files and calls the service asked for with the seeds,
// initial values and writers that make its draws the same, digit for digit, as CmdStan's.
//
// In order: errors, the argument tree and its parser, interruption and output files, writers, input
// files, one function per method, main.

#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/json_writer.hpp>
#include <stan/callbacks/logger.hpp>
#include <stan/callbacks/structured_writer.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/io/array_var_context.hpp>
#include <stan/io/dump.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/math.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/diagnose/diagnose.hpp>
#include <stan/services/experimental/advi/fullrank.hpp>
#include <stan/services/experimental/advi/meanfield.hpp>
#include <stan/services/optimize/bfgs.hpp>
#include <stan/services/optimize/laplace_sample.hpp>
#include <stan/services/optimize/lbfgs.hpp>
#include <stan/services/optimize/newton.hpp>
#include <stan/services/pathfinder/multi.hpp>
#include <stan/services/pathfinder/single.hpp>
#include <stan/services/sample/fixed_param.hpp>
#include <stan/services/sample/hmc_nuts_dense_e.hpp>
#include <stan/services/sample/hmc_nuts_dense_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_diag_e.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <stan/services/sample/hmc_nuts_unit_e.hpp>
#include <stan/services/sample/hmc_nuts_unit_e_adapt.hpp>
#include <stan/services/sample/hmc_static_dense_e.hpp>
#include <stan/services/sample/hmc_static_dense_e_adapt.hpp>
#include <stan/services/sample/hmc_static_diag_e.hpp>
#include <stan/services/sample/hmc_static_diag_e_adapt.hpp>
#include <stan/services/sample/hmc_static_unit_e.hpp>
#include <stan/services/sample/hmc_static_unit_e_adapt.hpp>
#include <stan/services/sample/standalone_gqs.hpp>
#include <stan/version.hpp>

#include <rapidjson/document.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Both are defined by the model's object file.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);
stan::math::profile_map& get_stan_profile_data();

namespace frontend {

#ifdef STAN_THREADS
constexpr bool built_with_threads = true;
#else
constexpr bool built_with_threads = false;
#endif

// ------------------------------------------------------------------------------------------------
// Errors
// ------------------------------------------------------------------------------------------------

// Exit codes follow sysexits.h, as those of stan::services do.
namespace exit_code {
constexpr int success = 0, failure = 1, usage = 64, bad_data = 65, no_input = 66, software = 70,
              cannot_create = 73, io_error = 74;
}  // namespace exit_code

// An error the user can mend; main prints it as one line and exits with its code.
struct Failure : std::runtime_error {
  int code;
  Failure(int code, const std::string& message) : std::runtime_error(message), code(code) {}
};

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

std::string joined(const std::vector<std::string>& parts, const std::string& separator = ", ") {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? separator : "") + parts[i];
  return out;
}

// ------------------------------------------------------------------------------------------------
// The argument tree
// ------------------------------------------------------------------------------------------------

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open = false;  // whether the finite ends are themselves refused

  bool holds(double x) const {
    if (open) return (x > low || std::isinf(low)) && (x < high || std::isinf(high));
    return x >= low && x <= high;
  }
};

Range at_least(double low) { return {low}; }
Range above(double low) { return {low, std::numeric_limits<double>::infinity(), true}; }
Range between(double low, double high) { return {low, high}; }
Range strictly_between(double low, double high) { return {low, high, true}; }
constexpr double largest_int = std::numeric_limits<int>::max();
constexpr double largest_unsigned = std::numeric_limits<unsigned int>::max();

// One node of the command line. A group holds arguments; a choice holds options, which are groups;
// the other kinds hold a value. Values are kept as text, in the form in which they are printed.
struct Arg {
  enum class Kind { group, choice, integer, real, flag, text };

  Kind kind;
  std::string name;
  std::string help;
  std::string standard;  // the value when none is given
  Range range = {};
  std::vector<Arg> children = {};
  bool plain_option = false;  // an option that takes no arguments and is printed without a heading
  std::string value = {};
  bool given = false;

  const Arg* child(const std::string& wanted) const {
    for (const Arg& c : children)
      if (c.name == wanted) return &c;
    return nullptr;
  }
  Arg* child(const std::string& wanted) {
    return const_cast<Arg*>(std::as_const(*this).child(wanted));
  }

  bool has_value() const { return kind != Kind::group; }

  bool is_standard() const {
    if (kind == Kind::integer || kind == Kind::real)
      return std::strtod(value.c_str(), nullptr) == std::strtod(standard.c_str(), nullptr);
    return value == standard;
  }

  // What the argument accepts, in words, for error messages and help.
  std::string accepts() const {
    std::ostringstream out;
    const bool whole = kind == Kind::integer;
    switch (kind) {
      case Kind::choice: {
        std::vector<std::string> names;
        for (const Arg& c : children) names.push_back(c.name);
        return "one of " + joined(names);
      }
      case Kind::flag:
        return "true or false (or 1 or 0)";
      case Kind::text:
        return "text";
      case Kind::group:
        return "arguments";
      default:
        out << (whole ? "a whole number" : "a number") << std::setprecision(12);
        // The bounds of the C++ integer types are left unsaid: nobody meets them by design.
        const bool no_high = std::isinf(range.high) || range.high == largest_int;
        if (std::isinf(range.low)) return out.str();
        if (no_high)
          out << (range.open ? " above " : " of at least ") << range.low;
        else if (range.open)
          out << " above " << range.low << " and below " << range.high;
        else
          out << " from " << range.low << " to " << range.high;
        return out.str();
    }
  }
};

Arg group(std::string name, std::string help, std::vector<Arg> children) {
  Arg arg{Arg::Kind::group, std::move(name), std::move(help), ""};
  arg.children = std::move(children);
  return arg;
}

Arg plain_option(std::string name, std::string help) {
  Arg arg = group(std::move(name), std::move(help), {});
  arg.plain_option = true;
  return arg;
}

Arg valued(Arg::Kind kind, std::string name, std::string standard, Range range, std::string help) {
  Arg arg{kind, std::move(name), std::move(help), std::move(standard), range};
  arg.value = arg.standard;
  return arg;
}

Arg choice(std::string name, std::string standard, std::string help, std::vector<Arg> options) {
  Arg arg = valued(Arg::Kind::choice, std::move(name), std::move(standard), {}, std::move(help));
  arg.children = std::move(options);
  return arg;
}

Arg integer(std::string name, std::string standard, Range range, std::string help) {
  range.high = std::min(range.high, largest_unsigned);
  if (range.high == largest_unsigned && range.low >= 0 && range.open == false && standard != "-1")
    range.high = largest_int;
  return valued(Arg::Kind::integer, std::move(name), std::move(standard), range, std::move(help));
}

Arg real(std::string name, std::string standard, Range range, std::string help) {
  return valued(Arg::Kind::real, std::move(name), std::move(standard), range, std::move(help));
}

Arg flag(std::string name, bool standard, std::string help) {
  return valued(Arg::Kind::flag, std::move(name), standard ? "true" : "false", {}, std::move(help));
}

Arg text(std::string name, std::string standard, std::string help) {
  return valued(Arg::Kind::text, std::move(name), std::move(standard), {}, std::move(help));
}

std::vector<Arg> operator+(std::vector<Arg> left, const std::vector<Arg>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Shared by the quasi-Newton optimisers and pathfinder.
std::vector<Arg> line_search_args() {
  return {
      real("init_alpha", "0.001", above(0), "First step of the line search"),
      real("tol_obj", "1e-12", at_least(0), "Stop at this absolute change of the log density"),
      real("tol_rel_obj", "10000", at_least(0),
           "Stop at this relative change of the log density, in units of machine precision"),
      real("tol_grad", "1e-08", at_least(0), "Stop at this norm of the gradient"),
      real("tol_rel_grad", "1e+07", at_least(0),
           "Stop at this relative norm of the gradient, in units of machine precision"),
      real("tol_param", "1e-08", at_least(0), "Stop at this change of the parameters"),
  };
}

Arg history_size_arg() {
  return integer("history_size", "5", at_least(1), "Number of past steps L-BFGS remembers");
}

Arg sample_args() {
  return group(
      "sample", "Draw from the posterior by Markov chain Monte Carlo",
      {integer("num_samples", "1000", at_least(0), "Iterations after warmup"),
       integer("num_warmup", "1000", at_least(0), "Warmup iterations"),
       flag("save_warmup", false, "Write the warmup draws too"),
       integer("thin", "1", at_least(1), "Write every thin-th draw"),
       group("adapt", "Adaptation during warmup",
             {flag("engaged", true, "Whether to adapt at all"),
              real("gamma", "0.05", above(0), "Step size adaptation: regularisation"),
              real("delta", "0.8", strictly_between(0, 1),
                   "Step size adaptation: acceptance statistic aimed at"),
              real("kappa", "0.75", above(0), "Step size adaptation: relaxation exponent"),
              real("t0", "10", above(0), "Step size adaptation: iteration offset"),
              integer("init_buffer", "75", at_least(0), "Iterations before metric adaptation"),
              integer("term_buffer", "50", at_least(0), "Iterations after metric adaptation"),
              integer("window", "25", at_least(0), "First window of metric adaptation"),
              flag("save_metric", false, "Write step size and metric to <output>_metric.json")}),
       choice("algorithm", "hmc", "Sampler",
              {group("hmc", "Hamiltonian Monte Carlo",
                     {choice("engine", "nuts", "How long a trajectory is",
                             {group("static", "A fixed integration time",
                                    {real("int_time", "6.28318530717959", above(0),
                                          "Integration time of a trajectory")}),
                              group("nuts", "The No-U-Turn Sampler",
                                    {integer("max_depth", "10", at_least(1),
                                             "Largest depth of the trajectory tree")})}),
                      choice("metric", "diag_e", "Shape of the Euclidean metric",
                             {plain_option("unit_e", "Identity matrix"),
                              plain_option("diag_e", "Diagonal matrix"),
                              plain_option("dense_e", "Dense matrix")}),
                      text("metric_file", "", "JSON file (or files) with the initial inv_metric"),
                      real("stepsize", "1", above(0), "Initial step size"),
                      real("stepsize_jitter", "0", between(0, 1),
                           "Random jitter of the step size, as a fraction")}),
               plain_option("fixed_param", "Parameters stay at their initial values")}),
       integer("num_chains", "1", at_least(1), "Number of chains")});
}

Arg optimize_args() {
  return group("optimize", "Find a mode of the posterior",
               {choice("algorithm", "lbfgs", "Optimiser",
                       {group("bfgs", "BFGS with line search", line_search_args()),
                        group("lbfgs", "BFGS with limited memory",
                              line_search_args() + std::vector<Arg>{history_size_arg()}),
                        group("newton", "Newton's method", {})}),
                flag("jacobian", false, "Include the Jacobian of the constraining transforms"),
                integer("iter", "2000", at_least(1), "Largest number of iterations"),
                flag("save_iterations", false, "Write every iteration")});
}

Arg variational_args() {
  return group(
      "variational", "Fit a Gaussian on the unconstrained space by ADVI",
      {choice("algorithm", "meanfield", "Covariance of the Gaussian",
              {group("meanfield", "Diagonal", {}), group("fullrank", "Dense", {})}),
       integer("iter", "10000", at_least(1), "Largest number of iterations"),
       integer("grad_samples", "1", at_least(1), "Draws for each estimate of the gradient"),
       integer("elbo_samples", "100", at_least(1), "Draws for each estimate of the ELBO"),
       real("eta", "1", above(0), "Scale of the step size"),
       group("adapt", "Adaptation of eta",
             {flag("engaged", true, "Whether to adapt eta"),
              integer("iter", "50", at_least(1), "Iterations for each value of eta tried")}),
       real("tol_rel_obj", "0.01", above(0), "Stop at this relative change of the ELBO"),
       integer("eval_elbo", "100", at_least(1), "Iterations between estimates of the ELBO"),
       integer("output_samples", "1000", at_least(1), "Draws from the fitted Gaussian to write")});
}

Arg pathfinder_args() {
  return group(
      "pathfinder", "Approximate the posterior by Gaussians along optimisation paths",
      line_search_args()
          + std::vector<Arg>{
              history_size_arg(),
              integer("num_psis_draws", "1000", at_least(1),
                      "Draws to write, of all paths together"),
              integer("num_paths", "4", at_least(1), "Number of paths"),
              flag("save_single_paths", false, "Write each path's draws and iterations as well"),
              flag("psis_resample", true, "Resample the draws by Pareto smoothed weights"),
              flag("calculate_lp", true, "Evaluate the log density of every draw"),
              integer("max_lbfgs_iters", "1000", at_least(1),
                      "Largest number of L-BFGS iterations"),
              integer("num_draws", "1000", at_least(1), "Draws from each path"),
              integer("num_elbo_draws", "25", at_least(1), "Draws for each estimate of the ELBO")});
}

Arg command_line_args() {
  Arg diagnose = group(
      "diagnose", "Check the model",
      {choice(
          "test", "gradient", "What to check",
          {group("gradient", "Gradient against finite differences",
                 {real("epsilon", "1e-06", above(0), "Step of the finite differences"),
                  real("error", "1e-06", above(0), "Largest absolute difference accepted")})})});
  Arg generate_quantities =
      group("generate_quantities", "Run the generated quantities block for draws made earlier",
            {text("fitted_params", "", "CSV file (or files) with the draws"),
             integer("num_chains", "1", at_least(1), "Number of chains")});
  Arg log_prob = group("log_prob", "Evaluate the log density and its gradient",
                       {text("unconstrained_params", "", "JSON file with params_r"),
                        text("constrained_params", "", "CSV or JSON file with parameter values"),
                        flag("jacobian", true, "Include the Jacobian of the transforms")});
  Arg laplace = group("laplace", "Draw from the Laplace approximation at a mode",
                      {text("mode", "", "CSV or JSON file with the mode, on the constrained scale"),
                       flag("jacobian", true, "Include the Jacobian of the transforms"),
                       integer("draws", "1000", at_least(1), "Number of draws"),
                       flag("calculate_lp", true, "Evaluate the log density of every draw")});
  return group(
      "", "",
      {choice("method", "sample", "What to do",
              {sample_args(), optimize_args(), variational_args(), diagnose, generate_quantities,
               pathfinder_args(), log_prob, laplace}),
       integer("id", "1", between(0, largest_int), "Chain id; offsets the random numbers"),
       group("data", "Data", {text("file", "", "JSON file with the data block's variables")}),
       text("init", "2", "Radius of random initial values, or JSON file (or files) with values"),
       group("random", "Random numbers",
             {integer("seed", "-1", between(-1, largest_unsigned),
                      "Seed; -1 takes it from the clock")}),
       group("output", "Output files and messages",
             {text("file", "output.csv", "CSV file to write"),
              text("diagnostic_file", "", "File for the sampler's inner quantities"),
              integer("refresh", "100", at_least(0), "Iterations between messages; 0 for none"),
              integer("sig_figs", "8", between(-1, 18), "Significant digits; -1 for C++'s default"),
              text("profile_file", "profile.csv", "File for the timings of profile sections"),
              flag("save_cmdstan_config", false, "Write the arguments to <output>_config.json")}),
       integer("num_threads", "1", between(-1, largest_int), "Threads; -1 for all there are")});
}

// ------------------------------------------------------------------------------------------------
// Parsing
// ------------------------------------------------------------------------------------------------

// The shortest text from six digits on that reads back as x.
std::string shortest(double x) {
  char buffer[40];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, x);
    if (std::strtod(buffer, nullptr) == x) break;
  }
  return buffer;
}

// Reads all of the text as a number; an empty text or one with anything after the number is
// refused.
bool to_number(const std::string& text, double& x) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  x = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(x);
}

class CommandLine {
 public:
  CommandLine() : root_(command_line_args()) {}

  // Reads the arguments. Each token belongs to the innermost open argument that knows its name, so
  // that `sample adapt delta=0.9 num_chains=4 output file=x.csv` needs no brackets. Returns false
  // when help was asked for and printed.
  bool parse(const std::vector<std::string>& tokens) {
    std::vector<Arg*> open{&root_};
    for (const std::string& token : tokens) {
      if (token == "help" || token == "help-all") {
        print_help(*open.back(), token == "help-all");
        return false;
      }
      take(token, open);
    }
    return true;
  }

  // The node at a path such as "method.sample.adapt.delta".
  Arg& at(const std::string& path) {
    Arg* node = &root_;
    std::stringstream parts(path);
    for (std::string part; std::getline(parts, part, '.');) {
      node = node->child(part);
      if (!node) throw std::logic_error("no argument " + path);
    }
    return *node;
  }

  std::string text(const std::string& path) { return at(path).value; }
  double real(const std::string& path) { return std::strtod(text(path).c_str(), nullptr); }
  int integer(const std::string& path) { return static_cast<int>(number(path)); }
  unsigned int unsigned_integer(const std::string& path) {
    return static_cast<unsigned int>(number(path));
  }
  bool flag(const std::string& path) { return text(path) == "true"; }
  std::string method() { return text("method"); }

  // The configuration as CmdStan writes it at the head of every file.
  void print(std::ostream& out, const std::string& prefix) const {
    for (const Arg& arg : root_.children) print(out, prefix, arg);
  }

  void write_json(stan::callbacks::structured_writer& out) const {
    for (const Arg& arg : root_.children) write_json(out, arg);
  }

 private:
  Arg root_;

  long long number(const std::string& path) {
    return std::strtoll(text(path).c_str(), nullptr, 10);
  }

  void take(const std::string& token, std::vector<Arg*>& open) {
    const std::size_t equals = token.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = token.substr(0, equals);
    const std::string value = has_value ? token.substr(equals + 1) : "";

    // A bare method name stands for method=NAME.
    Arg& method = root_.children.front();
    if (!has_value && method.child(name)) return set(method, name, open, 1);

    for (std::size_t depth = open.size(); depth > 0; --depth) {
      Arg* arg = open[depth - 1]->child(name);
      if (!arg) continue;
      if (arg->has_value() && !has_value)
        throw Failure(exit_code::usage, "argument " + in_quotes(name) + " needs a value, as in "
                                            + name + "=VALUE; accepted: " + arg->accepts());
      if (!arg->has_value()) {
        if (has_value)
          throw Failure(exit_code::usage, "argument " + in_quotes(name) + " takes no value, but "
                                              + in_quotes(token) + " gives one; write "
                                              + in_quotes(name) + " and then its own arguments");
        open.resize(depth);
        open.push_back(arg);
        return;
      }
      return set(*arg, value, open, depth);
    }
    refuse_unknown(token, name, open);
  }

  void set(Arg& arg, const std::string& value, std::vector<Arg*>& open, std::size_t depth) {
    if (arg.given)
      throw Failure(exit_code::usage, "argument " + in_quotes(arg.name) + " is given twice: "
                                          + in_quotes(arg.value) + " and then " + in_quotes(value));
    arg.value = checked(arg, value);
    arg.given = true;
    open.resize(depth);
    if (arg.kind == Arg::Kind::choice) open.push_back(arg.child(arg.value));
  }

  static std::string checked(const Arg& arg, const std::string& value) {
    double x = 0;
    switch (arg.kind) {
      case Arg::Kind::text:
        return value;
      case Arg::Kind::choice:
        if (arg.child(value)) return value;
        break;
      case Arg::Kind::flag:
        if (value == "1" || value == "true") return "true";
        if (value == "0" || value == "false") return "false";
        break;
      case Arg::Kind::real:
        if (to_number(value, x) && arg.range.holds(x)) return shortest(x);
        break;
      case Arg::Kind::integer:
        if (value.find_first_not_of("+-0123456789") == std::string::npos && to_number(value, x)
            && arg.range.holds(x))
          return std::to_string(static_cast<long long>(x));
        break;
      case Arg::Kind::group:
        break;
    }
    throw Failure(exit_code::usage, "argument " + in_quotes(arg.name) + " was given "
                                        + in_quotes(value) + "; accepted: " + arg.accepts());
  }

  [[noreturn]] void refuse_unknown(const std::string& token, const std::string& name,
                                   const std::vector<Arg*>& open) const {
    std::string message = "unknown argument " + in_quotes(token);
    std::vector<std::string> places;
    find_places(root_, name, "", places);
    if (!places.empty()) {
      message += " at this place; it belongs under " + joined(places, " or ");
    } else {
      std::vector<std::string> names;
      for (std::size_t depth = open.size(); depth > 0; --depth)
        for (const Arg& arg : open[depth - 1]->children) names.push_back(arg.name);
      message += "; accepted here: " + joined(names);
    }
    throw Failure(exit_code::usage, message);
  }

  // Collects where in the tree an argument of this name lives, spelled as one would type it.
  static void find_places(const Arg& node, const std::string& name, const std::string& path,
                          std::vector<std::string>& places) {
    for (const Arg& arg : node.children) {
      if (arg.name == name && !path.empty()) places.push_back(in_quotes(path));
      const std::string lead = path.empty() ? "" : path + " ";
      if (arg.kind == Arg::Kind::group) find_places(arg, name, lead + arg.name, places);
      if (arg.kind == Arg::Kind::choice)
        for (const Arg& option : arg.children)
          find_places(option, name, lead + arg.name + "=" + option.name, places);
    }
  }

  static void print(std::ostream& out, const std::string& indent, const Arg& arg) {
    const std::string deeper = indent + "  ";
    if (arg.kind == Arg::Kind::group) {
      out << indent << arg.name << '\n';
      for (const Arg& c : arg.children) print(out, deeper, c);
      return;
    }
    out << indent << arg.name << " = " << arg.value << (arg.is_standard() ? " (Default)" : "")
        << '\n';
    if (arg.kind == Arg::Kind::choice && !arg.child(arg.value)->plain_option)
      print(out, deeper, *arg.child(arg.value));
  }

  static void write_json(stan::callbacks::structured_writer& out, const Arg& arg) {
    const bool is_choice = arg.kind == Arg::Kind::choice;
    if (arg.kind == Arg::Kind::integer) {
      out.write(arg.name, std::strtoll(arg.value.c_str(), nullptr, 10));
    } else if (arg.kind == Arg::Kind::real) {
      out.write(arg.name, std::strtod(arg.value.c_str(), nullptr));
    } else if (arg.kind == Arg::Kind::flag) {
      out.write(arg.name, arg.value == "true");
    } else if (arg.kind == Arg::Kind::text) {
      out.write(arg.name, arg.value);
    } else {
      out.begin_record(arg.name);
      if (is_choice) {
        out.write("value", arg.value);
        if (!arg.child(arg.value)->plain_option) write_json(out, *arg.child(arg.value));
      } else {
        for (const Arg& c : arg.children) write_json(out, c);
      }
      out.end_record();
    }
  }

  void print_help(const Arg& node, bool everything) const {
    if (&node == &root_)
      std::cout << "Usage: PROGRAM [METHOD] [ARGUMENT=VALUE ...]   (also: info, help, help-all, "
                   "METHOD help)\n";
    else
      std::cout << node.name << ": " << node.help << '\n';
    for (const Arg& arg : node.children) print_help(arg, "  ", everything);
  }

  static void print_help(const Arg& arg, const std::string& indent, bool everything) {
    std::cout << indent << arg.name;
    if (arg.has_value()) std::cout << "=VALUE";
    std::cout << "  " << arg.help;
    if (arg.has_value() && arg.kind != Arg::Kind::text) std::cout << "; " << arg.accepts();
    if (arg.has_value() && !arg.standard.empty()) std::cout << " (default " << arg.standard << ")";
    std::cout << '\n';
    if (arg.kind == Arg::Kind::group || everything)
      for (const Arg& c : arg.children) print_help(c, indent + "  ", everything);
  }
};

// ------------------------------------------------------------------------------------------------
// Output files and interruption
// ------------------------------------------------------------------------------------------------

// A file that is only ever handed whole lines and passes on only whole lines, so that whoever reads
// it during the run, or after the run was stopped, never meets half a row.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
      throw Failure(exit_code::cannot_create,
                    "cannot write to file " + in_quotes(path) + ": " + std::strerror(errno));
    const std::lock_guard<std::timed_mutex> guard(gate());
    all().push_back(this);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    const std::lock_guard<std::timed_mutex> guard(gate());
    all().erase(std::find(all().begin(), all().end(), this));
    pass_on();
    if (::close(descriptor_) != 0) give_up();
  }

  void append(const std::string& lines) {
    const std::lock_guard<std::timed_mutex> guard(gate());
    waiting_ += lines;
    if (waiting_.size() >= (1u << 16)) pass_on();
  }

  static void flush_all() {
    const std::lock_guard<std::timed_mutex> guard(gate());
    for (OutputFile* file : all()) file->pass_on();
  }

  // Passes everything on and ends the process. Called with a run still going on in other threads,
  // hence no destructors; the wait is bounded in case a write itself is stuck.
  [[noreturn]] static void flush_and_exit(int code) {
    if (gate().try_lock_for(std::chrono::seconds(5)))
      for (OutputFile* file : all()) file->pass_on();
    std::fflush(nullptr);
    ::_exit(code);
  }

 private:
  std::string path_;
  std::string waiting_;
  int descriptor_;

  // Both outlive every file and thread because they are never destroyed.
  static std::timed_mutex& gate() {
    static auto* mutex = new std::timed_mutex;
    return *mutex;
  }
  static std::vector<OutputFile*>& all() {
    static auto* files = new std::vector<OutputFile*>;
    return *files;
  }

  void pass_on() {
    std::size_t done = 0;
    while (done < waiting_.size()) {
      const ssize_t n = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) give_up();
      done += static_cast<std::size_t>(n);
    }
    waiting_.clear();
  }

  // Draws that cannot be kept are not worth computing: a full disk ends the run at once.
  [[noreturn]] void give_up() const {
    std::fprintf(stderr, "Error: writing to file \"%s\" failed: %s\n", path_.c_str(),
                 std::strerror(errno));
    std::fflush(nullptr);
    ::_exit(exit_code::io_error);
  }
};

using OutputPtr = std::shared_ptr<OutputFile>;

std::atomic<int> caught_signal{0};
int signal_pipe[2] = {-1, -1};

extern "C" void on_signal(int number) {
  caught_signal = number;
  const char byte = 0;
  // A full pipe means that there is a signal to be acted on already.
  if (::write(signal_pipe[1], &byte, 1) < 0) return;
}

[[noreturn]] void stop_run() {
  const int number = caught_signal;
  std::fprintf(stderr, "Interrupted by signal %d; rows written so far are kept\n", number);
  OutputFile::flush_and_exit(128 + number);
}

// The services call this once an iteration.
struct Interrupt final : stan::callbacks::interrupt {
  void operator()() override {
    if (caught_signal != 0) stop_run();
  }
};

// Flushes the files every second and stops the run after a signal: at the second one, or when the
// service has not called back within a second (a deep trajectory; ADVI, which never does).
[[noreturn]] void watch() {
  pollfd wait{signal_pipe[0], POLLIN, 0};
  int signals = 0;
  for (;;) {
    const int ready = ::poll(&wait, 1, 1000);
    char byte;
    if (ready > 0 && ::read(signal_pipe[0], &byte, 1) == 1) ++signals;
    if (signals > 1 || (signals == 1 && ready == 0)) stop_run();
    if (ready == 0) OutputFile::flush_all();
  }
}

void start_watching() {
  if (::pipe(signal_pipe) != 0) throw Failure(exit_code::software, "cannot create a pipe");
  ::fcntl(signal_pipe[1], F_SETFL, O_NONBLOCK);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {}, before = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, nullptr, &before);
    // What the parent chose to have ignored (nohup, a shell's background job) stays ignored.
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
  // A write to a closed pipe is then an error of the write, which is reported.
  std::signal(SIGPIPE, SIG_IGN);
  std::thread(watch).detach();
}

// ------------------------------------------------------------------------------------------------
// Writers
// ------------------------------------------------------------------------------------------------

class ConsoleLogger final : public stan::callbacks::logger {
 public:
  using Stream = std::stringstream;
  void debug(const std::string& message) override { line(stdout, message); }
  void debug(const Stream& message) override { line(stdout, message.str()); }
  void info(const std::string& message) override { line(stdout, message); }
  void info(const Stream& message) override { line(stdout, message.str()); }
  void warn(const std::string& message) override { line(stdout, message); }
  void warn(const Stream& message) override { line(stdout, message.str()); }
  void error(const std::string& message) override { line(stderr, message); }
  void error(const Stream& message) override { line(stderr, message.str()); }
  void fatal(const std::string& message) override { line(stderr, message); }
  void fatal(const Stream& message) override { line(stderr, message.str()); }

 private:
  // One call for the whole line, since chains in several threads share the console.
  static void line(std::FILE* stream, const std::string& message) {
    const std::string whole = message + "\n";
    std::fwrite(whole.data(), 1, whole.size(), stream);
    std::fflush(stream);
  }
};

// Rows of numbers and comment lines of a CSV file. Without a file it writes nothing.
class CsvWriter final : public stan::callbacks::writer {
 public:
  CsvWriter() = default;
  CsvWriter(OutputPtr file, int digits)
      : file_(std::move(file)), digits_(digits < 0 ? 6 : digits) {}

  void operator()(const std::vector<std::string>& names) override {
    if (file_ && !names.empty()) {
      file_->append(joined(names, ",") + "\n");
      has_header_ = true;
    }
  }
  void operator()(const std::vector<double>& values) override {
    if (!values.empty()) row(values.data(), values.size(), ",");
  }
  void operator()() override { comment(""); }
  void operator()(const std::string& message) override { comment(message); }
  void operator()(const Eigen::MatrixXd& values) override {
    for (Eigen::Index j = 0; j < values.cols(); ++j)
      row(values.col(j).data(), static_cast<std::size_t>(values.rows()), ", ");
  }
  void operator()(const Eigen::VectorXd& values) override {
    row(values.data(), static_cast<std::size_t>(values.size()), ", ");
  }
  void operator()(const Eigen::RowVectorXd& values) override {
    row(values.data(), static_cast<std::size_t>(values.size()), ", ");
  }
  bool is_valid() const noexcept override { return file_ != nullptr; }

  void raw(const std::string& lines) {
    if (file_) file_->append(lines);
  }
  bool has_header() const { return has_header_; }

 private:
  OutputPtr file_;
  int digits_ = 6;
  bool has_header_ = false;

  void comment(const std::string& message) {
    if (!file_) return;
    // A message of several lines stays a comment throughout.
    std::string lines = "# ";
    for (const char c : message) {
      lines += c;
      if (c == '\n') lines += "# ";
    }
    file_->append(lines + "\n");
  }

  // %.*g prints what a C++ stream of the same precision does, at a fraction of the cost.
  void row(const double* values, std::size_t n, const char* separator) {
    if (!file_) return;
    std::string line;
    line.reserve(n * 12);
    char number[48];
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0) line += separator;
      line.append(number, std::snprintf(number, sizeof number, "%.*g", digits_, values[i]));
    }
    line += '\n';
    file_->append(line);
  }
};

struct LeaveStream {
  void operator()(std::ostream*) const {}
};
using JsonWriter = stan::callbacks::json_writer<std::ostream, LeaveStream>;

// JSON is gathered in memory and written when it is complete.
class JsonFile {
 public:
  JsonFile(const std::string& path, int digits) : file_(path) {
    stream_.precision(digits < 0 ? 6 : digits);
  }
  JsonWriter writer() { return JsonWriter(std::unique_ptr<std::ostream, LeaveStream>(&stream_)); }
  void finish() {
    const std::string text = stream_.str();
    file_.append(text.substr(std::min(text.find_first_not_of('\n'), text.size())));
  }

 private:
  OutputFile file_;
  std::ostringstream stream_;
};

constexpr int all_digits = 17;  // enough to read a double back exactly

// ------------------------------------------------------------------------------------------------
// File names and input files
// ------------------------------------------------------------------------------------------------

bool exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

bool is_device(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat x, y;
  if (a == b) return !is_device(a);
  return ::stat(a.c_str(), &x) == 0 && ::stat(b.c_str(), &y) == 0 && S_ISREG(x.st_mode)
         && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct FileName {
  std::string base, suffix;
  explicit FileName(const std::string& path) : base(path) {
    const std::size_t slash = path.rfind('/');
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return;
    base = path.substr(0, dot);
    suffix = path.substr(dot);
  }
};

// "run.csv" becomes "run.csv" for a single chain and "run_3.csv" for chain 3 of several.
std::string output_name(const std::string& path, const std::string& tag, const std::string& suffix,
                        std::size_t num_chains, unsigned int id) {
  if (is_device(path)) return path;
  const FileName name(path);
  return name.base + tag + (num_chains > 1 ? "_" + std::to_string(id) : "")
         + (name.suffix.empty() || !tag.empty() ? suffix : name.suffix);
}

std::string read_file(const std::string& path, const std::string& purpose) {
  const auto refuse = [&](const char* why) {
    return Failure(exit_code::no_input,
                   "cannot read " + purpose + " file " + in_quotes(path) + ": " + why);
  };
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) throw refuse(std::strerror(errno));
  if (S_ISDIR(info.st_mode)) throw refuse("it is a folder");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw refuse(std::strerror(errno));
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

using Context = std::shared_ptr<stan::io::var_context>;
using Contexts = std::vector<Context>;

Context no_values() { return std::make_shared<stan::io::empty_var_context>(); }

// Reads the variables in a JSON file; R's dump format is still taken, as by CmdStan, but
// deprecated.
Context read_variables(const std::string& path, const std::string& purpose) {
  std::istringstream stream(read_file(path, purpose));
  const int first = (stream >> std::ws).peek();
  try {
    if (first == '{' || FileName(path).suffix == ".json")
      return std::make_shared<stan::json::json_data>(stream);
    std::cerr << "Warning: " << purpose << " file " << in_quotes(path)
              << " is not JSON and is read as an R dump\n";
    return std::make_shared<stan::io::dump>(stream);
  } catch (const std::exception& e) {
    throw Failure(exit_code::bad_data,
                  purpose + " file " + in_quotes(path) + " is not valid: " + e.what());
  }
}

// Which file each chain reads: one of a comma separated list; or, if there is one numbered by the
// chain's id (init_2.json for init.json), that; or else the same for all.
std::vector<std::string> input_names(const std::string& given, const std::string& argument,
                                     std::size_t num_chains, unsigned int first_id) {
  if (given.find(',') != std::string::npos && !exists(given)) {
    std::vector<std::string> names;
    std::stringstream parts(given);
    for (std::string part; std::getline(parts, part, ',');) names.push_back(part);
    if (names.size() != num_chains)
      throw Failure(exit_code::usage, "argument " + in_quotes(argument) + " lists "
                                          + std::to_string(names.size()) + " files for "
                                          + std::to_string(num_chains) + " chains");
    return names;
  }
  const FileName name(given);
  const auto numbered = [&](std::size_t i) {
    return name.base + "_" + std::to_string(first_id + i) + name.suffix;
  };
  std::vector<std::string> names(num_chains, given);
  if (num_chains > 1 && exists(numbered(0)))
    for (std::size_t i = 0; i < num_chains; ++i) names[i] = numbered(i);
  return names;
}

// Reads inv_metric, a vector or a matrix, from a file that may be one written with save_metric=1:
// the reader of Stan's data would stumble over the text in it.
Context read_metric(const std::string& path, const std::string& argument) {
  const auto refuse = [&](const std::string& why) {
    return Failure(exit_code::bad_data, argument + " file " + in_quotes(path) + " " + why);
  };
  rapidjson::Document file;
  file.Parse<rapidjson::kParseFullPrecisionFlag>(read_file(path, argument).c_str());
  if (file.HasParseError() || !file.IsObject()) throw refuse("is not a JSON object");
  if (!file.HasMember("inv_metric")) throw refuse("has no variable inv_metric");
  const auto& metric = file["inv_metric"];
  std::vector<double> values;
  const auto add = [&](const rapidjson::Value& x) {
    if (!x.IsNumber()) throw refuse("has an inv_metric that is not a vector or matrix of numbers");
    values.push_back(x.GetDouble());
  };
  if (!metric.IsArray())
    throw refuse("has an inv_metric that is not a vector or matrix of numbers");
  std::vector<std::size_t> dims{metric.Size()};
  for (const auto& row : metric.GetArray()) {
    if (!row.IsArray()) {
      add(row);
      continue;
    }
    if (row.Size() != metric.Size()) throw refuse("has an inv_metric that is not square");
    for (const auto& x : row.GetArray()) add(x);  // symmetric, so the order does not matter
    dims = {metric.Size(), metric.Size()};
  }
  if (values.size() != (dims.size() == 2 ? dims[0] * dims[1] : dims[0]))
    throw refuse("has an inv_metric that mixes numbers and rows");
  return std::make_shared<stan::io::array_var_context>(
      std::vector<std::string>{"inv_metric"}, values, std::vector<std::vector<std::size_t>>{dims});
}

using Reader = Context (*)(const std::string& path, const std::string& argument);

Contexts read_contexts(const std::string& given, const std::string& argument,
                       std::size_t num_chains, unsigned int first_id,
                       Reader read = read_variables) {
  const auto names = input_names(given, argument, num_chains, first_id);
  Contexts contexts;
  for (std::size_t i = 0; i < names.size(); ++i)
    contexts.push_back(i > 0 && names[i] == names[i - 1] ? contexts.back()
                                                         : read(names[i], argument));
  return contexts;
}

// The columns of a Stan CSV file that have the given names, one row of the matrix per row of the
// file.
Eigen::MatrixXd read_csv_columns(const std::string& path, const std::string& argument,
                                 const std::vector<std::string>& wanted) {
  const auto refuse = [&](const std::string& why) {
    return Failure(exit_code::bad_data, argument + " file " + in_quotes(path) + " " + why);
  };
  std::istringstream stream(read_file(path, argument));
  std::vector<std::size_t> columns;
  std::size_t width = 0;
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::stringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');)
      cells.push_back(part.substr(std::min(part.find_first_not_of(" \""), part.size())));
    if (columns.empty()) {
      width = cells.size();
      for (const std::string& name : wanted) {
        const auto found = std::find(cells.begin(), cells.end(), name);
        if (found == cells.end()) throw refuse("has no column for this model's parameter " + name);
        columns.push_back(static_cast<std::size_t>(found - cells.begin()));
      }
      continue;
    }
    const std::string which = "row " + std::to_string(rows.size() + 1);
    if (cells.size() != width)
      throw refuse("has " + std::to_string(cells.size()) + " columns instead of "
                   + std::to_string(width) + " in " + which);
    std::vector<double> row;
    for (const std::size_t column : columns) {
      char* end = nullptr;
      row.push_back(std::strtod(cells[column].c_str(), &end));
      if (end == cells[column].c_str()) throw refuse("holds no number in " + which);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw refuse("holds no draws");
  Eigen::MatrixXd out(rows.size(), wanted.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.row(i) = Eigen::Map<Eigen::RowVectorXd>(rows[i].data(), rows[i].size());
  return out;
}

// ------------------------------------------------------------------------------------------------
// A run
// ------------------------------------------------------------------------------------------------

using Model = stan::model::model_base;
using Path = std::vector<double>;
constexpr double default_radius = 2;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char buffer[40];
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return buffer;
}

// What every method needs: the arguments, the model made from the data, and the output files.
struct Run {
  CommandLine& args;
  Model& model;
  const unsigned int id;
  const unsigned int seed;
  const int refresh;
  const int digits;
  const std::string output;
  const std::string diagnostic_file;
  const std::string started = utc_now();
  std::vector<std::string> reading = {};  // input files, which no output may overwrite
  std::vector<std::string> writing = {};
  Interrupt interrupt = {};
  ConsoleLogger logger = {};
  stan::callbacks::writer no_writer = {};

  Run(CommandLine& args, Model& model, unsigned int seed)
      : args(args),
        model(model),
        id(args.unsigned_integer("id")),
        seed(seed),
        refresh(args.integer("output.refresh")),
        digits(args.integer("output.sig_figs")),
        output(args.text("output.file")),
        diagnostic_file(args.text("output.diagnostic_file")) {}

  std::string header(unsigned int chain_id) {
    std::ostringstream out;
    out << "# stan_version_major = " << stan::MAJOR_VERSION << '\n'
        << "# stan_version_minor = " << stan::MINOR_VERSION << '\n'
        << "# stan_version_patch = " << stan::PATCH_VERSION << '\n'
        << "# model = " << model.model_name() << '\n'
        << "# start_datetime = " << started << '\n';
    args.at("id").value = std::to_string(chain_id);
    args.print(out, "# ");
    args.at("id").value = std::to_string(id);
    for (const std::string& line : model.model_compile_info()) out << "# " << line << '\n';
    return out.str();
  }

  // Refuses an output that would overwrite an input or another output.
  const std::string& claim(const std::string& path) {
    for (const std::string& other : reading)
      if (same_file(path, other))
        throw Failure(exit_code::usage, "file " + in_quotes(path) + " is both read and written");
    for (const std::string& other : writing)
      if (same_file(path, other))
        throw Failure(exit_code::usage, "two outputs have the same file name " + in_quotes(path));
    writing.push_back(path);
    return writing.back();
  }

  CsvWriter csv(const std::string& path, unsigned int chain_id) {
    CsvWriter writer(std::make_shared<OutputFile>(claim(path)), digits);
    writer.raw(header(chain_id));
    return writer;
  }

  CsvWriter output_csv() { return csv(output_name(output, "", ".csv", 1, id), id); }

  // The CSV for the sampler's inner quantities, or a writer of nothing if it is not asked for.
  CsvWriter diagnostic_csv() {
    if (diagnostic_file.empty()) return {};
    return csv(output_name(diagnostic_file, "", ".csv", 1, id), id);
  }

  std::unique_ptr<JsonFile> json(const std::string& path, int digits) {
    return std::make_unique<JsonFile>(claim(path), digits);
  }

  // Initial values: a radius, or files with values for some or all parameters.
  double read_init(std::size_t num_chains, Contexts& contexts) {
    const std::string given = args.text("init");
    double radius = 0;
    if (to_number(given, radius)) {
      if (radius < 0)
        throw Failure(exit_code::usage, "argument \"init\" was given " + in_quotes(given)
                                            + "; accepted: a number of at least 0, or a file");
      contexts.assign(num_chains, no_values());
      return radius;
    }
    contexts = read_contexts(given, "init", num_chains, id);
    for (const std::string& name : input_names(given, "init", num_chains, id))
      reading.push_back(name);
    return default_radius;
  }

  void refuse_diagnostic_file() {
    if (!diagnostic_file.empty())
      throw Failure(exit_code::usage, "argument \"diagnostic_file\" was given "
                                          + in_quotes(diagnostic_file)
                                          + ", but method=" + args.method() + " writes none");
  }

  void require_parameters() {
    if (model.num_params_r() == 0)
      throw Failure(exit_code::usage, "model " + model.model_name()
                                          + " has no parameters, so method=" + args.method()
                                          + " has nothing to do");
  }

  std::string required_file(const std::string& path) {
    const std::string given = args.text(path);
    if (given.empty())
      throw Failure(exit_code::usage, "method=" + args.method() + " needs the argument "
                                          + in_quotes(args.at(path).name) + ", a file");
    return given;
  }

  std::vector<std::string> parameter_names() const {
    std::vector<std::string> names;
    model.constrained_param_names(names, false, false);
    return names;
  }

  Path unconstrained(const Path& values, const std::string& source) const {
    std::ostringstream messages;
    Path out;
    try {
      model.unconstrain_array(values, out, &messages);
    } catch (const std::exception& e) {
      throw Failure(exit_code::bad_data, "the parameter values in " + in_quotes(source)
                                             + " violate the model's constraints: " + e.what());
    }
    return out;
  }

  Path unconstrained(const stan::io::var_context& values, const std::string& source) const {
    std::ostringstream messages;
    Path out;
    std::vector<int> no_integers;
    try {
      model.transform_inits(values, no_integers, out, &messages);
    } catch (const std::exception& e) {
      throw Failure(exit_code::bad_data, "the parameter values in " + in_quotes(source)
                                             + " do not suit the model: " + e.what());
    }
    return out;
  }

  // Parameter values on the constrained scale from a CSV (one point per row) or JSON file (one
  // point).
  std::vector<Path> read_points(const std::string& path, const std::string& argument) {
    reading.push_back(path);
    if (FileName(path).suffix != ".csv")
      return {unconstrained(*read_variables(path, argument), path)};
    const Eigen::MatrixXd rows = read_csv_columns(path, argument, parameter_names());
    std::vector<Path> points;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const Eigen::VectorXd row = rows.row(i);
      points.push_back(unconstrained(Path(row.data(), row.data() + row.size()), path));
    }
    return points;
  }
};

// ------------------------------------------------------------------------------------------------
// method=sample
// ------------------------------------------------------------------------------------------------

// One writer per chain, in the vectors that the services take.
struct Chains {
  std::vector<CsvWriter> draws, diagnostics;
  std::vector<stan::callbacks::writer> inits;
  std::vector<std::unique_ptr<JsonFile>> metric_files;
  std::vector<JsonWriter> metrics;

  Chains(Run& run, std::size_t n, bool save_metric) : inits(n) {
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned int id = run.id + static_cast<unsigned int>(i);
      draws.push_back(run.csv(output_name(run.output, "", ".csv", n, id), id));
      diagnostics.push_back(run.diagnostic_file.empty()
                                ? CsvWriter()
                                : run.csv(output_name(run.diagnostic_file, "", ".csv", n, id), id));
      if (save_metric)
        metric_files.push_back(
            run.json(output_name(run.output, "_metric", ".json", n, id), all_digits));
      metrics.push_back(save_metric ? metric_files.back()->writer() : JsonWriter());
    }
  }
};

// The services are overloaded templates, which cannot be passed to a function as they are.
#define SERVICE(name) \
  [](auto&&... parameters) { return name(std::forward<decltype(parameters)>(parameters)...); }

int run_fixed_param(Run& run, std::size_t num_chains) {
  CommandLine& args = run.args;
  Contexts inits;
  const double radius = run.read_init(num_chains, inits);
  Chains chains(run, num_chains, false);
  return stan::services::sample::fixed_param(
      run.model, num_chains, inits, run.seed, run.id, radius,
      args.integer("method.sample.num_samples"), args.integer("method.sample.thin"), run.refresh,
      run.interrupt, run.logger, chains.inits, chains.draws, chains.diagnostics);
}

Contexts read_metrics(Run& run, const std::string& metric, std::size_t num_chains) {
  const std::string given = run.args.text("method.sample.algorithm.hmc.metric_file");
  if (!given.empty()) {
    if (metric == "unit_e")
      throw Failure(exit_code::usage, "argument \"metric_file\" was given " + in_quotes(given)
                                          + ", but metric=unit_e takes none");
    for (const std::string& name : input_names(given, "metric_file", num_chains, run.id))
      run.reading.push_back(name);
    return read_contexts(given, "metric_file", num_chains, run.id, read_metric);
  }
  namespace util = stan::services::util;
  const std::size_t n = run.model.num_params_r();
  using stan::io::array_var_context;
  Context unit;
  if (metric == "dense_e")
    unit = std::make_shared<array_var_context>(util::create_unit_e_dense_inv_metric(n));
  else
    unit = std::make_shared<array_var_context>(util::create_unit_e_diag_inv_metric(n));
  return Contexts(num_chains, unit);
}

int run_hmc(Run& run, std::size_t num_chains) {
  using namespace stan::services::sample;
  CommandLine& args = run.args;
  const std::string hmc = "method.sample.algorithm.hmc.", adapt = "method.sample.adapt.";
  const std::string engine = args.text(hmc + "engine"), metric = args.text(hmc + "metric");
  const bool adapting = args.flag(adapt + "engaged");
  const bool save_metric = args.flag(adapt + "save_metric");
  const int num_warmup = args.integer("method.sample.num_warmup");
  if (adapting && num_warmup == 0)
    throw Failure(
        exit_code::usage,
        "argument \"num_warmup\" was given \"0\"; accepted: a whole number of at least 1, "
        "or 0 together with adapt engaged=0");
  if (engine == "static" && num_chains > 1)
    throw Failure(exit_code::usage, "argument \"num_chains\" was given \""
                                        + std::to_string(num_chains)
                                        + "\"; accepted with engine=static: 1");
  if (save_metric && (engine == "static" || !adapting))
    throw Failure(
        exit_code::usage,
        "argument \"save_metric\" was given \"true\"; accepted with engine=static or adapt "
        "engaged=0: false");

  Contexts inits;
  const double radius = run.read_init(num_chains, inits);
  const Contexts metrics = read_metrics(run, metric, num_chains);
  Chains chains(run, num_chains, save_metric);

  const int num_samples = args.integer("method.sample.num_samples");
  const int thin = args.integer("method.sample.thin");
  const bool save_warmup = args.flag("method.sample.save_warmup");
  const double stepsize = args.real(hmc + "stepsize"), jitter = args.real(hmc + "stepsize_jitter");
  const double delta = args.real(adapt + "delta"), gamma = args.real(adapt + "gamma");
  const double kappa = args.real(adapt + "kappa"), t0 = args.real(adapt + "t0");
  const unsigned int init_buffer = args.unsigned_integer(adapt + "init_buffer");
  const unsigned int term_buffer = args.unsigned_integer(adapt + "term_buffer");
  const unsigned int window = args.unsigned_integer(adapt + "window");
  const int max_depth = args.integer(hmc + "engine.nuts.max_depth");
  const double int_time = args.real(hmc + "engine.static.int_time");
  Model& model = run.model;

  // The services take the same arguments in the same order, less those that do not concern them:
  // the metric for a unit metric, adaptation parameters without adaptation.
  const auto nuts_windowed = [&](auto service) {
    return service(model, num_chains, inits, metrics, run.seed, run.id, radius, num_warmup,
                   num_samples, thin, save_warmup, run.refresh, stepsize, jitter, max_depth, delta,
                   gamma, kappa, t0, init_buffer, term_buffer, window, run.interrupt, run.logger,
                   chains.inits, chains.draws, chains.diagnostics, chains.metrics);
  };
  const auto nuts_fixed = [&](auto service) {
    return service(model, num_chains, inits, metrics, run.seed, run.id, radius, num_warmup,
                   num_samples, thin, save_warmup, run.refresh, stepsize, jitter, max_depth,
                   run.interrupt, run.logger, chains.inits, chains.draws, chains.diagnostics);
  };
  const auto static_windowed = [&](auto service) {
    return service(model, *inits[0], *metrics[0], run.seed, run.id, radius, num_warmup, num_samples,
                   thin, save_warmup, run.refresh, stepsize, jitter, int_time, delta, gamma, kappa,
                   t0, init_buffer, term_buffer, window, run.interrupt, run.logger, chains.inits[0],
                   chains.draws[0], chains.diagnostics[0]);
  };
  const auto static_fixed = [&](auto service) {
    return service(model, *inits[0], *metrics[0], run.seed, run.id, radius, num_warmup, num_samples,
                   thin, save_warmup, run.refresh, stepsize, jitter, int_time, run.interrupt,
                   run.logger, chains.inits[0], chains.draws[0], chains.diagnostics[0]);
  };

  int code = exit_code::software;
  if (engine == "nuts" && metric == "diag_e") {
    code = adapting ? nuts_windowed(SERVICE(hmc_nuts_diag_e_adapt))
                    : nuts_fixed(SERVICE(hmc_nuts_diag_e));
  } else if (engine == "nuts" && metric == "dense_e") {
    code = adapting ? nuts_windowed(SERVICE(hmc_nuts_dense_e_adapt))
                    : nuts_fixed(SERVICE(hmc_nuts_dense_e));
  } else if (engine == "nuts") {
    code = adapting ? hmc_nuts_unit_e_adapt(model, num_chains, inits, run.seed, run.id, radius,
                                            num_warmup, num_samples, thin, save_warmup, run.refresh,
                                            stepsize, jitter, max_depth, delta, gamma, kappa, t0,
                                            run.interrupt, run.logger, chains.inits, chains.draws,
                                            chains.diagnostics, chains.metrics)
                    : hmc_nuts_unit_e(model, num_chains, inits, run.seed, run.id, radius,
                                      num_warmup, num_samples, thin, save_warmup, run.refresh,
                                      stepsize, jitter, max_depth, run.interrupt, run.logger,
                                      chains.inits, chains.draws, chains.diagnostics);
  } else if (metric == "diag_e") {
    code = adapting ? static_windowed(SERVICE(hmc_static_diag_e_adapt))
                    : static_fixed(SERVICE(hmc_static_diag_e));
  } else if (metric == "dense_e") {
    code = adapting ? static_windowed(SERVICE(hmc_static_dense_e_adapt))
                    : static_fixed(SERVICE(hmc_static_dense_e));
  } else {
    code = adapting ? hmc_static_unit_e_adapt(model, *inits[0], run.seed, run.id, radius,
                                              num_warmup, num_samples, thin, save_warmup,
                                              run.refresh, stepsize, jitter, int_time, delta, gamma,
                                              kappa, t0, run.interrupt, run.logger, chains.inits[0],
                                              chains.draws[0], chains.diagnostics[0])
                    : hmc_static_unit_e(model, *inits[0], run.seed, run.id, radius, num_warmup,
                                        num_samples, thin, save_warmup, run.refresh, stepsize,
                                        jitter, int_time, run.interrupt, run.logger,
                                        chains.inits[0], chains.draws[0], chains.diagnostics[0]);
  }
  for (auto& file : chains.metric_files) file->finish();
  // The sampler reports success when it could not even find a step size.
  for (const CsvWriter& draws : chains.draws)
    if (code == exit_code::success && !draws.has_header()) code = exit_code::software;
  return code;
}

int run_sample(Run& run) {
  const std::size_t num_chains = run.args.unsigned_integer("method.sample.num_chains");
  if (run.args.text("method.sample.algorithm") == "fixed_param")
    return run_fixed_param(run, num_chains);
  if (run.model.num_params_r() == 0) {
    run.logger.info("Model has no parameters; running algorithm=fixed_param.");
    return run_fixed_param(run, num_chains);
  }
  return run_hmc(run, num_chains);
}

// ------------------------------------------------------------------------------------------------
// The other methods
// ------------------------------------------------------------------------------------------------

template <bool jacobian>
int optimize(Run& run) {
  using namespace stan::services::optimize;
  CommandLine& args = run.args;
  const std::string here = "method.optimize.", algorithm = args.text(here + "algorithm");
  const std::string search = here + "algorithm." + algorithm + ".";
  const int iterations = args.integer(here + "iter");
  const bool save = args.flag(here + "save_iterations");
  Contexts inits;
  const double radius = run.read_init(1, inits);
  CsvWriter out = run.output_csv();
  Model& model = run.model;
  if (algorithm == "newton")
    return newton<Model, jacobian>(model, *inits[0], run.seed, run.id, radius, iterations, save,
                                   run.interrupt, run.logger, run.no_writer, out);
  const double init_alpha = args.real(search + "init_alpha");
  const double tol_obj = args.real(search + "tol_obj");
  const double tol_rel_obj = args.real(search + "tol_rel_obj");
  const double tol_grad = args.real(search + "tol_grad");
  const double tol_rel_grad = args.real(search + "tol_rel_grad");
  const double tol_param = args.real(search + "tol_param");
  if (algorithm == "bfgs")
    return bfgs<Model, jacobian>(model, *inits[0], run.seed, run.id, radius, init_alpha, tol_obj,
                                 tol_rel_obj, tol_grad, tol_rel_grad, tol_param, iterations, save,
                                 run.refresh, run.interrupt, run.logger, run.no_writer, out);
  return lbfgs<Model, jacobian>(model, *inits[0], run.seed, run.id, radius,
                                args.integer(search + "history_size"), init_alpha, tol_obj,
                                tol_rel_obj, tol_grad, tol_rel_grad, tol_param, iterations, save,
                                run.refresh, run.interrupt, run.logger, run.no_writer, out);
}

int run_optimize(Run& run) {
  run.refuse_diagnostic_file();
  run.require_parameters();
  return run.args.flag("method.optimize.jacobian") ? optimize<true>(run) : optimize<false>(run);
}

int run_laplace(Run& run) {
  CommandLine& args = run.args;
  run.require_parameters();
  const std::string file = run.required_file("method.laplace.mode");
  // Of an optimisation with all its iterations the last row is the mode.
  Path mode = run.read_points(file, "mode").back();
  const Eigen::VectorXd centre = Eigen::Map<Eigen::VectorXd>(mode.data(), mode.size());
  CsvWriter out = run.output_csv();
  std::unique_ptr<JsonFile> hessian_file;
  if (!run.diagnostic_file.empty())
    hessian_file = run.json(output_name(run.diagnostic_file, "", ".json", 1, run.id), run.digits);
  JsonWriter hessian = hessian_file ? hessian_file->writer() : JsonWriter();
  const int draws = args.integer("method.laplace.draws");
  const bool calculate_lp = args.flag("method.laplace.calculate_lp");
  const int code = args.flag("method.laplace.jacobian")
                       ? stan::services::laplace_sample<true>(
                             run.model, centre, draws, calculate_lp, run.seed, run.refresh,
                             run.interrupt, run.logger, out, hessian)
                       : stan::services::laplace_sample<false>(
                             run.model, centre, draws, calculate_lp, run.seed, run.refresh,
                             run.interrupt, run.logger, out, hessian);
  if (hessian_file) hessian_file->finish();
  return code;
}

int run_variational(Run& run) {
  CommandLine& args = run.args;
  run.require_parameters();
  const std::string here = "method.variational.";
  Contexts inits;
  const double radius = run.read_init(1, inits);
  CsvWriter out = run.output_csv(), diagnostics = run.diagnostic_csv();
  const auto fit = [&](auto service) {
    return service(run.model, *inits[0], run.seed, run.id, radius,
                   args.integer(here + "grad_samples"), args.integer(here + "elbo_samples"),
                   args.integer(here + "iter"), args.real(here + "tol_rel_obj"),
                   args.real(here + "eta"), args.flag(here + "adapt.engaged"),
                   args.integer(here + "adapt.iter"), args.integer(here + "eval_elbo"),
                   args.integer(here + "output_samples"), run.interrupt, run.logger, run.no_writer,
                   out, diagnostics);
  };
  namespace advi = stan::services::experimental::advi;
  return args.text(here + "algorithm") == "meanfield" ? fit(SERVICE(advi::meanfield))
                                                      : fit(SERVICE(advi::fullrank));
}

int run_pathfinder(Run& run) {
  using namespace stan::services::pathfinder;
  CommandLine& args = run.args;
  run.require_parameters();
  const std::string here = "method.pathfinder.";
  const int num_paths = args.integer(here + "num_paths");
  const bool save_single = args.flag(here + "save_single_paths");
  const bool save_iterations = save_single || !run.diagnostic_file.empty();
  Contexts inits;
  const double radius = run.read_init(num_paths, inits);
  CsvWriter out = run.output_csv();

  // Per path: draws if they are asked for, and the iterations of the optimiser.
  std::vector<CsvWriter> path_draws;
  std::vector<std::unique_ptr<JsonFile>> path_files;
  std::vector<JsonWriter> path_iterations;
  std::vector<stan::callbacks::writer> init_writers(num_paths);
  for (int i = 0; i < num_paths; ++i) {
    const unsigned int id = run.id + static_cast<unsigned int>(i);
    const bool several = num_paths > 1;
    const std::string tag =
        several || run.diagnostic_file.empty() ? "_path_" + std::to_string(id) : "";
    const std::string base = run.diagnostic_file.empty() ? run.output : run.diagnostic_file;
    path_draws.push_back(save_single && several
                             ? run.csv(output_name(run.output, tag, ".csv", 1, id), id)
                             : CsvWriter());
    if (save_iterations)
      path_files.push_back(run.json(output_name(base, tag, ".json", 1, id), run.digits));
    path_iterations.push_back(save_iterations ? path_files.back()->writer() : JsonWriter());
  }

  const double init_alpha = args.real(here + "init_alpha");
  const double tol_obj = args.real(here + "tol_obj");
  const double tol_rel_obj = args.real(here + "tol_rel_obj");
  const double tol_grad = args.real(here + "tol_grad");
  const double tol_rel_grad = args.real(here + "tol_rel_grad");
  const double tol_param = args.real(here + "tol_param");
  const int history_size = args.integer(here + "history_size");
  const int iterations = args.integer(here + "max_lbfgs_iters");
  const int num_elbo_draws = args.integer(here + "num_elbo_draws");
  const int num_draws = args.integer(here + "num_draws");
  const bool calculate_lp = args.flag(here + "calculate_lp");
  int code;
  if (num_paths == 1)
    code = pathfinder_lbfgs_single(run.model, *inits[0], run.seed, run.id, radius, history_size,
                                   init_alpha, tol_obj, tol_rel_obj, tol_grad, tol_rel_grad,
                                   tol_param, iterations, num_elbo_draws, num_draws,
                                   save_iterations, run.refresh, run.interrupt, run.logger,
                                   init_writers[0], out, path_iterations[0], calculate_lp);
  else
    code = pathfinder_lbfgs_multi(
        run.model, inits, run.seed, run.id, radius, history_size, init_alpha, tol_obj, tol_rel_obj,
        tol_grad, tol_rel_grad, tol_param, iterations, num_elbo_draws, num_draws,
        args.integer(here + "num_psis_draws"), num_paths, save_iterations, run.refresh,
        run.interrupt, run.logger, init_writers, path_draws, path_iterations, out,
        path_iterations[0], calculate_lp, args.flag(here + "psis_resample"));
  for (auto& file : path_files) file->finish();
  return code;
}

int run_generate_quantities(Run& run) {
  CommandLine& args = run.args;
  run.refuse_diagnostic_file();
  run.require_parameters();
  const std::size_t num_chains = args.unsigned_integer("method.generate_quantities.num_chains");
  const std::string given = run.required_file("method.generate_quantities.fitted_params");
  std::vector<Eigen::MatrixXd> fitted;
  for (const std::string& name : input_names(given, "fitted_params", num_chains, run.id)) {
    fitted.push_back(read_csv_columns(name, "fitted_params", run.parameter_names()));
    run.reading.push_back(name);
  }
  Chains chains(run, num_chains, false);
  return stan::services::standalone_generate(run.model, static_cast<int>(num_chains), fitted,
                                             run.seed, run.interrupt, run.logger, chains.draws);
}

// The points at which params_r, a vector or an array of vectors, asks for the log density.
std::vector<Path> read_unconstrained(Run& run, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Failure(exit_code::bad_data, "unconstrained_params file " + in_quotes(path) + " " + why);
  };
  run.reading.push_back(path);
  const Context values = read_variables(path, "unconstrained_params");
  if (!values->contains_r("params_r")) throw refuse("has no variable params_r");
  const std::vector<size_t> dims = values->dims_r("params_r");
  const Path flat = values->vals_r("params_r");
  const std::size_t n = run.model.num_params_r();
  if (dims.empty() || dims.size() > 2 || dims.back() != n)
    throw refuse("does not hold " + std::to_string(n) + " values for each point");
  const std::size_t rows = dims.size() == 2 ? dims[0] : 1;
  std::vector<Path> points(rows, Path(n));
  for (std::size_t i = 0; i < rows; ++i)  // contexts store arrays with the first index fastest
    for (std::size_t j = 0; j < n; ++j) points[i][j] = flat[i + j * rows];
  return points;
}

int run_log_prob(Run& run) {
  CommandLine& args = run.args;
  run.refuse_diagnostic_file();
  run.require_parameters();
  const std::string free = args.text("method.log_prob.unconstrained_params");
  const std::string constrained = args.text("method.log_prob.constrained_params");
  if (free.empty() == constrained.empty())
    throw Failure(exit_code::usage,
                  "method=log_prob needs either the argument \"unconstrained_params\" or "
                  "\"constrained_params\", a file");
  std::vector<Path> points = free.empty() ? run.read_points(constrained, "constrained_params")
                                          : read_unconstrained(run, free);
  std::vector<std::string> names{"lp__"};
  std::vector<std::string> parameters;
  run.model.unconstrained_param_names(parameters, false, false);
  for (const std::string& name : parameters) names.push_back("g_" + name);
  CsvWriter out = run.output_csv();
  out(names);
  std::vector<int> no_integers;
  const bool jacobian = args.flag("method.log_prob.jacobian");
  for (Path& point : points) {
    run.interrupt();
    Path gradient;
    const double lp = jacobian ? stan::model::log_prob_grad<true, true>(
                                     run.model, point, no_integers, gradient, &std::cout)
                               : stan::model::log_prob_grad<true, false>(
                                     run.model, point, no_integers, gradient, &std::cout);
    gradient.insert(gradient.begin(), lp);
    out(gradient);
  }
  return exit_code::success;
}

int run_diagnose(Run& run) {
  run.refuse_diagnostic_file();
  run.require_parameters();
  Contexts inits;
  const double radius = run.read_init(1, inits);
  CsvWriter out = run.output_csv();
  const std::string here = "method.diagnose.test.gradient.";
  const int failed = stan::services::diagnose::diagnose(
      run.model, *inits[0], run.seed, run.id, radius, run.args.real(here + "epsilon"),
      run.args.real(here + "error"), run.interrupt, run.logger, run.no_writer, out);
  return failed == 0 ? exit_code::success : exit_code::failure;
}

// ------------------------------------------------------------------------------------------------
// main
// ------------------------------------------------------------------------------------------------

void print_info() {
  const auto on = [](bool value) { return value ? "true" : "false"; };
  bool range_checks = true, optims = false;
#ifdef STAN_NO_RANGE_CHECKS
  range_checks = false;
#endif
#ifdef STAN_CPP_OPTIMS
  optims = true;
#endif
  std::cout << "stan_version_major = " << stan::MAJOR_VERSION << '\n'
            << "stan_version_minor = " << stan::MINOR_VERSION << '\n'
            << "stan_version_patch = " << stan::PATCH_VERSION << '\n'
            << "STAN_THREADS = " << on(built_with_threads) << '\n'
            << "STAN_MPI = false\nSTAN_OPENCL = false\n"
            << "STAN_NO_RANGE_CHECKS = " << on(!range_checks) << '\n'
            << "STAN_CPP_OPTIMS = " << on(optims) << std::endl;
}

// Takes the number of threads from the command line or else from STAN_NUM_THREADS, which CmdStanPy
// sets for every run: only a program built with threads minds it.
void set_threads(CommandLine& args) {
  Arg& arg = args.at("num_threads");
  const char* environment = std::getenv("STAN_NUM_THREADS");
  double x = 0;
  if (built_with_threads && !arg.given && environment != nullptr) {
    if (!to_number(environment, x) || x != std::floor(x) || (x != -1 && x < 1))
      throw Failure(exit_code::usage, "environment variable STAN_NUM_THREADS is "
                                          + in_quotes(environment)
                                          + "; accepted: a whole number of at least 1, or -1");
    arg.value = std::to_string(static_cast<long long>(x));
  }
  const int threads = args.integer("num_threads");
  if (threads == 0)
    throw Failure(exit_code::usage,
                  "argument \"num_threads\" was given \"0\"; accepted: a whole "
                  "number of at least 1, or -1");
  if (!built_with_threads && threads != 1)
    throw Failure(exit_code::usage, "argument \"num_threads\" was given " + in_quotes(arg.value)
                                        + "; accepted: 1, since this program was compiled without "
                                          "STAN_THREADS=TRUE");
  stan::math::init_threadpool_tbb(threads);
}

unsigned int choose_seed(CommandLine& args) {
  Arg& arg = args.at("random.seed");
  if (arg.value == "-1") {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ticks = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    arg.value = std::to_string(static_cast<unsigned int>(ticks));
  }
  return args.unsigned_integer("random.seed");
}

void write_config(Run& run) {
  auto file = run.json(output_name(run.output, "_config", ".json", 1, run.id), 15);
  JsonWriter out = file->writer();
  out.begin_record();
  out.write("stan_major_version", stan::MAJOR_VERSION);
  out.write("stan_minor_version", stan::MINOR_VERSION);
  out.write("stan_patch_version", stan::PATCH_VERSION);
  out.write("model_name", run.model.model_name());
  out.write("start_datetime", run.started);
  run.args.write_json(out);
  for (const std::string& line : run.model.model_compile_info()) {
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos) out.write(line.substr(0, equals), line.substr(equals + 3));
  }
  out.end_record();
  file->finish();
}

// One row per profile section and thread; a program without profile sections writes no file.
void write_profile(Run& run) {
  const auto& sections = get_stan_profile_data();
  if (sections.empty()) return;
  OutputFile file(run.claim(run.args.text("output.profile_file")));
  std::ostringstream out;
  if (run.digits >= 0) out.precision(run.digits);
  out << "name,thread_id,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,"
         "autodiff_calls,no_autodiff_calls\n";
  for (const auto& [key, times] : sections)
    out << key.first << ',' << key.second << ',' << times.get_fwd_time() + times.get_rev_time()
        << ',' << times.get_fwd_time() << ',' << times.get_rev_time() << ','
        << times.get_chain_stack_used() << ',' << times.get_nochain_stack_used() << ','
        << times.get_num_AD_fwd_passes() << ',' << times.get_num_no_AD_fwd_passes() << '\n';
  file.append(out.str());
}

int dispatch(Run& run) {
  const std::string method = run.args.method();
  if (method == "sample") return run_sample(run);
  if (method == "optimize") return run_optimize(run);
  if (method == "variational") return run_variational(run);
  if (method == "pathfinder") return run_pathfinder(run);
  if (method == "laplace") return run_laplace(run);
  if (method == "generate_quantities") return run_generate_quantities(run);
  if (method == "log_prob") return run_log_prob(run);
  return run_diagnose(run);
}

Model& make_model(CommandLine& args, unsigned int seed) {
  const std::string file = args.text("data.file");
  const Context data = file.empty() ? no_values() : read_variables(file, "data");
  try {
    return new_model(*data, seed, &std::cout);
  } catch (const std::exception& e) {
    throw Failure(exit_code::bad_data,
                  (file.empty() ? "without a data file" : "with data file " + in_quotes(file))
                      + " the model cannot be made: " + e.what());
  }
}

int run(const std::vector<std::string>& tokens) {
  if (!tokens.empty() && tokens.front() == "info") {
    print_info();
    return exit_code::success;
  }
  CommandLine args;
  if (!args.parse(tokens)) return exit_code::success;
  set_threads(args);
  const unsigned int seed = choose_seed(args);
  start_watching();
  // The model lives as long as the process: it has no owner that could outlive its last use.
  Run run(args, make_model(args, seed), seed);
  if (!args.text("data.file").empty()) run.reading.push_back(args.text("data.file"));
  args.print(std::cout, "");
  std::cout << std::endl;
  if (args.flag("output.save_cmdstan_config")) write_config(run);
  const int code = dispatch(run);
  write_profile(run);
  return code;
}

}  // namespace frontend

int main(int argc, const char* argv[]) {
  int code = frontend::exit_code::software;
  std::string message;
  try {
    code = frontend::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const frontend::Failure& e) {
    code = e.code;
    message = e.what();
  } catch (const std::exception& e) {
    message = e.what();
  }
  std::cout.flush();
  // One line, whatever the library put into its message.
  while (!message.empty() && std::isspace(static_cast<unsigned char>(message.back())))
    message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (!message.empty()) std::cerr << "Error: " << message << std::endl;
  return code;
}
