"""The counts of a sample: how many of its classes have which size, and how many people it was drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """Class sizes of a sample, counted, and the size of the population.

    Attributes:
        sizes: the class sizes that occur, ascending.
        classes: how many classes have each of them.
        population: people in the population; at least as many as in the sample.
    """

    sizes: Ints
    classes: Ints
    population: int

    @staticmethod
    def of(class_sizes: Ints, population: int) -> SampleCounts:
        """The counts of classes of these sizes; empty classes do not count."""
        sizes, classes = np.unique(class_sizes[class_sizes > 0], return_counts=True)
        people = int((sizes * classes).sum())
        return SampleCounts(sizes.astype(np.int64), classes.astype(np.int64), max(population, people))

    @staticmethod
    def of_people(class_sizes: Ints, people: int, population: int) -> SampleCounts:
        """The counts of classes whose people may be in several: those of the population are in as many on average.

        A person then counts once for each class, in the sample and in the population alike: the sampling fraction is
        that of people.
        """
        places = int(class_sizes.sum())
        return SampleCounts.of(class_sizes, round(population * places / people) if people else population)

    @property
    def people(self) -> int:
        """The size of the sample (n)."""
        return int((self.sizes * self.classes).sum())

    @property
    def n_classes(self) -> int:
        """The number of classes (u)."""
        return int(self.classes.sum())

    @property
    def fraction(self) -> float:
        """The sampling fraction (n/N)."""
        return self.people / self.population

    def of_size(self, size: int) -> int:
        """The number of classes of a size (c₁, c₂ …)."""
        return int(self.classes[self.sizes == size].sum())
