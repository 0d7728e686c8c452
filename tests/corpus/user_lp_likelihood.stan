functions {
  void observe_lp(vector y, vector mu, real sigma) {
    y ~ normal(mu, sigma);
  }
  real centred_lp(real raw, real scale) {
    raw ~ std_normal();
    return scale * raw;
  }
}
data {
  int<lower=0> N;
  vector[N] y;
  vector[N] x;
}
parameters {
  real slope_raw;
  real intercept;
  real<lower=0> sigma;
}
model {
  real slope = centred_lp(slope_raw, 3);
  intercept ~ normal(0, 3);
  sigma ~ exponential(1);
  observe_lp(y, intercept + slope * x, sigma); // likelihood = target += normal_lpdf(y | intercept + slope * x, sigma);
}
