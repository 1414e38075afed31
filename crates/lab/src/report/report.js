"use strict";
// Hides series, changes scales and bases, and lays the plots out again by the rules of plot.rs.
(() => {
  const LOG_FLOOR = 1e-6;
  const CONFIDENCE_GOAL = 0.95;

  const niceStep = (span, ticksMax) => {
    if (!(span > 0)) return 1;
    const rough = span / ticksMax;
    const power = 10 ** Math.floor(Math.log10(rough));
    return ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999999) || 10) * power;
  };

  const grouped = (value) => Math.round(value).toLocaleString("en-US");

  const tickText = (value, step) => {
    const decimals = Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 6);
    return decimals === 0 ? grouped(value) : value.toFixed(decimals);
  };

  const element = (name, attributes, text) => {
    const made = document.createElementNS("http" + "://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Keeps labels apart, in the order of their lines; see `label_places`.
  const spread = (labels, plot) => {
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
  };

  const verticalScale = (plot, points, logarithmic) => {
    const lowest = Math.min(0, ...points.map((point) => point[1]));
    const highest = Math.max(0, ...points.map((point) => point[1]));
    const room = (highest - lowest) * plot.roomShare;
    let low = Math.max(Math.min(lowest, ...points.map((point) => point[2])), lowest - room);
    let high = Math.min(Math.max(highest, ...points.map((point) => point[3])), highest + room);
    const ticks = [];
    if (logarithmic) {
      const logs = points.map((point) => Math.log10(Math.max(point[1], LOG_FLOOR)));
      low = logs.length ? Math.floor(Math.min(...logs)) : 0;
      high = Math.max(logs.length ? Math.ceil(Math.max(...logs)) : 1, low + 1);
      for (let decade = low; decade <= high; decade++) {
        for (const factor of high - low <= 2 ? [1, 2, 5] : [1]) {
          if (decade < high || factor === 1) ticks.push([factor * 10 ** decade, 10 ** decade]);
        }
      }
    } else {
      const step = niceStep(high - low, plot.ticksMax);
      low = Math.floor(low / step) * step;
      high = Math.max(Math.ceil(high / step) * step, low + step);
      for (let tick = 0; tick <= Math.round((high - low) / step); tick++) ticks.push([low + tick * step + 0, step]);
    }
    const place = (value) => (logarithmic ? Math.log10(Math.max(value, LOG_FLOOR)) : value);
    const y = (value) => plot.top + ((high - place(value)) / (high - low)) * (plot.height - plot.top - plot.bottom);
    return { y, ticks, inside: (value) => Math.min(Math.max(y(value), plot.top), plot.height - plot.bottom) };
  };

  const horizontalScale = (plot, logarithmic) => {
    const place = (value) => (logarithmic ? Math.log2(Math.max(value, 1)) : value);
    const low = place(plot.xs[0]);
    const span = place(plot.xs[plot.xs.length - 1]) - low;
    const width = plot.width - plot.left - plot.right - 2 * plot.padding;
    return (value) => plot.left + plot.padding + (span > 0 ? (place(value) - low) / span : 0.5) * width;
  };

  const layOut = (svg, state) => {
    const plot = JSON.parse(svg.dataset.plot);
    const shown = plot.lines.filter((line) => !state.hidden.has(line.number));
    // A gain may be negative, and has no logarithm then.
    const positive = plot.lines.every((line) => line.points.every((point) => point[1] >= 0));
    const { y, ticks, inside } = verticalScale(plot, shown.flatMap((line) => line.points), state.y && positive);
    const x = horizontalScale(plot, state.x);

    svg.querySelector(".ticks").replaceChildren(
      ...ticks.flatMap(([value, step]) => {
        const at = y(value);
        const line = { x1: plot.left, x2: plot.width - plot.right, y1: at, y2: at };
        if (value === 0) line.class = "zero";
        const text = { x: plot.left - 8, y: at + 4, "text-anchor": "end" };
        return [element("line", line), element("text", text, tickText(value, step))];
      }),
    );

    let last = -Infinity;
    const names = plot.xs.filter((value) => x(value) - last >= plot.xLabelStep && ((last = x(value)), true));
    const below = { y: plot.height - plot.bottom + 18, "text-anchor": "middle" };
    svg
      .querySelector(".xs")
      .replaceChildren(...names.map((value) => element("text", { x: x(value), ...below }, grouped(value))));

    const labels = shown.map(({ number, points }) => ({ number, y: y(points[points.length - 1][1]) }));
    spread(labels, plot);

    for (const line of plot.lines) {
      const group = svg.querySelector(`.line[data-line="${line.number}"]`);
      group.classList.toggle("hidden", state.hidden.has(line.number));
      if (state.hidden.has(line.number)) continue;
      const places = line.points.map((point) => [x(point[0]), y(point[1])]);
      group.querySelector("polyline").setAttribute("points", places.map((place) => place.join(",")).join(" "));
      const markers = group.querySelectorAll(".marker");
      const whiskers = group.querySelectorAll(".whisker");
      line.points.forEach((point, position) => {
        const [left, top] = places[position];
        const [low, high] = [inside(point[2]), inside(point[3])];
        const cap = (at) => `M${left - plot.cap} ${at}h${2 * plot.cap}`;
        markers[position].setAttribute("transform", `translate(${left} ${top})`);
        whiskers[position].setAttribute("d", `${cap(low)}M${left} ${low}V${high}${cap(high)}`);
      });
      const label = labels.find((label) => label.number === line.number);
      const text = group.querySelector(".label");
      text.setAttribute("y", label.y + 4);
      const end = Number(text.getAttribute("x")) - 4;
      const from = places[places.length - 1].join(",");
      group.querySelector(".leader").setAttribute("points", `${from} ${end},${label.y}`);
    }
  };

  // The median and its order-statistic interval; see stats.rs.
  const estimate = (values) => {
    const sorted = values.slice().sort((left, right) => left - right);
    const count = sorted.length;
    if (count === 0) return null;
    let term = 0.5 ** Math.min(count, 1000);
    let below = 0;
    let best = 0;
    for (let rank = 0; rank < Math.ceil(count / 2); rank++) {
      below += term;
      if (1 - 2 * below < CONFIDENCE_GOAL) break;
      best = rank;
      term *= (count - rank) / (rank + 1);
    }
    const middle = Math.floor(count / 2);
    const median = count % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return { median, low: sorted[best], high: sorted[count - 1 - best], count };
  };

  const relate = (run, results) => {
    const lines = [];
    const key = (...parts) => JSON.stringify(parts);
    const cells = new Map();
    for (const cell of results.cells) {
      const line = key(cell.target, cell.series);
      if (!lines.includes(line)) lines.push(line);
      cells.set(key(lines.indexOf(line), cell.block, cell.x), cell);
    }
    const base = Number(run.querySelector(".relative select").value);
    for (const row of run.querySelectorAll(".relative tbody tr")) {
      const line = Number(row.dataset.line);
      for (const field of row.querySelectorAll("td")) {
        const x = Number(field.dataset.x);
        const own = cells.get(key(line, row.dataset.block, x));
        const other = cells.get(key(base, row.dataset.block, x));
        const pairs = (own && other ? own.samples : []).flatMap((sample) => {
          const twin = other.samples.find((twin) => twin.round === sample.round);
          if (!twin) return [];
          return [results.lower_is_better ? [twin.value, sample.value] : [sample.value, twin.value]];
        });
        const ratio = estimate(pairs.filter((pair) => pair[1] > 0).map((pair) => pair[0] / pair[1]));
        field.textContent = ratio ? ratio.median.toFixed(2) : "-";
        if (ratio && ratio.count > 1 && line !== base) {
          const interval = document.createElement("small");
          interval.textContent = `${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)}`;
          field.append(" ", interval);
        }
      }
    }
  };

  const samples = (run) => {
    const coded = run.querySelector(".downloads a").href.split(",")[1];
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0))));
  };

  for (const run of document.querySelectorAll(".run")) {
    const switched = (name) => run.querySelector(`[data-switch="${name}"]`);
    const pressed = (button, value) => button.setAttribute("aria-pressed", String(value));
    const isPressed = (name) => switched(name).getAttribute("aria-pressed") === "true";
    const state = { hidden: new Set(), x: isPressed("x"), y: isPressed("y") };
    const worst = "worst" in run.dataset ? Number(run.dataset.worst) : null;

    const show = () => {
      for (const button of run.querySelectorAll(".legend button")) {
        pressed(button, !state.hidden.has(Number(button.dataset.line)));
      }
      for (const axis of ["x", "y"]) pressed(switched(axis), state[axis]);
      if (worst !== null) pressed(switched("worst"), state.hidden.has(worst));
      for (const svg of run.querySelectorAll("svg.plot")) layOut(svg, state);
    };
    const toggle = (line) => {
      if (!state.hidden.delete(line)) state.hidden.add(line);
      show();
    };

    for (const line of run.querySelectorAll(".legend button, svg.plot .line")) {
      line.addEventListener("click", () => toggle(Number(line.dataset.line)));
    }
    for (const axis of ["x", "y"]) {
      switched(axis).addEventListener("click", () => {
        state[axis] = !state[axis];
        show();
      });
    }
    if (worst !== null) switched("worst").addEventListener("click", () => toggle(worst));
    const base = run.querySelector(".relative select");
    if (base) base.addEventListener("change", () => relate(run, samples(run)));
  }

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // On paper nothing can be opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
