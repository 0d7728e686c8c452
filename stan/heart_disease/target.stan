// Boltzmann machine of six binary risk factors (Murray 2007, 5.2.4).
// docs/api/models.md explains its data.
//
// The machine is so small that its constant is a sum over 64 states, so that
// this is the exact posterior with which methods for unknown constants are
// compared.
data {
  int<lower=1> M; // states
  int<lower=1> D; // parameters: biases, then weights of pairs
  matrix[M, D] features; // products s_i and s_i s_j of each state
  vector<lower=0>[M] counts; // observations in each state
  real<lower=0> prior_sd;
}
transformed data {
  vector[D] observed = features' * counts;
  real N = sum(counts);
}
parameters {
  vector[D] w;
}
model {
  target += normal_lpdf(w | 0, prior_sd) + dot_product(observed, w)
            - N * log_sum_exp(features * w);
}

