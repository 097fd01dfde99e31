"""Lists by classes of contexts: a shorter way to the same bytes as an evaluation of each toggle (decision 0007).

A class is what the constraints of a configuration make of a context (`fields`): for each field the pattern of its value, which is
the results of all constraints on the field; the position of the time among the dates; and whether a list holds the user (`users`).
So contexts of one class differ only in what looks at users, sessions and addresses, and in random draws.

`store` is the seam. `class_lists` makes the `Lists` of a snapshot, whose `fill` looks for the program of a class and a list, and
runs it. A class gets a program at its second sighting, 512 entries with each request, if look-ups have paid for it. Until then the
list is evaluated toggle by toggle. So is it for a context with a property that is not a text, or whose class takes too much work.

`compiler` makes a program. It follows each toggle as an evaluation does, up to the first part that can differ within the class.
What is decided is bytes, and adjacent bytes are joined. What is open is a step, whose mark tells how it ends (`marks`): a rollout
(`rollouts` hashes the identifier for all of them in one loop), a list of users, the draw of a variant (`draws`). Any other toggle
is evaluated as a whole: with two open rules, with overrides, with custom code, or when others depend on it. `program` runs the
steps in the order of the list, so random draws come in the order of an evaluation.

A program ends with its snapshot, and the next snapshot compiles the classes that were asked for most. It ends when memory is short
and other classes are asked for more, and when the fields of classes change. The option `classCacheBytes` bounds programs, keys,
samples, numbers of rollouts and remembered values; 0 makes no classes. If most look-ups find no program, the fields with the most
patterns are left out of the classes for a while.
"""
