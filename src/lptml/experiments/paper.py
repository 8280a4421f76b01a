"""The published numbers, as printed in the paper's tables and in the coordinates of its figures."""

from __future__ import annotations

#: Average accuracy and standard deviation over 50 executions (the accuracy table).
TABLE: dict[str, dict[str, tuple[float, float]]] = {
    "iris": {"ITML": (0.96, 0.01), "LMNN": (0.96, 0.02), "LPTML plain": (0.94, 0.04)},
    "soybean": {"ITML": (0.95, 0.04), "LMNN": (0.96, 0.04), "LPTML plain": (0.90, 0.05)},
    "synthetic": {"ITML": (0.97, 0.02), "LMNN": (1.00, 0.00), "LPTML plain": (1.00, 0.00)},
}

#: Wine after PCA to d: fraction of violated constraints after t iterations, as (mean, deviation).
ITERATIONS = (10, 20, 30, 40, 50)
VIOLATIONS: dict[int, tuple[tuple[float, float], ...]] = {
    4: ((0.40, 0.08), (0.3686, 0.07), (0.3518, 0.01), (0.3501, 0.01), (0.3460, 0.009)),
    8: ((0.3967, 0.06), (0.3624, 0.02), (0.3517, 0.015), (0.3494, 0.0149), (0.3440, 0.011)),
    12: ((0.41, 0.1), (0.37, 0.03), (0.3558, 0.019), (0.3501, 0.014), (0.3460, 0.011)),
}
#: The same for the accuracy of 4-NN.
ACCURACIES: dict[int, tuple[tuple[float, float], ...]] = {
    4: ((0.57, 0.16), (0.62, 0.12), (0.63, 0.11), (0.63, 0.11), (0.65, 0.09)),
    8: ((0.60, 0.11), (0.62, 0.11), (0.65, 0.09), (0.65, 0.09), (0.64, 0.09)),
    12: ((0.59, 0.13), (0.62, 0.11), (0.64, 0.09), (0.64, 0.1), (0.64, 0.09)),
}

#: Accuracy without and with the planted points (LPTML with t = 100).
POISONING: dict[str, tuple[float, float]] = {
    "Euclidean": (0.65, 0.64),
    "ITML": (0.99, 0.64),
    "LMNN": (0.99, 0.74),
    "LPTML plain": (0.99, 0.98),
}

#: Seconds on Wine after PCA to d = 2..13, by the number of iterations t.
DIMENSIONS = tuple(range(2, 14))
SECONDS: dict[int, tuple[float, ...]] = {
    100: (11.36, 36.39, 57.74, 62.48, 94.12, 97.61, 97.23, 105.87, 122.27, 125.11, 133.45, 128.93),
    500: (33, 80, 143, 162, 204, 246, 201, 191, 206, 229, 185, 239),
    1000: (55, 167, 270, 326, 429, 468, 461, 375, 477, 461, 345, 501),
    1500: (81, 232, 355, 471, 577, 695, 617, 550, 649, 685, 610, 691),
    2000: (129, 294, 548, 643, 788, 925, 858, 773, 837, 855, 870, 886),
}

#: Seconds by the number of machines.
MACHINES = (1, 2, 4, 8)
PARALLEL: dict[str, tuple[float, ...]] = {
    "ionosphere": (4722, 4452, 4000, 2000),
    "soybean": (2492, 2222, 2000, 1000),
    "wine": (1183, 1024, 1000, 600),
}
