// Mixture of K isotropic Gaussians in D dimensions, inside a box.
functions {
  #include gaussian_mixture/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> K; // number of mixture components
  simplex[K] weight; // mixture weights
  matrix[D, K] mu; // component means, one a column
  vector<lower=0>[K] sigma; // component standard deviations
  real lower_bound; // the box is [lower_bound, upper_bound]^D
  real<lower=lower_bound> upper_bound;
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  target += gaussian_mixture_lpdf(x | coefficients);
}

