data {
  int<lower=0> N;
  vector[N] earn;
  vector[N] height;
  vector[N] male;
}
transformed data {
  vector[N] log_earn = log(earn);
  vector[N] z_height;
  {
    real centre = mean(height);
    real spread = sd(height);
    z_height = (height - centre) / spread;
  }
}
parameters {
  vector[3] beta;
  real<lower=0> sigma;
}
model {
  beta ~ normal(0, 10);
  sigma ~ exponential(1);
  log_earn ~ normal(beta[1] + beta[2] * z_height + beta[3] * male, sigma); // likelihood
}
