// Mixture of Gaussians, pseudo-extended, with each beta integrated out.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include collapsed_pseudo_extended/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  #include collapsed_pseudo_extended/prepared.stanblock
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
}
transformed parameters {
  vector[N] log_gamma = gaussian_mixture_log_density(x, coefficients);
  vector[N] log_base = B
                       ? gaussian_base_log_density(x, N, whitened_mean,
                           whiten, base_constant)
                       : zeros_vector(N); // b = 1
}
model {
  #include collapsed_pseudo_extended/model.stanblock
}
generated quantities {
  #include collapsed_pseudo_extended/generated.stanblock
}

