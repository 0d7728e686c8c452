// Pseudo-extended horseshoe regression (Nemeth et al. 2019, eq. 3) with each
// inverse temperature integrated out of its own instrumental density,
// q(x) = b(x) times the integral of g(beta) exp(-beta Delta(x)), so that
// NUTS moves in the pseudo-samples alone.  Every pseudo-sample has its own
// scales.
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
  #include blocks/ladder.standata
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  #include blocks/whitened_base.standata
}
parameters {
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  matrix<lower=0>[d, N] lambda; // local scales
  vector<lower=0>[N] tau; // global scales
  vector<lower=0>[N] c2; // squared slab widths
}
model {
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
  vector[N] log_q = log_base;
  for (i in 1 : N) {
    log_q[i] += log_tempered_mass(log_base[i] + log_zeta - log_gamma[i],
                  g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
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
    vector[N] log_q = log_base;
    delta = log_base + log_zeta - log_gamma;
    for (i in 1 : N) {
      log_q[i] += log_tempered_mass(delta[i], g_knot, log_g, ladder);
      inv_temp[i] = inv_temp_rng(delta[i], g_knot, log_g, ladder);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, log_q);
  }
}

