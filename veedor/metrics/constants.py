"""The numbers of the method that no policy may change, each with its reason.

What a team may agree on (margin, alpha, minima) is in `veedor.settings.Policy`; what is here defines the procedure.
"""

HALF_OF_CONTEXTS = 0.5
"""A word counts toward a minimum when it stands in at least this share of the contexts used, of those that have a slot
of its class: one that was seen in a handful of contexts says little about the word and much about those contexts."""

FORMS_AS_CLUSTERS = 12
"""From this many coarser forms on, forms are the clusters. Contexts of one form resemble each other; with fewer forms
the test over them would have too few degrees of freedom, and the report says what inference is limited to."""

TAIL_LIMIT = 1.0
"""Absolute skew, or excess kurtosis, of the control effects (bias-corrected) above which their tails count as heavy:
light tails (negative kurtosis) do not. At 24 controls normal data trip it about one time in eight: conservative."""

LIGHT_TAIL_FACTOR = 1.0
HEAVY_TAIL_FACTOR = 2.0
"""A term must move the model this many times as far as the most extreme control. With heavy tails the t test alone
lets ordinary words through: .1-.6 false alarms over an audit at factor 1, .03-.27 at factor 2."""

POWER = 0.8
"""Power that the minimum detectable effect and the numbers of words needed refer to: the usual convention."""

MOST_WORDS_NEEDED = 1000
"""Above this many words "how many more would decide" is no advice; the answer is then None."""

BOUND_LEVEL = 0.95
"""Each exact bound of a rate holds at this level by itself, one-sided: 0 of 100 bounds a rate below 3.0 %."""

NEAR_SUBWORDS = 1
"""Controls whose number of sub-words differs from the term's by at most this enter the exploratory estimate that asks
whether the effect is one of word length."""

PLACEBO_SPLITS = 200
PLACEBO_ALPHA = 0.05
"""Random splits of the controls into two groups, and the level at which one counts as a false alarm: enough for a rate
with a standard error of .015 at .05."""

BOOTSTRAP_DRAWS = 2000
BOOTSTRAP_WORDS = 6
"""Draws of the pigeonhole bootstrap, enough for a stable 95 % interval, and the fewest words a side: below, resampling
repeats the few words there are."""

GROUP_EXAMPLES = 5
TERM_EXAMPLES = 3
"""Minimal pairs kept for a finding: as many as a reader looks at."""

CONSTANT_OUTPUT = 1e-6
"""Spread of the target's margin over all usable texts below which the model gives every text the same answer: float32
rounding reaches 1e-7. Such a model cannot be audited with these texts, and must not pass for want of effects."""
