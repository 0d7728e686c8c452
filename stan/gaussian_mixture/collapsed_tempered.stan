// Continuously tempered mixture of Gaussians with the inverse temperature
// integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)), so that NUTS moves in x alone.  On a ladder
// the integral is a sum over its rungs.
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
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
  #include blocks/whitened_base.standata
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : -D * log(upper_bound - lower_bound);
  real delta = log_base + log_zeta - gaussian_mixture_lpdf(x | coefficients);
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta = log_zeta - gaussian_mixture_lpdf(x | coefficients)
               + (B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : -D * log(upper_bound - lower_bound));
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

