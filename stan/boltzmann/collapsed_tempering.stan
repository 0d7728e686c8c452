// Boltzmann machine, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include collapsed_tempering/prepared.stanblock
  #include path/needs_gaussian_base.stanblock
}
parameters {
  vector[D] x;
}
transformed parameters {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real log_gamma = boltzmann_lpdf(x | coefficients);
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

