"use strict";
// The token stands behind the # of the link, which browsers send to nobody: neither a log nor a Referer has it.
function take() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  if (!("asks" in document.forms[0].dataset)) document.forms[0].submit();
}
addEventListener("hashchange", take); // of a link that is pasted over this page
take();
