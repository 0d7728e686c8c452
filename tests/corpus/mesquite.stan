data {
  int<lower=0> N;
  vector[N] weight;
  vector[N] diam1;
  vector[N] diam2;
  vector[N] canopy_height;
  vector[N] total_height;
  vector[N] density;
  vector[N] group;
}
transformed data {
  vector[N] log_weight_obs = log(weight);
  matrix[N, 6] X;
  X[:, 1] = log(diam1);
  X[:, 2] = log(diam2);
  X[:, 3] = log(canopy_height);
  X[:, 4] = log(total_height);
  X[:, 5] = log(density);
  X[:, 6] = group;
}
parameters {
  real alpha;
  vector[6] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ student_t(3, 0, 10);
  beta ~ student_t(3, 0, 2.5);
  sigma ~ student_t(3, 0, 5);
  log_weight_obs ~ normal_id_glm(X, alpha, beta, sigma); // likelihood
}
