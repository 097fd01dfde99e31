// The order of what a search finds: what the words are worth in the page, then what Sphinx says of the section.
Scorer.score = ([page, , , , score]) => {
  const number = Search._index.docnames.indexOf(page);
  const [, words] = Search._parseQuery(document.querySelector(".sidebar-search").value);
  return [...words].reduce((sum, word) => sum + (WEIGHTS[word]?.[number] || 0), 0) * 100 + score;
};
