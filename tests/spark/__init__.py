import pytest

MARKS = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),  # which is not used here
]
