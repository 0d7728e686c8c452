data {
  int<lower=1> J;
  int<lower=1> K;
  array[J, 3] int<lower=1, upper=K> rating;
}
parameters {
  simplex[K] prevalence;
  array[3] simplex[K] coder;
}
model {
  prevalence ~ dirichlet(rep_vector(3, K));
  for (c in 1 : 3) coder[c] ~ dirichlet(rep_vector(2, K));
  for (j in 1 : J) {
    vector[K] lp = log(prevalence);
    for (k in 1 : K) {
      for (c in 1 : 3) {
        lp[k] += log(rating[j, c] == k ? 0.7 + 0.3 * coder[c, k] : 0.3 * coder[c, rating[j, c]]);
      }
    }
    target += log_sum_exp(lp); // likelihood
  }
}
