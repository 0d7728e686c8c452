// Groups that differ, or groups that are alike and measured with outliers.
data {
  int<lower=1> J;
  vector[J] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  mu ~ normal(0, 2);
  tau ~ lognormal(-1.5, 1.2);
  theta ~ normal(mu, tau);
  y ~ student_t(2, theta, 0.15); // likelihood
}
