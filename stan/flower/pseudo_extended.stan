// Flower (Sejdinovic et al. 2014), pseudo-extended (Nemeth et al. 2019, eq. 8):
// q(x, beta) = gamma_beta(x) g(beta).  Without a Gaussian base it is pure
// tempering, gamma_beta = gamma^beta: x is not bounded, so that its mass is
// finite only where beta is bounded away from 0, by g_knot[1].
functions {
  #include tempering.stanfunctions
  #include flower/density.stanfunctions
}
data {
  real<lower=0> r; // mean radius
  real<lower=0> A; // amplitude
  int<lower=1> w; // number of petals
  real<lower=0> s; // half width of the ring
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/pseudo_samples.standata
}
transformed data {
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, g_shape);
  int uniform_pi = is_uniform(log_pi, pi_shape);
}
parameters {
  matrix[2, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma = flower_log_density(x, r, A, w, s);
  vector[N] log_q = B
                    ? geometric_path(log_gamma,
                                     gaussian_base_log_density(x, N,
                                       whitened_mean, whiten, base_constant),
                                     log_zeta, beta)
                    : geometric_path(log_gamma, log_zeta, beta);
  if (!uniform_pi) {
    log_gamma += log_inv_temp_density(beta, pi_knot, log_pi, pi_shape);
  }
  if (!uniform_g) {
    log_q += log_inv_temp_density(beta, g_knot, log_g, g_shape);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
  if (g_correlation != 0) {
    target += stratified_log_density(
                (free_inv_temp - g_knot[1]) / (1 - g_knot[1]), g_correlation);
  }
}
generated quantities {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_gamma = flower_log_density(x, r, A, w, s);
    vector[N] log_base = B
                         ? gaussian_base_log_density(x, N, whitened_mean,
                             whiten, base_constant)
                         : zeros_vector(N);
    delta = log_base + log_zeta - log_gamma;
    log_weight = pseudo_extended_log_weight(
                   log_gamma
                   + log_inv_temp_density(inv_temp, pi_knot, log_pi,
                       pi_shape),
                   geometric_path(log_gamma, log_base, log_zeta, inv_temp)
                   + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
  }
}

