// The likelihood is zero below the largest of the data.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real<lower=0> theta;
}
model {
  theta ~ exponential(1);
  y ~ uniform(0, theta);
}
