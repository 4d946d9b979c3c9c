// The arrows that open a part of the contents have a picture alone, which says nothing to a screen reader.
for (const arrow of document.querySelectorAll("details > summary:has(.toctree-toggle)")) {
  const link = arrow.closest("li")?.querySelector("a");
  arrow.setAttribute("aria-label", link ? `Pages below ${link.textContent.trim()}` : "Pages below");
}
