data {
  int<lower=1> N;
  vector[N] y;
  real lo;
  vector[2] hi;
}
transformed data {
  real lowest = min(y) - 3;
}
parameters {
  real<lower=lowest, upper=max(y) + 1> centre;
  vector<lower=lo, upper=hi>[2] w;
  real<lower=centre> above;
  real<upper=min([centre, w[1]])> below;
  array[2] real<lower=-abs(above)> spread;
}
model {
  above ~ normal(centre, 2);
  below ~ normal(centre, 2);
  spread ~ normal(0, 1);
  y ~ normal(centre + w[1] * (above - below), exp(spread[1])); // likelihood
}
