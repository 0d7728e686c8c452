// Positions of sensors from distances between some of them (Ihler 2005).
// docs/hard/sensors.md explains its data.
//
// A distance is observed more likely if it is short, so that a pair without
// one says that its sensors are far apart.
data {
  int<lower=1> S; // number of sensors whose positions are unknown
  int<lower=1> A; // number of sensors whose positions are known
  array[A] vector[2] known; // these positions
  int<lower=0> O; // number of pairs with an observed distance
  array[O, 2] int<lower=1, upper=S + A> observed; // these pairs
  vector<lower=0>[O] y; // their distances
  int<lower=0> M; // number of pairs with none
  array[M, 2] int<lower=1, upper=S + A> missed; // these pairs
  real<lower=0> R; // range within which distances are observed
  real<lower=0> sigma; // standard deviation of a distance
}
parameters {
  array[S] vector[2] x; // unknown positions
}
model {
  array[S + A] vector[2] at = append_array(x, known);
  for (s in 1 : S) {
    x[s] ~ normal(0, 10);
  }
  for (n in 1 : O) {
    real d = sqrt(dot_self(at[observed[n, 1]] - at[observed[n, 2]]));
    target += -0.5 * square(d / R);
    y[n] ~ normal(d, sigma);
  }
  for (n in 1 : M) {
    real d = sqrt(dot_self(at[missed[n, 1]] - at[missed[n, 2]]));
    target += log1m_exp(-0.5 * square(d / R));
  }
}

