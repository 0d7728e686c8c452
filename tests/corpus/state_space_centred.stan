data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  vector[T] x;
  real<lower=-1, upper=1> phi;
  real<lower=0> q;
  real<lower=0> r;
}
model {
  q ~ gamma(2, 4);
  r ~ gamma(2, 4);
  x[1] ~ normal(0, q / sqrt(1 - phi ^ 2));
  for (t in 2 : T) {
    x[t] ~ normal(phi * x[t - 1], q);
  }
  for (t in 1 : T) y[t] ~ normal(x[t], r); // likelihood
}
