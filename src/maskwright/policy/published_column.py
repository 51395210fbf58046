"""How a column is published where that is neither as it is nor coarsened: numbers and categories that are perturbed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from maskwright.domain.exact import Exact, text_of
from maskwright.domain.settings import TAG, Settings

Way = Literal["microaggregate", "noise", "rank-swap", "round", "pram", "extremes"]
RANDOM: frozenset[Way] = frozenset({"noise", "rank-swap", "pram"})


class _PublishedWith(Settings):
    columns: tuple[str, ...] = Field(
        (), alias="with", description="other columns that are treated together with this one"
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class Microaggregation(_PublishedWith):
    """Groups of at least k rows with similar numbers, published as their means."""

    k: int = Field(ge=2, description="the least rows of a group")

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"k": value} if isinstance(value, (int, str)) else value


class NoiseSettings(_PublishedWith):
    """Normal errors are added to numbers."""

    share: Exact = Field(
        Fraction(1, 10), gt=0, description="the variance of the errors, as a share of that of the column"
    )
    correlated: bool = Field(
        False, description="errors correlate as the columns that are treated together do"
    )

    @field_validator("correlated", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _several(self) -> NoiseSettings:
        if self.correlated and not self.columns:
            raise ValueError("correlated: errors of one column correlate with nothing; name others in `with`")
        return self


class RankSwapSettings(_PublishedWith):
    """Values change places with others of near rank, column by column."""

    window: Exact = Field(gt=0, le=1, description="how many ranks apart at most, as a share of the rows")

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"window": value} if isinstance(value, (int, float, str)) else value


class PramSettings(Settings):
    """Categories are changed at random."""

    keep: Exact | None = Field(
        None, gt=0, le=1, description="the probability that a value stays; the others share the rest alike"
    )
    matrix: Mapping[str, Mapping[str, Exact]] | None = Field(
        None, description="for each value the probability of each published one, instead of `keep`"
    )
    invariant: bool = Field(False, description="keep the shares of the values in expectation")

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"keep": value} if isinstance(value, (int, float, str)) else value

    @field_validator("invariant", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_them(self) -> PramSettings:
        if (self.keep is None) == (self.matrix is None):
            raise ValueError("say either how likely a value stays, {keep: 0.8}, or the whole `matrix`")
        for value, row in (self.matrix or {}).items():
            if any(share < 0 for share in row.values()) or sum(row.values()) != 1:
                raise ValueError(
                    f"matrix.{value}: the probabilities add up to {text_of(Fraction(sum(row.values())))}, "
                    "and must add up to 1"
                )
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class Extreme(Settings):
    """Values beyond a limit are published as the limit, or as their mean."""

    limit: Exact = Field(description="values beyond it are not told apart")
    shows: Literal["limit", "mean"] = Field(
        "limit", description="what is published of them; a mean needs at least three rows"
    )

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {"limit": value} if isinstance(value, (int, float, str)) else value


class Publishing(Settings):
    """In what way a column is published with changes."""

    microaggregate: Microaggregation | None = Field(
        None, description="groups of at least k rows with similar numbers, published as their means"
    )
    noise: NoiseSettings | None = Field(None, description="normal errors are added")
    rank_swap: RankSwapSettings | None = Field(
        None, alias="rank-swap", description="values change places with others of near rank"
    )
    round: Exact | None = Field(None, gt=0, description="the nearest multiple of this number")
    top_code: Extreme | None = Field(None, alias="top-code", description="values above a limit")
    bottom_code: Extreme | None = Field(None, alias="bottom-code", description="values below a limit")
    pram: PramSettings | None = Field(None, description="categories are changed at random")
    decimals: int | None = Field(
        None, ge=0, le=12, description="of the published numbers; default: as many as the column has"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Publishing:
        ways = [
            name for name in ("microaggregate", "noise", "rank_swap", "round", "pram") if self._says(name)
        ]
        named = [name.replace("_", "-") for name in ways]
        if len(ways) > 1:
            raise ValueError(f"`{named[0]}` and `{named[1]}` cannot both be done to a column; keep one")
        if self.pram is not None and (self.extremes or self.decimals is not None):
            raise ValueError(
                "`pram` changes categories, which have neither extremes nor decimals; remove them"
            )
        if not ways and not self.extremes:
            raise ValueError(
                "say how the column is published: microaggregate, noise, rank-swap, round, top-code, bottom-code, pram"
            )
        low, high = self.bottom_code, self.top_code
        if low is not None and high is not None and low.limit >= high.limit:
            raise ValueError("the limit of `bottom-code` must be below that of `top-code`")
        return self

    def _says(self, name: str) -> bool:
        return getattr(self, name) is not None

    @property
    def extremes(self) -> bool:
        """Are values beyond a limit not told apart?"""
        return self.top_code is not None or self.bottom_code is not None

    @property
    def way(self) -> Way:
        """The main thing that is done."""
        for name in ("microaggregate", "noise", "rank_swap", "round", "pram"):
            if self._says(name):
                return name.replace("_", "-")  # type: ignore[return-value]
        return "extremes"

    @property
    def random(self) -> bool:
        """Is anything drawn at random?"""
        return self.way in RANDOM

    @property
    def together(self) -> tuple[str, ...]:
        """The other columns that are treated with this one."""
        for part in (self.microaggregate, self.noise, self.rank_swap):
            if part is not None:
                return part.columns
        return ()

    def in_words(self) -> str:
        """What a reader of the release must know."""
        words = []
        for name, part in (("bottom-coded at", self.bottom_code), ("top-coded at", self.top_code)):
            if part is not None:
                words.append(
                    f"{name} {text_of(part.limit)}" + (" (the mean beyond)" if part.shows == "mean" else "")
                )
        if self.microaggregate is not None:
            words.append(f"the mean of a group of at least {self.microaggregate.k} similar rows")
        if self.noise is not None:
            kind = "correlated noise" if self.noise.correlated else "noise"
            words.append(f"with {kind} of {text_of(self.noise.share)} of the variance")
        if self.rank_swap is not None:
            words.append(f"swapped with a value at most {text_of(self.rank_swap.window)} of the ranks away")
        if self.round is not None:
            words.append(f"rounded to multiples of {text_of(self.round)}")
        if self.pram is not None:
            kind = "PRAM that keeps the shares in expectation" if self.pram.invariant else "PRAM"
            keep = None if self.pram.invariant else self.pram.keep
            stays = f", each value stays with {text_of(keep)}" if keep is not None else ""
            words.append(f"changed at random ({kind}{stays})")
        return ", ".join(words)


def _written_as(value: Any) -> str:
    return TAG + ("Pseudonym" if isinstance(value, str) else "Publishing")


PublishedAs = Annotated[
    Annotated[Literal["pseudonym"], Tag(TAG + "Pseudonym")] | Annotated[Publishing, Tag(TAG + "Publishing")],
    Discriminator(_written_as),
]
