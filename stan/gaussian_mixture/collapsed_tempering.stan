// Mixture of Gaussians, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  #include collapsed_tempering/prepared.stanblock
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
transformed parameters {
  // Its own base is uniform on the box.
  real log_base = B
                  ? gaussian_base_lpdf(x | whitened_mean, whiten,
                      base_constant)
                  : -D * log(upper_bound - lower_bound);
  real log_gamma = gaussian_mixture_lpdf(x | coefficients);
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}

