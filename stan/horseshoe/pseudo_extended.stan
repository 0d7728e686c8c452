// Pseudo-extended horseshoe regression (Nemeth et al. 2019, eq. 8) in the full
// form: every pseudo-sample has its own scales.  With the prior as base, the
// default, q(x, beta) = prior(x) likelihood(x)^beta g(beta), proper at every
// beta.
functions {
  #include tempering.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  int<lower=1> n; // number of observations
  int<lower=1> d; // number of predictors
  matrix[n, d] X; // predictors, one observation a row
  array[n] int<lower=0, upper=1> y; // classes
  real<lower=0> scale_global; // scale tau_0 of the global scale
  real<lower=0> scale_icept; // standard deviation of the intercept
  real<lower=0> slab_scale; // scale of the slab
  real<lower=0> slab_df; // degrees of freedom of the slab
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
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  matrix<lower=0>[d, N] lambda; // local scales
  vector<lower=0>[N] tau; // global scales
  vector<lower=0>[N] c2; // squared slab widths
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] beta = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                          scale_global, scale_icept, slab_scale, slab_df);
  vector[N] log_likelihood = horseshoe_log_likelihood(y, X, beta0, z, lambda,
                               tau, c2);
  vector[N] log_gamma = log_prior + log_likelihood;
  vector[N] log_base = log_prior;
  if (B) {
    log_base = gaussian_base_log_density(
                 horseshoe_unconstrained(beta0, z, lambda, tau, c2), N,
                 whitened_mean, whiten, base_constant)
               - horseshoe_log_volume(lambda, tau, c2);
  }
  vector[N] log_q = geometric_path(log_gamma, log_base, log_zeta, beta);
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
    vector[N] log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                            scale_global, scale_icept, slab_scale, slab_df);
    vector[N] log_likelihood = horseshoe_log_likelihood(y, X, beta0, z,
                                 lambda, tau, c2);
    vector[N] log_gamma = log_prior + log_likelihood;
    vector[N] log_base = log_prior;
    if (B) {
      log_base = gaussian_base_log_density(
                   horseshoe_unconstrained(beta0, z, lambda, tau, c2), N,
                   whitened_mean, whiten, base_constant)
                 - horseshoe_log_volume(lambda, tau, c2);
    }
    delta = log_base + log_zeta - log_gamma;
    log_weight = pseudo_extended_log_weight(
                   log_gamma
                   + log_inv_temp_density(inv_temp, pi_knot, log_pi,
                       pi_shape),
                   geometric_path(log_gamma, log_base, log_zeta, inv_temp)
                   + log_inv_temp_density(inv_temp, g_knot, log_g, g_shape));
  }
}

