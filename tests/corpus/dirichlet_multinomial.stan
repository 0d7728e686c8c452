data {
  int<lower=1> K;
  array[K] int<lower=0> counts;
  vector<lower=0>[K] alpha;
}
parameters {
  simplex[K] theta;
}
model {
  theta ~ dirichlet(alpha);
  counts ~ multinomial(theta); // likelihood
}
