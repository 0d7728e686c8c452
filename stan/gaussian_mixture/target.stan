// Mixture of K isotropic Gaussians in D dimensions, inside a box.
// docs/api/models.md explains its data.
functions {
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  target += gaussian_mixture_lpdf(x | coefficients);
}

