// Student's t with five degrees of freedom, as in Liu, Liang and Wong (2000).
parameters {
  vector[1] x;
}
model {
  x ~ student_t(5, 0, 1);
}
