"""More rows than one machine holds, on dask: landmarks that place the others, and nearest neighbours of all rows."""

from graphcouple.distributed.landmarks import COVERAGE, LandmarkFit, fit_landmarks
from graphcouple.distributed.neighbors import nearest_neighbors

__all__ = ["COVERAGE", "LandmarkFit", "fit_landmarks", "nearest_neighbors"]
