// Pseudo-extended mixture of Gaussians (Nemeth et al. 2019, eq. 8) with
// pure tempering, q(x, beta) = gamma(x)^beta g(beta), and pi(beta) = g(beta).
// Its mass near beta = 0 is finite because the box bounds x.
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
  int<lower=1> N; // number of pseudo-samples
  int<lower=0, upper=1> sample_inv_temp; // 0: inverse temperatures are fixed
  vector<lower=0, upper=1>[sample_inv_temp ? 0 : N] fixed_inv_temp;
}
transformed data {
  matrix[K, D + 2] coefficients = gaussian_mixture_coefficients(weight, mu,
                                    sigma);
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
  vector<lower=0, upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (n in 1 : N) {
    log_gamma[n] = gaussian_mixture_lpdf(x[ : , n] | coefficients);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
  target += uniform_lpdf(free_inv_temp | 0, 1); // g(beta) = pi(beta) = 1
}
generated quantities {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_weight;
  {
    vector[N] log_gamma;
    for (n in 1 : N) {
      log_gamma[n] = gaussian_mixture_lpdf(x[ : , n] | coefficients);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, inv_temp .* log_gamma);
  }
}

