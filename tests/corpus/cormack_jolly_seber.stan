functions {
  int first_capture(array[] int y_i) {
    for (k in 1 : size(y_i)) {
      if (y_i[k]) {
        return k;
      }
    }
    return 0;
  }
  int last_capture(array[] int y_i) {
    for (k_rev in 0 : (size(y_i) - 1)) {
      int k = size(y_i) - k_rev;
      if (y_i[k]) {
        return k;
      }
    }
    return 0;
  }
  vector prob_uncaptured(int T, vector p, vector phi) {
    vector[T] chi;
    chi[T] = 1.0;
    for (t in 1 : (T - 1)) {
      int t_curr = T - t;
      int t_next = t_curr + 1;
      chi[t_curr] = (1 - phi[t_curr]) + phi[t_curr] * (1 - p[t_next]) * chi[t_next];
    }
    return chi;
  }
}
data {
  int<lower=2> T;
  int<lower=0> I;
  array[I, T] int<lower=0, upper=1> y;
}
transformed data {
  array[I] int<lower=0, upper=T> first;
  array[I] int<lower=0, upper=T> last;
  for (i in 1 : I) first[i] = first_capture(y[i]);
  for (i in 1 : I) last[i] = last_capture(y[i]);
}
parameters {
  vector<lower=0, upper=1>[T - 1] phi;
  vector<lower=0, upper=1>[T] p;
}
transformed parameters {
  vector<lower=0, upper=1>[T] chi;
  chi = prob_uncaptured(T, p, phi);
}
model {
  for (i in 1 : I) {
    if (first[i] > 0) {
      for (t in (first[i] + 1) : last[i]) {
        1 ~ bernoulli(phi[t - 1]); // likelihood
        y[i, t] ~ bernoulli(p[t]); // likelihood
      }
      1 ~ bernoulli(chi[last[i]]); // likelihood
    }
  }
}
