data {
  int<lower=1> N;
  array[N] real x;
  array[N] int<lower=0> k;
}
transformed data {
  real delta = 1e-9;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real a;
  vector[N] f_tilde;
}
transformed parameters {
  vector[N] f;
  {
    matrix[N, N] cov = gp_exp_quad_cov(x, alpha, rho);
    for (n in 1 : N) cov[n, n] = cov[n, n] + delta;
    f = cholesky_decompose(cov) * f_tilde;
  }
}
model {
  rho ~ inv_gamma(5, 5);
  alpha ~ std_normal();
  a ~ std_normal();
  f_tilde ~ std_normal();
  k ~ poisson_log(a + f); // likelihood
}
generated quantities {
  array[N] int y_rep = poisson_log_rng(a + f);
}
