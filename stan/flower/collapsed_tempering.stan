// Flower, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include flower/density.stanfunctions
}
data {
  #include flower/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include collapsed_tempering/prepared.stanblock
  #include path/needs_gaussian_base.stanblock
}
parameters {
  vector[2] x;
}
transformed parameters {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real log_gamma = flower_lpdf(x | r, A, w, s);
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

