// The log probability of each state, times its count.
data {
  int<lower=1> M;
  int<lower=1> D;
  matrix[M, D] features;
  vector<lower=0>[M] counts;
  real<lower=0> prior_sd;
}
parameters {
  vector[D] w;
}
model {
  target += normal_lpdf(w | 0, prior_sd)
            + dot_product(counts, log_softmax(features * w));
}

