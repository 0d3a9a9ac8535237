"""Find the eigenvalues and eigenvectors of a symmetric matrix."""

import numpy as np

matrix = np.array([[2.0, 1.0], [1.0, 2.0]])

values, vectors = np.linalg.eigh(matrix)
print("Eigenvalues:", values.round(6).tolist())
for value, vector in zip(values, vectors.T, strict=True):
    print(
        f"Matrix times eigenvector equals {value:.0f} times it:",
        bool(np.allclose(matrix @ vector, value * vector)),
    )
