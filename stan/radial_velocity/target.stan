// Planets in the radial velocities of a star (Nelson et al. 2020).
// docs/hard/radial_velocity.md explains its data.
functions {
  /**
   * Covariance of the velocities without the jitter: noise of the star that
   * nearly repeats itself every 20 days, and errors of measurement.
   *
   * @param t times, days
   * @param sigma standard errors of measurement, m/s
   * @return covariance matrix
   */
  matrix covariance_without_jitter(vector t, vector sigma) {
    int N = num_elements(t);
    matrix[N, N] S;
    for (i in 1 : N) {
      for (j in 1 : N) {
        real dt = t[i] - t[j];
        S[i, j] = 3
                  * exp(
                        -0.5
                        * (square(sin(pi() * dt / 20)) / 0.25
                           + square(dt) / 2500));
      }
    }
    return add_diag(S, square(sigma));
  }
  
  /**
   * Ratio of the eccentricity to the radius r of a standard normal point.
   *
   * The eccentricity has the same distribution function in a Rayleigh(0.2)
   * distribution cut off at 1 as r has in a Rayleigh(1) distribution.
   *
   * @param r_squared squared radius
   * @return eccentricity over r
   */
  real shrinkage(real r_squared) {
    real kept = -expm1(-12.5); // probability of a Rayleigh(0.2) below 1
    real s = r_squared + 1e-12; // not 0 at the origin
    return 0.2 * sqrt(-2 * log1m(-kept * expm1(-0.5 * s)) / s);
  }
  
  /**
   * Solve Kepler's equation F - h sin F + k cos F = lambda.
   *
   * Four steps of Newton's method reach rounding error for eccentricities up
   * to 0.9, in F and in its derivatives.
   *
   * @param lambda mean longitudes
   * @param h, k eccentricity times cosine and sine of the periastron
   * @return eccentric longitudes
   */
  vector eccentric_longitude(vector lambda, real h, real k) {
    int N = num_elements(lambda);
    vector[N] sin_part = h * sin(lambda) - k * cos(lambda);
    vector[N] cos_part = h * cos(lambda) + k * sin(lambda);
    vector[N] F = lambda
                  + sin_part
                    ./ sqrt(1 - 2 * cos_part + square(h) + square(k));
    for (step in 1 : 4) {
      F -= (F - h * sin(F) + k * cos(F) - lambda)
           ./ (1 - h * cos(F) - k * sin(F));
    }
    return F;
  }
  
  /**
   * Velocity of the star because of a planet, K (cos(true longitude) + h).
   *
   * @param lambda mean longitudes
   * @param K semi-amplitude, m/s
   * @param h, k eccentricity times cosine and sine of the periastron
   * @return velocities, m/s
   */
  vector planet_velocity(vector lambda, real K, real h, real k) {
    int N = num_elements(lambda);
    vector[N] F = eccentric_longitude(lambda, h, k);
    real b = 1 / (1 + sqrt(1 - square(h) - square(k)));
    return K
           * (((1 - b * square(k)) * cos(F) + b * h * k * sin(F) - h)
              ./ (1 - h * cos(F) - k * sin(F)) + h);
  }
  
  /**
   * Log density of velocities with an unknown offset, C ~ uniform(-1000, 1000).
   *
   * C is integrated out over the whole line; the mass beyond 1000 m/s is none.
   *
   * @param v observed velocities, in the eigenvectors of the noise
   * @param predicted their predictions without the offset, likewise
   * @param one a vector of ones, likewise
   * @param variance eigenvalues of the noise
   * @return log density
   */
  real offset_velocities_lpdf(vector v, vector predicted, vector one,
                              vector variance) {
    int N = num_elements(v);
    vector[N] residual = v - predicted;
    vector[N] weighted = one ./ variance;
    real precision = dot_product(one, weighted); // of C
    return -0.5
           * ((N - 1) * log(2 * pi()) + sum(log(variance)) + log(precision)
              + dot_self(residual ./ sqrt(variance))
              - square(dot_product(weighted, residual)) / precision)
           - log(2000);
  }
}
data {
  int<lower=1> N; // number of observations
  vector[N] t; // times, days
  vector[N] v; // velocities, m/s
  vector<lower=0>[N] sigma; // their standard errors, m/s
  int<lower=0> n; // number of planets
  vector<lower=0>[n] P_min; // bounds of the periods, days
  vector<lower=0>[n] P_max;
  int<lower=0, upper=1> eccentric; // 0: all orbits are circles
}
transformed data {
  int E = eccentric ? n : 0; // number of planets with an eccentricity
  // The jitter only adds to the eigenvalues of the noise.
  matrix[N, N] S = covariance_without_jitter(t, sigma);
  vector<lower=0>[N] eigenvalue = eigenvalues_sym(S);
  matrix[N, N] rotation = eigenvectors_sym(S)';
  vector[N] v_rotated = rotation * v;
  vector[N] one_rotated = rotation * rep_vector(1, N);
}
parameters {
  // Quantiles of the priors, which are uniform.
  real<lower=0, upper=1> jitter_quantile;
  vector<lower=0, upper=1>[n] P_quantile;
  vector<lower=0, upper=1>[n] K_quantile;
  // Only the direction of these points matters: it is the mean longitude.
  array[n] vector[2] longitude;
  // The direction of the periastron and, by its radius, the eccentricity.
  array[E] vector[2] periastron;
}
transformed parameters {
  // log(1 + jitter) and log(1 + K) are uniform, and so is log(P).
  real jitter = expm1(jitter_quantile * log(100)); // m/s
  vector[n] P = P_min .* exp(P_quantile .* log(P_max ./ P_min)); // days
  vector[n] K = expm1(K_quantile * log(1000)); // semi-amplitudes, m/s
}
model {
  vector[N] predicted = rep_vector(0, N);
  for (j in 1 : n) {
    vector[N] lambda = atan2(longitude[j][2], longitude[j][1])
                       + 2 * pi() / P[j] * (t - 300);
    if (eccentric) {
      vector[2] hk = shrinkage(dot_self(periastron[j])) * periastron[j];
      predicted += planet_velocity(lambda, K[j], hk[1], hk[2]);
    } else {
      predicted += K[j] * cos(lambda);
    }
    longitude[j] ~ std_normal();
  }
  for (j in 1 : E) {
    periastron[j] ~ std_normal();
  }
  v_rotated ~ offset_velocities(rotation * predicted, one_rotated,
                eigenvalue + square(jitter));
}

