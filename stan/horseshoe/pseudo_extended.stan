// Horseshoe regression, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include horseshoe/density.stanfunctions
}
data {
  #include horseshoe/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include pseudo_extended/prepared.stanblock
}
parameters {
  // Pseudo-samples, one per entry or column.
  vector[N] beta0; // intercepts
  matrix[d, N] z; // standardised coefficients
  matrix<lower=0>[d, N] lambda; // local scales
  vector<lower=0>[N] tau; // global scales
  vector<lower=0>[N] c2; // squared slab widths
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  vector[N] log_base = horseshoe_log_prior_each(beta0, z, lambda, tau, c2,
                         scale_global, scale_icept, slab_scale, slab_df);
  vector[N] log_gamma = log_base
                        + horseshoe_log_likelihood_each(y, X, beta0, z,
                            lambda, tau, c2, N);
  if (B) {
    log_base = gaussian_base_log_density(
                 horseshoe_unconstrained(beta0, z, lambda, tau, c2), N,
                 whitened_mean, whiten, base_constant)
               - horseshoe_log_volume(lambda, tau, c2);
  }
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}

