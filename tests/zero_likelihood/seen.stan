// Nearly everywhere the probability of what was seen underflows to zero, and
// its logarithm has no gradient there.
data {
  int<lower=0> K;
  array[K] vector[2] k;
  array[K] int<lower=0, upper=1> seen;
}
parameters {
  vector[2] x;
}
model {
  x ~ normal(0, 10);
  for (i in 1 : K) {
    seen[i] ~ bernoulli(exp(-dot_self(x - k[i]) / (2 * 0.1 ^ 2)));
  }
}
