parameters {
  vector[2] x;
}
model {
  x[1] ~ normal(0, 3);
  x[2] ~ normal(0, exp(x[1] / 2));
}
