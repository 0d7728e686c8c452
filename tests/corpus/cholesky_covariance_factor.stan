data {
  int<lower=1> N;
  int<lower=1> P;
  int<lower=1> F;
  array[N] vector[P] y;
}
parameters {
  cholesky_factor_cov[P, F] Lambda;
  vector<lower=0>[P] psi;
}
model {
  matrix[P, P] Sigma = tcrossprod(Lambda);
  to_vector(Lambda) ~ normal(0, 1);
  psi ~ inv_gamma(3, 1);
  for (p in 1 : P) {
    Sigma[p, p] += psi[p];
  }
  target += multi_normal_lpdf(y | rep_vector(0, P), Sigma); // likelihood
}
