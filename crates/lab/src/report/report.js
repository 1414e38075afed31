"use strict";
// Hides series and lays the plots out again for those that are left, by the rules of plot.rs.
(() => {
  const hidden = new Set();

  const niceStep = (span, ticksMax) => {
    if (!(span > 0)) return 1;
    const rough = span / ticksMax;
    const power = 10 ** Math.floor(Math.log10(rough));
    return ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999999) || 10) * power;
  };

  const tickText = (value) =>
    value !== 0 && Math.abs(value) < 10 && Math.abs(value % 1) > 1e-9
      ? value.toFixed(1)
      : Math.round(value).toLocaleString("en-US");

  const element = (name, attributes, text) => {
    const made = document.createElementNS("http" + "://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const layOut = (svg) => {
    const plot = JSON.parse(svg.dataset.plot);
    const shown = plot.lines.filter((line) => !hidden.has(line.number));
    const points = shown.flatMap((line) => line.points);
    const lowest = Math.min(0, ...points.map((point) => point[1]));
    const highest = Math.max(0, ...points.map((point) => point[1]));
    const room = (highest - lowest) * plot.roomShare;
    let low = Math.max(Math.min(lowest, ...points.map((point) => point[2])), lowest - room);
    let high = Math.min(Math.max(highest, ...points.map((point) => point[3])), highest + room);
    const step = niceStep(high - low, plot.ticksMax);
    low = Math.floor(low / step) * step;
    high = Math.max(Math.ceil(high / step) * step, low + step);
    if (plot.logScale) {
      const logs = points.map((point) => Math.log10(Math.max(point[1], 1e-6)));
      low = logs.length ? Math.floor(Math.min(...logs)) : 0;
      high = Math.max(logs.length ? Math.ceil(Math.max(...logs)) : 1, low + 1);
    }
    const place = (value) => (plot.logScale ? Math.log10(Math.max(value, 1e-6)) : value);
    const y = (value) => plot.top + ((high - place(value)) / (high - low)) * (plot.height - plot.top - plot.bottom);

    const inside = (value) => Math.min(Math.max(y(value), plot.top), plot.height - plot.bottom);

    const tickValues = [];
    if (plot.logScale) {
      for (let decade = low; decade <= high; decade++) {
        for (const factor of high - low <= 2 ? [1, 2, 5] : [1]) {
          if (decade < high || factor === 1) tickValues.push(factor * 10 ** decade);
        }
      }
    } else {
      for (let tick = 0; tick <= Math.round((high - low) / step); tick++) tickValues.push(low + tick * step + 0);
    }

    const ticks = [];
    for (const value of tickValues) {
      const at = y(value);
      const line = { x1: plot.left, x2: plot.width - plot.right, y1: at, y2: at };
      if (value === 0) line.class = "zero";
      ticks.push(element("line", line));
      ticks.push(element("text", { x: plot.left - 8, y: at + 4, "text-anchor": "end" }, tickText(value)));
    }
    svg.querySelector(".ticks").replaceChildren(...ticks);

    const labels = shown.filter((line) => line.points.length).map((line) => ({
      number: line.number,
      y: y(line.points[line.points.length - 1][1]),
    }));
    labels.sort((left, right) => left.y - right.y);
    let next = plot.top;
    for (const label of labels) {
      label.y = Math.max(label.y, next);
      next = label.y + plot.labelStep;
    }
    let limit = plot.height - 6;
    for (const label of labels.slice().reverse()) {
      label.y = Math.min(label.y, limit);
      limit = label.y - plot.labelStep;
    }

    for (const line of plot.lines) {
      const group = svg.querySelector(`.line[data-line="${line.number}"]`);
      group.classList.toggle("hidden", hidden.has(line.number));
      if (hidden.has(line.number)) continue;
      const path = line.points.map((point) => `${point[0]},${y(point[1])}`);
      group.querySelector("polyline").setAttribute("points", path.join(" "));
      const markers = group.querySelectorAll(".marker");
      const whiskers = group.querySelectorAll(".whisker");
      line.points.forEach((point, position) => {
        markers[position].setAttribute("transform", `translate(${point[0]} ${y(point[1])})`);
        whiskers[position].setAttribute("y1", inside(point[2]));
        whiskers[position].setAttribute("y2", inside(point[3]));
      });
      const label = labels.find((label) => label.number === line.number);
      const text = group.querySelector(".label");
      if (label && text) {
        text.setAttribute("y", label.y + 4);
        const end = Number(text.getAttribute("x")) - 4;
        group.querySelector(".leader").setAttribute("points", `${path[path.length - 1]} ${end},${label.y}`);
      }
    }
  };

  const toggle = (number) => {
    if (!hidden.delete(number)) hidden.add(number);
    for (const button of document.querySelectorAll(".legend button")) {
      button.setAttribute("aria-pressed", String(!hidden.has(Number(button.dataset.line))));
    }
    document.querySelectorAll("svg.plot").forEach(layOut);
  };

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => toggle(Number(button.dataset.line)));
  }
  for (const line of document.querySelectorAll("svg.plot .line")) {
    line.addEventListener("click", () => toggle(Number(line.dataset.line)));
  }
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
