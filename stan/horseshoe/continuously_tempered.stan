// Continuously tempered horseshoe regression (Graham and Storkey 2017,
// eq. 16) on the geometric path from the base, by default the prior: then
// the likelihood alone is tempered and log Z is the evidence.
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
  #include blocks/inv_temp.standata
}
transformed data {
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                     scale_global, scale_icept, slab_scale, slab_df);
  real log_likelihood = horseshoe_log_likelihood(y, X, beta0, z, lambda, tau,
                          c2);
  real log_base = B
                  ? gaussian_base_lpdf(
                      horseshoe_unconstrained(beta0, z, lambda, tau, c2) |
                      whitened_mean, whiten, base_constant)
                    - horseshoe_log_volume(lambda, tau, c2)
                  : log_prior;
  target += geometric_path(log_prior + log_likelihood, log_base, log_zeta,
                           beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta; // log b + log zeta - log gamma
  vector[2] log_weight;
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
    log_weight = continuous_tempering_log_weight(delta, g_knot, log_g, 0);
  }
}

