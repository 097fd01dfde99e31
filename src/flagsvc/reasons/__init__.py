"""Configurations and answers in words, for people: sentences without a context, and every reason of one answer.

Serving calls nothing here. The modules read the same document and the same nodes as an evaluation, and are not compiled.
"""
