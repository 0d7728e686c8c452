data {
  int<lower=0> N;
  int<lower=1> D;
  array[N] row_vector[D] y;
}
parameters {
  cov_matrix[D] Sigma;
}
model {
  Sigma ~ inv_wishart(D + 2, identity_matrix(D));
  y ~ multi_normal(rep_row_vector(0, D), Sigma); // likelihood
}
