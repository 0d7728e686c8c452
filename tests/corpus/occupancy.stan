data {
  int<lower=1> n_site;
  int<lower=1> n_visit;
  array[n_site, n_visit] int<lower=0, upper=1> y;
  vector[n_site] elevation;
}
transformed data {
  array[n_site] int seen;
  for (i in 1 : n_site) seen[i] = sum(y[i]);
}
parameters {
  real a;
  real b;
  real p_logit;
}
model {
  a ~ normal(0, 1.5);
  b ~ normal(0, 1);
  p_logit ~ logistic(0, 1);
  for (i in 1 : n_site) {
    real psi_logit = a + b * elevation[i];
    if (seen[i] > 0) {
      target += log_inv_logit(psi_logit) + binomial_logit_lpmf(seen[i] | n_visit, p_logit); // likelihood
    } else {
      target += log_sum_exp(log_inv_logit(psi_logit) + binomial_logit_lpmf(0 | n_visit, p_logit), log1m_inv_logit(psi_logit)); // likelihood
    }
  }
}
