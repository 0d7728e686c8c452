// Mixture of Gaussians, joint tempering (Graham and Storkey 2017, eq. 16).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include joint_tempering/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  #include joint_tempering/prepared.stanblock
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
  #include joint_tempering/parameters.stanblock
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
  #include joint_tempering/model.stanblock
}
generated quantities {
  #include joint_tempering/generated.stanblock
}

