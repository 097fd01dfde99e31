"""Configurations and answers in words, for people: sentences without a context, and every reason of one answer.

Serving calls nothing here. The modules read the same document and the same nodes as an evaluation, and are not compiled.

    words.py       the sentences of strategies, constraints, segments and variants; an operator has its own in `OPERATORS`
    chips.py       the same in a few words each, for lists: `25 %`, `country: NL, BE`
    unfolded.py    `Unfolded`: a document whose titles, ids and left-out nodes are known
    whole.py       `explain_whole` walks over all nodes: why a user gets a flag
    conditions.py  the steps of constraints, segments and rules; steps.py: the fields of a step, and its line (`tell`)
    turning.py     `find_changes` tries values around those of the failing conditions: what would turn the answer
    impact.py      `impact_of`: who gets a flag and who loses it when a strategy changes
"""
