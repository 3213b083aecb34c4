// Draws every view of the page from the data that the page carries.
drawTheme(document.getElementById("theme"));
const pageData = JSON.parse(document.getElementById("data").textContent);
pageData.views.forEach(({ kind, data }, position) =>
  VIEWS[kind](document.querySelector(`#view-${position + 1} .picture`), data));
document.dispatchEvent(new Event("drawn"));
