// The versions of the site: the same page in each, or the first page of a version that does not have the page.
const list = document.getElementById("versions");
for (const [version, pages] of Object.entries(VERSIONS)) {
  const link = document.createElement("a");
  const page = pages.includes(list.dataset.page) ? list.dataset.page : "index.html";
  link.href = `${document.documentElement.dataset.content_root}../${version}/${page}`;
  link.textContent = version;
  list.appendChild(document.createElement("li")).append(link);
}

// What the theme leaves out for keyboards and screen readers.
document.querySelector(".sidebar-drawer").ariaLabel = "All pages";
document.querySelector(".toc-drawer").ariaLabel = "On this page";
for (const label of document.querySelectorAll(".nav-overlay-icon, .toc-overlay-icon")) {
  const button = label.firstElementChild;
  button.tabIndex = 0;
  button.role = "button";
  button.ariaLabel = label.control.ariaLabel;
  button.onclick = button.onkeydown = (event) => {
    if (event.key && ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    label.control.click();
  };
}
for (const caption of document.querySelectorAll(".sidebar-tree .caption")) caption.ariaLevel = 2;
for (const wide of document.querySelectorAll("pre, .table-wrapper")) wide.tabIndex = 0;
for (const cell of document.querySelectorAll("th")) if (!cell.textContent.trim()) cell.replaceWith(document.createElement("td"));

// A browser reads no other file for a page that it opened as a file: the search shows titles without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
