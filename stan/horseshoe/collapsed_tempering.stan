// Horseshoe regression, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include collapsed_tempering/prepared.stanblock
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  real log_base = horseshoe_log_prior(beta0, z, lambda, tau, c2,
                    scale_global, scale_icept, slab_scale, slab_df);
  real log_gamma = log_base
                   + horseshoe_log_likelihood(y, X, beta0, z, lambda, tau,
                       c2);
  if (B) {
    log_base = gaussian_base_lpdf(
                 horseshoe_unconstrained(beta0, z, lambda, tau, c2) |
                 whitened_mean, whiten, base_constant)
               - horseshoe_log_volume(lambda, tau, c2);
  }
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

