// Boltzmann machine, extended Hamiltonian (Gobbo and Leimkuhler 2015).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include extended_hamiltonian/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include extended_hamiltonian/prepared.stanblock
}
parameters {
  vector[D] x;
  #include extended_hamiltonian/parameters.stanblock
}
model {
  // Pure tempering has finite mass, as beta stays above g_knot[1] > 0.
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : 0;
  real log_gamma = boltzmann_lpdf(x | coefficients);
  #include extended_hamiltonian/model.stanblock
}
generated quantities {
  #include extended_hamiltonian/generated.stanblock
}

