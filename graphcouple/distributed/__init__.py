"""More rows than fit in memory, by dask: fits to landmarks, and nearest neighbours of all rows."""

from graphcouple.distributed.landmarks import COVERAGE, LandmarkFit, fit_landmarks
from graphcouple.distributed.neighbors import nearest_neighbors

__all__ = ["COVERAGE", "LandmarkFit", "fit_landmarks", "nearest_neighbors"]
