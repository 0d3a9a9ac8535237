"""Find the eigenvalues and eigenvectors of a symmetric matrix.

Which directions does a 2x2 matrix only stretch and not turn?
How do I get the natural frequencies of a symmetric system from its matrix?
How can I check that a matrix times a vector is just a multiple of that vector?
For principal axes in engineering, how do I diagonalize a stress tensor?
Numpy linalg eigh eigenvectors columns example?
"""

import numpy as np

matrix = np.array([[2.0, 1.0], [1.0, 2.0]])

values, vectors = np.linalg.eigh(matrix)
print("Eigenvalues:", values.round(6).tolist())
for value, vector in zip(values, vectors.T, strict=True):
    print(
        f"Matrix times eigenvector equals {value:.0f} times it:",
        bool(np.allclose(matrix @ vector, value * vector)),
    )
