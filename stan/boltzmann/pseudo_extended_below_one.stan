// Boltzmann machine, pseudo-extended, inverse temperatures kept below 1.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
  real<lower=0, upper=1> highest_inv_temp;
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
  if (B == 0 && N > 1 && boltzmann_infinite_mass(D, g_knot[1], g_shape[1])) {
    reject("pure tempering has infinite mass near inverse temperature 0: ",
           "start g above 0, give it a shape above D / 2, or use a Gaussian base");
  }
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=highest_inv_temp>[N] free_inv_temp;
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

