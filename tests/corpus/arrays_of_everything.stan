data {
  int<lower=1> A;
  int<lower=1> B;
  array[A, B] vector[2] y;
  array[A] matrix[2, 3] w;
}
parameters {
  array[A, B] vector[2] v;
  array[A] matrix<lower=0>[2, 3] m;
  array[A] row_vector[4] r;
  array[A, 2] simplex[3] s;
  array[B] cholesky_factor_corr[2] L;
  array[2] ordered[3] o;
  array[2, 2] real<lower=-1, upper=1> c;
}
model {
  for (a in 1 : A) {
    to_vector(m[a]) ~ gamma(2, 2);
    r[a] ~ normal(0, 1);
    for (j in 1 : 2) s[a, j] ~ dirichlet([3, 2, 1]');
    for (b in 1 : B) v[a, b] ~ double_exponential(0, 2);
  }
  for (b in 1 : B) {
    L[b] ~ lkj_corr_cholesky(2);
    for (a in 1 : A) {
      y[a, b] ~ multi_normal_cholesky(v[a, b] + r[a, 1 : 2]' + c[1, 2] * s[a, 2][1 : 2], L[b]); // likelihood
    }
  }
  for (j in 1 : 2) o[j] ~ normal(c[j, 1], 1);
  for (a in 1 : A) {
    to_vector(w[a]) ~ normal(to_vector(m[a]) + o[1, 2], 1.5); // likelihood
  }
}
