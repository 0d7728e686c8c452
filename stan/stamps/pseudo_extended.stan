// Mixture for the stamps, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
}
parameters {
  // Pseudo-samples, one per entry or column.
  matrix[K, N] mu; // means of the components
  matrix<lower=0>[K, N] lambda; // precisions of the components
  matrix[K - 1, N] logit_z; // weights: log z_k - log z_K
  vector<lower=0>[N] rate; // rate of the precisions' prior
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  vector[N] log_base = stamps_log_prior_each(mu, lambda, logit_z, rate, N,
                         centre, spread);
  vector[N] log_gamma = log_base
                        + stamps_log_likelihood_each(thickness, stamps, mu,
                            lambda, logit_z, N, K);
  if (B) {
    log_base = gaussian_base_log_density(
                 append_row(append_row(mu, log(lambda)),
                            append_row(logit_z, log(rate'))),
                 N, whitened_mean, whiten, base_constant)
               - (ones_row_vector(K) * log(lambda))' - log(rate);
  }
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}

