// Mixture of Gaussians in the plane, of equal weights and unit covariance.
// docs/hard/gaussian_mixture_40.md explains its data.
data {
  int<lower=1> K; // number of components
  array[K] vector[2] mu; // their means
}
parameters {
  vector[2] x;
}
model {
  vector[K] log_density; // of each component
  for (k in 1 : K) {
    log_density[k] = normal_lpdf(x | mu[k], 1);
  }
  target += log_sum_exp(log_density) - log(K);
}

