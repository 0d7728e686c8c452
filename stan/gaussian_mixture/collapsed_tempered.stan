// Continuously tempered mixture of Gaussians with the inverse temperature
// integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)), so that NUTS moves in x alone.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> K; // number of mixture components
  simplex[K] weight; // mixture weights
  matrix[D, K] mu; // component means, one a column
  vector<lower=0>[K] sigma; // component standard deviations
  real lower_bound; // the box is [lower_bound, upper_bound]^D
  real<lower=lower_bound> upper_bound;
  int<lower=0, upper=1> gaussian_base; // 0: base uniform on the box
  vector[gaussian_base ? D : 0] base_mean;
  matrix[gaussian_base ? D : 0, gaussian_base ? D : 0] base_cholesky;
  real log_zeta; // guess at log Z
  int<lower=2> G; // knots of log g, linear between them
  vector<lower=0, upper=1>[G] g_knot; // ascending from 0 to 1
  vector[G] log_g;
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  real log_base = gaussian_base
                  ? multi_normal_cholesky_lpdf(x | base_mean, base_cholesky)
                  : -D * log(upper_bound - lower_bound);
  real delta = log_base + log_zeta - gaussian_mixture_lpdf(x | coefficients);
  target += log_base + log_sum_exp(inv_temp_log_masses(delta, g_knot, log_g));
}
generated quantities {
  real delta = log_zeta - gaussian_mixture_lpdf(x | coefficients)
               + (gaussian_base
                  ? multi_normal_cholesky_lpdf(x | base_mean, base_cholesky)
                  : -D * log(upper_bound - lower_bound));
  real inv_temp = inv_temp_rng(delta, g_knot, log_g);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g);
}

