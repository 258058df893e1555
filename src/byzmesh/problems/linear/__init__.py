"""Linear models of the data: softmax regression, binary logistic regression, least squares."""
