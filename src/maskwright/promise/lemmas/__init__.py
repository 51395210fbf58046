"""Every lemma, by its name. A new lemma is a new file (statement, conditions, proof, its test) and a line here."""

from maskwright.domain.promise import Lemma
from maskwright.promise.lemmas.anatomy_buckets import RANDOM_PICKS
from maskwright.promise.lemmas.balanced_cuts import CROSSED_CUTS, ONE_CUT
from maskwright.promise.lemmas.dropped_rows import DROPPING
from maskwright.promise.lemmas.even_splits import EVEN_SPLIT
from maskwright.promise.lemmas.greedy_buckets import GREEDY
from maskwright.promise.lemmas.lasting_signatures import LASTING
from maskwright.promise.lemmas.private_samples import PRIVATE_SAMPLES
from maskwright.promise.lemmas.published_gates import GATES
from maskwright.promise.lemmas.repeated_runs import REPETITION
from maskwright.promise.lemmas.rows_per_person import SEVERAL_ROWS
from maskwright.promise.lemmas.value_blind import BLIND

LEMMAS: dict[str, Lemma] = {
    lemma.name: lemma
    for lemma in (
        BLIND,
        ONE_CUT,
        CROSSED_CUTS,
        EVEN_SPLIT,
        GREEDY,
        RANDOM_PICKS,
        GATES,
        DROPPING,
        SEVERAL_ROWS,
        REPETITION,
        LASTING,
        PRIVATE_SAMPLES,
    )
}
