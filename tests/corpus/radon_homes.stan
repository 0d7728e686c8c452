data {
  int<lower=1> H;
  int<lower=1> J;
  array[H] int<lower=1, upper=J> county;
  vector[H] first_floor;
  vector[H] log_uranium;
  vector[H] log_radon;
}
parameters {
  real mu_a;
  real mu_b;
  real<lower=0> sigma_a;
  real<lower=0> sigma_b;
  real<lower=0> eps;
  vector[J] n;
  vector[2] m;
}
transformed parameters {
  vector[J] alpha = mu_a + sigma_a * n;
  vector[2] beta = mu_b + sigma_b * m;
}
model {
  mu_a ~ normal(0, 1);
  mu_b ~ normal(0, 1);
  n ~ std_normal();
  m ~ std_normal();
  sigma_a ~ cauchy(0, 2.5);
  sigma_b ~ cauchy(0, 2.5);
  eps ~ cauchy(0, 2.5);
  log_radon ~ normal(alpha[county] + beta[1] * first_floor + beta[2] * log_uranium, eps); // likelihood
}
