"""The marks of the steps of a class program: how each ends. Compiled."""

from __future__ import annotations

from typing import Final

# the bits of a mark, which tells how a step ends
ADMITTED: Final = 1
"""It is admitted and ends with the bytes of `admitted`."""
REFUSED: Final = 2
"""If it is not admitted, it ends with the bytes of `refused` at its index."""
WHOLE: Final = 4
"""Its toggle is evaluated as a whole."""
DRAWS: Final = 8
"""It draws a variant when it is admitted, else it ends with the bytes of `admitted`."""
CHANCE: Final = 16
"""It is admitted by chance, for a share of the draws."""
SPECIAL: Final = WHOLE | DRAWS | CHANCE
INDEX: Final = 5
"""The shift of an index: of an entry for WHOLE, in the numbers of draws for DRAWS, else in `refused`. A mark has 32 bits."""
