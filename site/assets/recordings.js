// Plays linked recordings of a terminal in the page. From a folder, where the browser fetches no
// file, the links remain.
document$.subscribe(() => {
  if (location.protocol === "file:") return;
  for (const link of document.querySelectorAll('article a[href$=".cast"]')) {
    const frame = document.createElement("div");
    link.closest("p").after(frame);
    AsciinemaPlayer.create(link.href, frame, {
      fit: "width",
      idleTimeLimit: 2,
      poster: "npt:0:58",
    });
  }
});
