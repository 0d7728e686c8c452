// Boltzmann machine, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
  if (B == 0 && N > 1
      && boltzmann_infinite_mass(D,
           sample_inv_temp ? g_knot[1] : min(fixed_inv_temp),
           sample_inv_temp ? g_shape[1] : 0)) {
    reject("pure tempering has infinite mass near inverse temperature 0: ",
           "start g above 0, give it a shape above D / 2, or use a Gaussian base");
  }
}
parameters {
  matrix[D, N] x; // pseudo-samples
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  vector[N] log_gamma = boltzmann_log_density(x, coefficients);
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

