data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[K] prior_mean;
  vector<lower=0>[K] prior_scale;
  real<lower=0> prior_rate;
}
parameters {
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  beta ~ normal(prior_mean, prior_scale);
  target += exponential_lpdf(sigma | prior_rate);
  y ~ normal_id_glm(X, 0, beta, sigma); // likelihood
}
