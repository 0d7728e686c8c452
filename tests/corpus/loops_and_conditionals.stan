data {
  int<lower=1> N;
  array[N] int<lower=1, upper=3> kind;
  vector[N] y;
}
parameters {
  vector[3] m;
  vector<lower=0>[2] s;
}
model {
  for (i in 1 : 3) {
    if (i == 1) {
      m[i] ~ normal(0, 1);
    } else if (i == 2) {
      m[i] ~ cauchy(0, 1);
    } else {
      target += logistic_lpdf(m[i] | 0, 1);
    }
  }
  profile("scales") {
    s ~ exponential(1);
  }
  {
    int n = 1;
    while (n <= N) {
      if (kind[n] == 3) {
        n += 1;
        continue;
      }
      y[n] ~ normal(m[kind[n]], s[kind[n]]); // likelihood
      n += 1;
    }
  }
  for (v in y) {
    target += -abs(v - m[3]) - log2(); // likelihood
  }
}
