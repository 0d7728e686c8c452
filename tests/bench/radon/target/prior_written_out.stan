// The prior written out, its constants beforehand.
functions {
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
}
transformed data {
  #include radon/prepared.stanblock
  real constant = 3 * log(0.8 / pi()) - 0.5 * (J + 4) * log(2 * pi());
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] m; // standardised coefficients of floor, uranium
}
model {
  target += radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps, n, m,
              gram, totals);
  target += -0.5 * (square(mu_a) + square(mu_b) + dot_self(n) + dot_self(m))
            - log1p(square(0.4 * sigma_a)) - log1p(square(0.4 * sigma_b))
            - log1p(square(0.4 * eps)) + constant;
}

