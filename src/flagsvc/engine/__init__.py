"""The engine: a pure function of (snapshot, context). It knows no clock, no random source, no environment and no log.

A configuration document is parsed into a model, the model is compiled into immutable nodes and pre-encoded fragments (a
`Snapshot`), and a snapshot answers a `Context` with bytes. Time and the seed of random draws arrive in the context.

    parse → compile → snapshot → lists → features → strategies → predicates, variants

- A document becomes a snapshot: `compile_document` in `compile.py`, or in slices a `Compiler`. The size of a slice is a budget.
- A flag is decided: `Toggle.decide` in `features.py`, its variant `VariantChoice.pick` in `variants.py`. `explain` says why.
- A list is answered: `Snapshot.listing` asks its `Lists`. Mostly the class of a context has a program of its own (see `classes`);
  with `lists = Lists(memory)` in `Compilation.assemble` there are no classes.
- A rollout: `percentage` reads the share, `StickyRollout.admits` compares the bucket with it, `hashed` in `hashing.py` makes it.
- A malformed flag is served as the reference serves it, and one without a name is left out. `parse.py` reads odd values,
  `Maker.complete` in `parts.py` notes the problem. A custom strategy that raises is false: `Custom.admits` in `strategies.py`.
- Another shape of toggles in a dialect: `AnswerShape` in `fragments.py` derives the bytes of each outcome (decision 0011).
- A token of some projects: `restrict` in `projects.py` makes a part of the snapshot.
"""
