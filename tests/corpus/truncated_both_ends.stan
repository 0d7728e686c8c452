data {
  int<lower=1> N;
  real L;
  real U;
  vector<lower=L, upper=U>[N] y;
}
parameters {
  real<lower=L, upper=U> mu;
  real<lower=0> sigma;
}
model {
  sigma ~ normal(0, 2) T[0, ]; // prior = target += normal_lpdf(sigma | 0, 2) - normal_lccdf(0 | 0, 2);
  for (n in 1 : N) {
    y[n] ~ student_t(4, mu, sigma) T[L, U]; // likelihood = target += student_t_lpdf(y[n] | 4, mu, sigma) - log_diff_exp(student_t_lcdf(U | 4, mu, sigma), student_t_lcdf(L | 4, mu, sigma));
  }
}
