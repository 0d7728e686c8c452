// Two probabilities of which the data tell only the product.
// docs/hard/product.md explains its data.
data {
  int<lower=0> n; // number of trials
  int<lower=0, upper=n> k; // number of successes
}
parameters {
  real<lower=0, upper=1> x; // probability of the first step, uniform a priori
  real<lower=0, upper=1> y; // probability of the second step, likewise
}
model {
  k ~ binomial(n, x * y);
}

