data {
  int<lower=1> N;
  vector<lower=-pi(), upper=pi()>[N] angle;
  vector[N] x;
}
parameters {
  unit_vector[2] mean_direction;
  real slope;
  real<lower=0> kappa;
}
transformed parameters {
  real mu = atan2(mean_direction[2], mean_direction[1]);
}
model {
  slope ~ normal(0, 1);
  kappa ~ exponential(0.3);
  angle ~ von_mises(mu + 2 * atan(slope * x), kappa); // likelihood
}
