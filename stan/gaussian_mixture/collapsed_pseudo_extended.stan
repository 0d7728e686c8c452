// Pseudo-extended mixture of Gaussians (Nemeth et al. 2019, eq. 3) with each
// inverse temperature integrated out of its own instrumental density,
// q(x) = b(x) times the integral of g(beta) exp(-beta Delta(x)), so that
// NUTS moves in the pseudo-samples alone.  Without a Gaussian base b = 1.
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
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
  #include blocks/whitened_base.standata
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
}
model {
  vector[N] log_gamma = gaussian_mixture_log_density(x, coefficients);
  vector[N] log_base = B
                       ? gaussian_base_log_density(x, N, whitened_mean,
                           whiten, base_constant)
                       : zeros_vector(N);
  vector[N] log_q = log_base;
  for (n in 1 : N) {
    log_q[n] += log_tempered_mass(log_base[n] + log_zeta - log_gamma[n],
                  g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_gamma = gaussian_mixture_log_density(x, coefficients);
    vector[N] log_base = B
                         ? gaussian_base_log_density(x, N, whitened_mean,
                             whiten, base_constant)
                         : zeros_vector(N);
    vector[N] log_q = log_base;
    delta = log_base + log_zeta - log_gamma;
    for (n in 1 : N) {
      log_q[n] += log_tempered_mass(delta[n], g_knot, log_g, ladder);
      inv_temp[n] = inv_temp_rng(delta[n], g_knot, log_g, ladder);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, log_q);
  }
}

