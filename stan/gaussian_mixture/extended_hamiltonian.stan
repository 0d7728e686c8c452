// Mixture of Gaussians, extended Hamiltonian (Gobbo and Leimkuhler 2015).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include extended_hamiltonian/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  #include extended_hamiltonian/prepared.stanblock
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
  #include extended_hamiltonian/parameters.stanblock
}
model {
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : 0;
  real log_gamma = gaussian_mixture_lpdf(x | coefficients);
  #include extended_hamiltonian/model.stanblock
}
generated quantities {
  #include extended_hamiltonian/generated.stanblock
}

