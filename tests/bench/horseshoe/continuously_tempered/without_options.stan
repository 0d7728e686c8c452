// No options: the inverse temperature is sampled, and g is uniform.
functions {
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
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_prior = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                     scale_global, scale_icept, slab_scale, slab_df);
  real log_likelihood = bernoulli_logit_glm_lpmf(y | X, beta0,
                          z .* horseshoe_width(lambda, tau, c2));
  target += log_prior + inv_temp * log_likelihood;
}

