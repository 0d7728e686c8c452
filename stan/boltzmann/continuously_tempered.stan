// Boltzmann machine, tempered (Graham and Storkey 2017, eq. 16).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include continuously_tempered/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include continuously_tempered/prepared.stanblock
  #include path/needs_gaussian_base.stanblock
}
parameters {
  vector[D] x;
  #include continuously_tempered/parameters.stanblock
}
transformed parameters {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real log_gamma = boltzmann_lpdf(x | coefficients);
}
model {
  #include continuously_tempered/model.stanblock
}
generated quantities {
  #include continuously_tempered/generated.stanblock
}

