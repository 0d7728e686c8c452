// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include path/base.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
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

