// Boltzmann machine, pseudo-extended, with each beta integrated out.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include collapsed_pseudo_extended/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include collapsed_pseudo_extended/prepared.stanblock
  if (B == 0 && N > 1 && boltzmann_infinite_mass(D, g_knot[1], 1 - ladder)) {
    reject("pure tempering has infinite mass near inverse temperature 0: ",
           "start g above 0, or use a Gaussian base");
  }
}
parameters {
  matrix[D, N] x; // pseudo-samples
}
transformed parameters {
  vector[N] log_gamma = boltzmann_log_density(x, coefficients);
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

