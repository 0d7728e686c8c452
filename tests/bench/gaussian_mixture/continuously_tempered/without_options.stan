// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
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
  #include blocks/base.standata
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
  real<lower=0, upper=1> inv_temp;
}
model {
  real log_gamma = gaussian_mixture_lpdf(x | coefficients);
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}

