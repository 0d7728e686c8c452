data {
  int<lower=0> N;
  int<lower=1> D;
  array[N] vector[D] y;
}
parameters {
  vector[D] mu;
  cholesky_factor_corr[D] L_Omega;
  vector<lower=0>[D] L_sigma;
}
model {
  matrix[D, D] L_Sigma;
  L_Sigma = diag_pre_multiply(L_sigma, L_Omega);
  mu ~ normal(0, 3);
  L_Omega ~ lkj_corr_cholesky(4);
  L_sigma ~ cauchy(0, 2.5);
  y ~ multi_normal_cholesky(mu, L_Sigma); // likelihood
}
generated quantities {
  corr_matrix[D] Omega = multiply_lower_tri_self_transpose(L_Omega);
}
