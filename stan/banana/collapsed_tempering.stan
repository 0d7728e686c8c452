// Banana, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include banana/density.stanfunctions
}
data {
  #include banana/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include collapsed_tempering/prepared.stanblock
  #include path/needs_gaussian_base.stanblock
}
parameters {
  vector[D] x;
}
transformed parameters {
  real log_base = gaussian_base_lpdf(x | whitened_mean, whiten,
                    base_constant);
  real log_gamma = banana_lpdf(x | v, b);
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

