import pytest

MARKS = [
    pytest.mark.xdist_group("spark"),  # one process starts the cluster
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),  # which is not used here
]
