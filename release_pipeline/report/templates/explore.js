// The page of explore: another measure, a mark that is picked, rows in another order, a line that is copied. Every figure and every place was written by
// the program; texts are set as texts.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (where, what) => [...where.querySelectorAll(what)];
  const draw = (name, marks) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(marks)) made.setAttribute(key, value);
    return made;
  };
  const charts = all(document, "svg.frontier").map((svg) => ({
    svg,
    layout: svg.dataset.layout,
    spots: all(svg, "a.spot"),
    lines: all(svg, "g.line"),
  }));
  const hidden = new Set();
  const across = (spot) => Number(/\(([-\d.]+)/.exec(spot.getAttribute("transform"))[1]);
  let measure = 0;
  let picked = null;

  document.documentElement.classList.add("has-script");

  function showMeasure(number) {
    measure = number;
    const shown = data.measures[number];
    document.getElementById("shown").textContent = shown.title;
    document.getElementById("unit").textContent = shown.unit;
    document.getElementById("missing").textContent = shown.missing;
    for (const chart of charts) {
      const scene = shown.scenes[chart.layout];
      const at = new Map();
      const grid = chart.svg.querySelector(".ticks");
      const left = Number(chart.svg.querySelector(".one").getAttribute("x1"));
      const right = Number(chart.svg.querySelector(".one").getAttribute("x2"));
      grid.replaceChildren();
      for (const [y, words] of scene.ticks) {
        grid.append(draw("line", { class: "grid", x1: left, y1: y, x2: right, y2: y }));
        const text = draw("text", { class: "axis", x: left - 5, y: y + 4, "text-anchor": "end" });
        text.textContent = words;
        grid.append(text);
      }
      const unity = chart.svg.querySelector(".unity");
      unity.classList.toggle("off", scene.one === null);
      unity.setAttribute("transform", `translate(0 ${scene.one || 0})`);
      for (const spot of chart.spots) {
        const i = Number(spot.dataset.i);
        const place = scene.spots[i];
        const x = across(spot);
        spot.classList.toggle("off", place === null || hidden.has(spot.dataset.style));
        spot.classList.toggle("best", place !== null && place[3] === 1);
        if (place === null) continue;
        at.set(i, [x, place[0]]);
        spot.setAttribute("transform", `translate(${x} ${place[0]})`);
        spot.querySelector(".bar").setAttribute("d", `M0 ${place[1] - place[0]}V${place[2] - place[0]}`);
        spot.querySelector("title").textContent = spot.dataset.title.replace("{figure}", () => shown.words[i]);
      }
      chart.lines.forEach((line, number) => {
        const name = scene.names[number];
        const places = line.dataset.places.split(" ").map(Number).filter((i) => at.has(i));
        line.classList.toggle("off", hidden.has(line.dataset.style) || places.length === 0);
        const path = places.map((i, nth) => `${nth ? "L" : "M"}${at.get(i).join(" ")}`).join("");
        line.querySelector(".trail").setAttribute("d", path);
        for (const part of all(line, ".leader, .key, text")) part.classList.toggle("off", name === null);
        if (name === null) return;
        const [x, y, fromX, fromY] = name;
        line.querySelector(".leader").setAttribute("d", `M${fromX + 7} ${fromY}L${x - 12} ${y - 4}`);
        line.querySelector(".key").setAttribute("transform", `translate(${x - 8} ${y - 4}) scale(.7)`);
        const text = line.querySelector("text");
        text.setAttribute("x", x);
        text.setAttribute("y", y);
      });
    }
    moveFocus();
  }

  // One mark of a chart is reached with Tab, the others with the arrow keys from there.
  function moveFocus() {
    for (const chart of charts) {
      const there = chart.spots.filter((spot) => !spot.classList.contains("off"));
      const one = there.find((spot) => spot.dataset.n === String(picked)) || there[0];
      for (const spot of chart.spots) spot.setAttribute("tabindex", spot === one ? "0" : "-1");
    }
  }

  function addCurves(where, number) {
    for (const card of all(where, "[data-column]")) {
      if (card.querySelector("svg")) continue;
      const figures = all(document, "figure.column");
      const which = Number(card.dataset.column);
      const base = figures[which].querySelector("svg");
      const heights = (data.curves[number][which] || "").match(/../g);
      const places = data.across[which];
      if (!base || !heights || !places || heights.length !== places.length) continue;
      const svg = base.cloneNode(true);
      svg.removeAttribute("aria-labelledby");
      svg.setAttribute("aria-label", svg.querySelector("title").textContent);
      const points = places.map((x, i) => `${x},${parseInt(heights[i], 16)}`);
      svg.append(draw("polyline", { class: "released", points: points.join(" ") }));
      const before = svg.querySelector(".of-original");
      const name = draw("text", {
        class: "of-released",
        "text-anchor": "end",
        x: before.getAttribute("x"),
        y: Number(before.getAttribute("y")) + 14,
      });
      name.textContent = data.words.released;
      svg.append(name);
      for (const part of all(svg, "[id]")) part.removeAttribute("id");
      card.querySelector("summary").after(svg);
    }
  }

  async function copy(code, told) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      told.textContent = data.words.copied;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      told.textContent = document.execCommand("copy") ? data.words.copied : data.words.not_copied;
    }
  }

  function addCopy(where) {
    for (const block of all(where, "pre")) {
      const button = document.createElement("button");
      const told = document.createElement("span");
      button.type = "button";
      button.className = "copy";
      button.textContent = data.words.copy;
      told.className = "copied";
      told.setAttribute("role", "status");
      button.addEventListener("click", () => copy(block.querySelector("code"), told));
      block.after(button, told);
    }
  }

  function pick(number) {
    const source = document.querySelector(`.setting[data-n="${number}"]`);
    if (!source) return;
    picked = number;
    const body = source.querySelector(".told").cloneNode(true);
    body.removeAttribute("id");
    for (const part of all(body, "[id]")) part.removeAttribute("id");
    for (const part of all(body, "svg[aria-labelledby]")) {
      part.removeAttribute("aria-labelledby");
      part.setAttribute("aria-label", part.querySelector("title").textContent);
    }
    for (const part of all(body, ".copy, .copied")) part.remove();
    for (const part of all(body, "details")) part.open = true;
    addCurves(body, number);
    addCopy(body);
    document.getElementById("picked-title").textContent = `${data.words.picked}: ${source.querySelector("h3").textContent}`;
    document.getElementById("picked-body").replaceChildren(body);
    for (const one of all(document, ".spot, .all tbody tr")) one.classList.toggle("picked", one.dataset.n === String(number));
    moveFocus();
  }

  function goOn(spot, key) {
    const chart = charts.find((one) => one.spots.includes(spot));
    const scene = data.measures[measure].scenes[chart.layout];
    const there = chart.spots.filter((one) => !one.classList.contains("off"));
    const height = (one) => scene.spots[Number(one.dataset.i)][0];
    const sideways = key === "ArrowLeft" || key === "ArrowRight" || key === "Home" || key === "End";
    there.sort((a, b) => (sideways ? across(a) - across(b) || height(a) - height(b) : height(a) - height(b) || across(a) - across(b)));
    const at = there.indexOf(spot);
    const to = key === "Home" ? 0 : key === "End" ? there.length - 1 : at + (key === "ArrowRight" || key === "ArrowDown" ? 1 : -1);
    const next = there[Math.min(Math.max(to, 0), there.length - 1)];
    pick(Number(next.dataset.n));
    next.focus();
  }

  for (const chart of charts) {
    for (const spot of chart.spots) {
      spot.addEventListener("click", (event) => {
        event.preventDefault();
        pick(Number(spot.dataset.n));
      });
      spot.addEventListener("keydown", (event) => {
        if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
        event.preventDefault();
        goOn(spot, event.key);
      });
    }
  }
  for (const link of all(document, '.all a[href^="#setting-"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      pick(Number(link.closest("tr").dataset.n));
      const title = document.getElementById("picked-title");
      title.tabIndex = -1;
      title.focus();
      title.scrollIntoView();
    });
  }
  for (const setting of all(document, "details.setting")) {
    setting.addEventListener("toggle", () => {
      if (setting.open) addCurves(setting, Number(setting.dataset.n));
    });
    setting.open = false; // what is picked stands above in full
  }
  addCopy(document.getElementById("details").parentElement);

  document.getElementById("measure").addEventListener("change", (event) => showMeasure(Number(event.target.value)));
  for (const box of all(document, "input[data-style]")) {
    box.checked = true;
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(box.dataset.style) : hidden.add(box.dataset.style);
      for (const one of all(document, ".all tbody tr, details.setting")) {
        one.classList.toggle("off", hidden.has(one.dataset.style));
      }
      showMeasure(measure);
    });
  }
  for (const [nth, head] of all(document, ".all thead th").entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = data.words.sort;
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of all(document, ".all thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = document.querySelector(".all tbody");
      const value = (row) => row.children[nth].dataset.v;
      const compare = (a, b) => (a === "" ? 1 : b === "" ? -1 : isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
      const rows = [...body.children].sort((a, b) => {
        const [one, other] = [value(a), value(b)];
        return one === "" || other === "" || !down ? compare(one, other) : compare(other, one);
      });
      body.append(...rows);
    });
  }
  document.getElementById("measure").value = "0";
  const asked = /^#setting-(\d+)$/.exec(location.hash);
  pick(asked ? Number(asked[1]) : data.start);
})();
