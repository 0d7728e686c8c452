// The linear predictors by a matrix product.
functions {
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
}
model {
  target += horseshoe_log_prior(beta0, z, lambda, tau, c2, scale_global,
              scale_icept, slab_scale, slab_df);
  target += bernoulli_logit_lpmf(y |
              beta0 + X * (z .* horseshoe_width(lambda, tau, c2)));
}

