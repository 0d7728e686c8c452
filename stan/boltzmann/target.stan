// Gaussian mixture relaxation of a Boltzmann machine of D_b units, on R^D.
// docs/api/models.md explains its data.
functions {
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
}
parameters {
  vector[D] x;
}
model {
  target += boltzmann_lpdf(x | coefficients);
}

