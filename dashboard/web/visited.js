// Remembers in a cookie that the browser has visited before, so that the first lesson is not offered again. The cookie
// holds nothing else.
addEventListener("pagehide", () => {
  const folder = new URL(".", document.baseURI).pathname;
  document.cookie = `been_here=1; path=${folder}; max-age=31536000; SameSite=Strict`;
});
