data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  real log_sigma;
}
model {
  target += -0.5 * square(mu / 10) - log(10);
  target += -0.5 * log_sigma ^ 2;
  target += -0.5 * dot_self((y - mu) / exp(log_sigma)) - N * log_sigma; // likelihood
}
