data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real log_tau;
  real mu;
}
transformed parameters {
  real tau = exp(log_tau);
  jacobian += log_tau;
}
model {
  tau ~ gamma(2, 2);
  mu ~ normal(0, 2);
  y ~ normal(mu, tau); // likelihood
}
