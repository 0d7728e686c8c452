data {
  int<lower=0> N;
  int<lower=1> D;
  array[N] vector[D] y;
}
parameters {
  corr_matrix[D] Omega;
  vector<lower=0>[D] tau;
}
transformed parameters {
  cov_matrix[D] Sigma = quad_form_diag(Omega, tau);
}
model {
  tau ~ cauchy(0, 2.5);
  Omega ~ lkj_corr(2);
  for (n in 1 : N) {
    y[n] ~ multi_normal(rep_vector(0, D), Sigma); // likelihood
  }
}
