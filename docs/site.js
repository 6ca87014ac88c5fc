// Blocks and tables that are wider than their frames are reached with the keyboard, and say what they are; the others are not in the way.

"use strict";

(() => {
  const NAMES = { PRE: "Example", DIV: "Table" };

  function reach() {
    for (const frame of document.querySelectorAll("pre, .table-wrapper")) {
      const wide = frame.scrollWidth > frame.clientWidth && getComputedStyle(frame).overflowX !== "visible";
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", NAMES[frame.tagName] || "Table"]]) {
        if (wide) frame.setAttribute(name, value);
        else frame.removeAttribute(name);
      }
    }
  }

  addEventListener("load", reach);
  addEventListener("resize", reach);
})();
