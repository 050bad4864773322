// Who has been here before is not offered the first lesson again. The cookie says no more than that.
addEventListener("pagehide", () => {
  const folder = new URL(".", document.baseURI).pathname;
  document.cookie = `been_here=1; path=${folder}; max-age=31536000; SameSite=Strict`;
});
