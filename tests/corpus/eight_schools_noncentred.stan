data {
  int<lower=0> J;
  array[J] real y;
  array[J] real<lower=0> sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
transformed parameters {
  vector[J] theta;
  theta = mu + tau * eta;
}
model {
  target += normal_lpdf(mu | 0, 5);
  target += cauchy_lpdf(tau | 0, 5) - cauchy_lccdf(0 | 0, 5);
  target += std_normal_lpdf(eta);
  target += normal_lpdf(y | theta, sigma); // likelihood
}
generated quantities {
  vector[J] log_lik;
  array[J] real y_rep = normal_rng(theta, sigma);
  for (j in 1 : J) log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
}
