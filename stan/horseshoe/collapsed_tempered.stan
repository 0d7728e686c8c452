// Continuously tempered horseshoe regression with the inverse temperature
// integrated out: log p(x) = log b(x) + log integral of
// g(beta) exp(-beta Delta(x)).  With the prior as base, the default, Delta is
// minus the log likelihood.  On a ladder the integral is a sum over its rungs.
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
}
transformed data {
  #include blocks/whitened_base.standata
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
}
model {
  real log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                     scale_global, scale_icept, slab_scale, slab_df);
  real log_base = B
                  ? gaussian_base_lpdf(
                      horseshoe_unconstrained(beta0, z, lambda, tau, c2) |
                      whitened_mean, whiten, base_constant)
                    - horseshoe_log_volume(lambda, tau, c2)
                  : log_prior;
  real log_likelihood = horseshoe_log_likelihood(y, X, beta0, z, lambda, tau,
                          c2);
  real delta = log_base - log_prior + log_zeta - log_likelihood;
  target += log_base + log_tempered_mass(delta, g_knot, log_g, ladder);
}
generated quantities {
  real delta; // log b + log zeta - log gamma
  {
    real log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                       scale_global, scale_icept, slab_scale, slab_df);
    real log_base = B
                    ? gaussian_base_lpdf(
                        horseshoe_unconstrained(beta0, z, lambda, tau, c2) |
                        whitened_mean, whiten, base_constant)
                      - horseshoe_log_volume(lambda, tau, c2)
                    : log_prior;
    real log_likelihood = horseshoe_log_likelihood(y, X, beta0, z, lambda,
                            tau, c2);
    delta = log_base - log_prior + log_zeta - log_likelihood;
  }
  real inv_temp = inv_temp_rng(delta, g_knot, log_g, ladder);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, ladder);
}

