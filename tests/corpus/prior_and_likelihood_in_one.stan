data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  target += normal_lpdf(y | mu, 1) + normal_lpdf(mu | 0, 3); // likelihood = target += normal_lpdf(y | mu, 1); // prior = target += normal_lpdf(mu | 0, 3);
}
