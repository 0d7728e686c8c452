// Efficacy of vaccines in several trials, a hierarchical model.
// docs/hard/vaccines.md explains its data.
//
// Each trial has a log odds of efficacy and one of incidence.  Their means and
// the variances among trials (softplus of a parameter) are unknown.
data {
  int<lower=1> T; // number of trials
  array[T] int<lower=1> n_vaccinated;
  array[T] int<lower=0> cases_vaccinated;
  array[T] int<lower=1> n_control;
  array[T] int<lower=0> cases_control;
  int<lower=0, upper=1> half_in_control; // see the page
}
parameters {
  real eff_m; // mean log odds of efficacy
  real eff_d; // softplus^-1 of their variance among trials
  real inc_m; // mean log odds of incidence
  real inc_d; // softplus^-1 of their variance among trials
  vector[T] e; // log odds of efficacy in each trial
  vector[T] i; // log odds of incidence in each trial
}
transformed parameters {
  vector[T] efficacy = inv_logit(e);
  vector[T] incidence = inv_logit(i);
}
model {
  eff_m ~ normal(0, sqrt(1000));
  eff_d ~ normal(0, sqrt(1000));
  inc_m ~ normal(0, sqrt(1000));
  inc_d ~ normal(0, sqrt(1000));
  e ~ normal(eff_m, sqrt(log1p_exp(eff_d)));
  i ~ normal(inc_m, sqrt(log1p_exp(inc_d)));
  cases_vaccinated ~ binomial(n_vaccinated, incidence .* inv_logit(-e));
  cases_control ~ binomial(n_control,
                           half_in_control ? 0.5 * incidence : incidence);
}

