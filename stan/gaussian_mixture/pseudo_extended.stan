// Mixture of Gaussians, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // Pure tempering has finite mass near beta = 0, as the box bounds x.
  vector[N] log_gamma = gaussian_mixture_log_density(x, coefficients);
  vector[B ? N : 0] log_base = B
                               ? gaussian_base_log_density(x, N,
                                   whitened_mean, whiten, base_constant)
                               : zeros_vector(0); // b = 1
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}

