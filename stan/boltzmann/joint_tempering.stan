// Boltzmann machine, joint tempering (Graham and Storkey 2017, eq. 16).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include joint_tempering/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  #include joint_tempering/prepared.stanblock
  #include path/needs_gaussian_base.stanblock
}
parameters {
  vector[D] x;
  #include joint_tempering/parameters.stanblock
}
transformed parameters {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real log_gamma = boltzmann_lpdf(x | coefficients);
}
model {
  #include joint_tempering/model.stanblock
}
generated quantities {
  #include joint_tempering/generated.stanblock
}

