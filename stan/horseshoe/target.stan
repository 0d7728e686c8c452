// Logistic regression, horseshoe prior (Nemeth et al. 2019, section 4.3).
// docs/api/models.md explains its data.
//
// The normalised prior (Piironen and Vehtari 2017) times the likelihood, so
// that log Z is the evidence log p(y).
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
  target += horseshoe_log_likelihood(y, X, beta0, z, lambda, tau, c2);
}

