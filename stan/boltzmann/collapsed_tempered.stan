// Boltzmann machine, tempered, with beta integrated out.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include collapsed_tempered/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include collapsed_tempered/prepared.stanblock
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
  #include collapsed_tempered/model.stanblock
}
generated quantities {
  #include collapsed_tempered/generated.stanblock
}

