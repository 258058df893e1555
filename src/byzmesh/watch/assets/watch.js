// Draws the state that /events sends. Everything from the server becomes text, never HTML.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const svg = (name, facts) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
    return made;
  };
  const cell = (tag, text, kind) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#80ba5a", "#a5694f",
    "#8b8b8b", "#c2185b", "#1b7837"];
  const GOOD = new Set(["finished", "ok", "seen now"]);
  const BAD = new Set(["failed", "diverged"]);
  const COLUMNS = ["key", "rule", "attack", "network", "seed", "status", "round", "rounds", "accuracy", "loss", "silent", "refused",
    "suspects", "why"];
  const NUMBERS = new Set(["seed", "round", "rounds", "accuracy", "loss", "silent", "refused"]);
  let chosen = "", state = null, source = null, chart = null;

  function curves() {
    const labels = Object.keys(state.curves);
    const picker = at("metric");
    if (labels.join() !== [...picker.options].map((option) => option.value).join()) {
      const before = picker.value;
      picker.replaceChildren(...labels.map((label) => { const made = cell("option", label); made.value = label; return made; }));
      if (labels.includes(before)) picker.value = before;
    }
    const shown = state.curves[picker.value] || [];
    chart = chart || echarts.init(at("curves"));
    const ink = colour("ink"), line = colour("line");
    const axis = { axisLabel: { color: ink, hideOverlap: true }, axisLine: { lineStyle: { color: line } },
      splitLine: { lineStyle: { color: line } }, nameTextStyle: { color: ink } };
    chart.setOption({
      animation: false,
      grid: { left: 10, right: 30, top: 46, bottom: 28, containLabel: true },
      legend: { type: "scroll", top: 6, textStyle: { color: ink, lineHeight: 20 }, icon: "roundRect", itemHeight: 5 },
      tooltip: { trigger: "axis", confine: true, backgroundColor: colour("card"), borderColor: line, textStyle: { color: ink } },
      xAxis: { type: "value", name: "round", nameLocation: "middle", nameGap: 24, ...axis },
      yAxis: { type: "value", scale: true, ...axis },
      series: shown.map((curve, place) => ({ name: curve.name, type: "line", data: curve.points, showSymbol: curve.points.length < 2,
        color: PALETTE[place % PALETTE.length], lineStyle: { width: 2, type: curve.running ? "dashed" : "solid" } })),
    }, true);
  }

  function network() {
    const drawn = state.network, place = at("network");
    at("network-title").textContent = drawn ? drawn.title : "No run with a record of cuts yet.";
    if (!drawn) { place.replaceChildren(); return; }
    const liars = new Set(drawn.liars);
    const size = Math.max(4, Math.min(14, 120 / Math.sqrt(drawn.places.length) / 2));
    const spot = drawn.places.map(([x, y]) => [20 + 360 * x, 20 + 360 * y]);
    const ys = spot.map((one) => one[1]);
    const top = Math.min(...ys) - 20, height = Math.max(...ys) - top + 20;
    place.setAttribute("viewBox", `0 ${top} 400 ${height}`);
    const tint = (trust) => (trust === null ? colour("line") : trust > 0.75 ? colour("kept") : trust > 0.25 ? colour("half") : colour("cut"));
    const links = drawn.links.map(([a, b, trust]) => {
      const made = svg("line", { x1: spot[a][0], y1: spot[a][1], x2: spot[b][0], y2: spot[b][1], stroke: tint(trust),
        "stroke-width": trust === null ? 0.7 : 1.2, "stroke-opacity": 0.7, "data-trust": trust === null ? "" : trust });
      const told = svg("title", {});
      told.textContent = `${drawn.names[a]} - ${drawn.names[b]}: ${trust === null ? "no record" : `kept in ${(100 * trust).toFixed(0)}% at least`}`;
      made.append(told);
      return made;
    });
    const nodes = spot.flatMap(([x, y], node) => {
      const made = liars.has(node)
        ? svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, fill: colour("lying") })
        : svg("circle", { cx: x, cy: y, r: size, fill: colour("honest") });
      const told = svg("title", {});
      told.textContent = drawn.names[node] + (liars.has(node) ? ", lies" : "");
      made.append(told);
      const text = svg("text", { x, y });
      text.textContent = size >= 8 ? String(node) : "";
      return [made, text];
    });
    place.replaceChildren(...links, ...nodes);
  }

  function suspects() {
    const found = state.suspects;
    const [head, body] = at("suspects").children;
    at("verdict").textContent = found ? (found.verdict === "named"
      ? `${found.rows.filter((row) => row.named).map((row) => row.worker).join(", ")} ${found.words}` : found.words) : "No record of cuts yet.";
    at("confidence").textContent = found ? found.confidence : "";
    head.replaceChildren();
    body.replaceChildren();
    if (!found) return;
    const truth = found.rows.some((row) => row.lies !== null);
    const heads = document.createElement("tr");
    heads.append(cell("th", "worker"), cell("th", "messages cut"), ...(truth ? [cell("th", "lies")] : []));
    head.append(heads);
    for (const row of found.rows.slice(0, 40)) {
      const line = document.createElement("tr");
      const rate = cell("td", "");
      const bar = cell("span", "", "bar");
      bar.style.width = `${6 * row.rate}rem`;
      rate.append(bar, `${(100 * row.rate).toFixed(1)}%`);
      line.append(cell("td", row.worker + (row.named ? " (named)" : ""), row.named ? "bad" : ""), rate,
        ...(truth ? [cell("td", row.lies ? "yes" : "no", row.lies ? "bad" : "")] : []));
      body.append(line);
    }
  }

  function rows() {
    const peers = state.kind === "peers";
    at("rows-title").textContent = peers ? "Peers" : "Runs";
    at("hint").textContent = peers ? "" : "Click a finished run to see whom it trusted.";
    const used = COLUMNS.filter((name) => state.rows.some((row) => row[name] !== undefined && row[name] !== ""));
    const [head, body] = at("rows").children;
    const heads = document.createElement("tr");
    heads.append(...used.map((name) => cell("th", name === "key" ? (peers ? "peer" : "run") : name)));
    head.replaceChildren(heads);
    body.replaceChildren(...state.rows.map((row) => {
      const line = document.createElement("tr");
      for (const name of used) {
        const word = row[name] === undefined ? "" : String(row[name]);
        const kind = name === "status" ? (GOOD.has(word) ? "good" : BAD.has(word) ? "bad" : "busy") : NUMBERS.has(name) ? "num" : "";
        line.append(cell("td", word, kind));
      }
      if (!peers && GOOD.has(row.status)) {
        line.classList.add("link");
        line.classList.toggle("chosen", row.key === chosen);
        line.addEventListener("click", () => { chosen = row.key; open(); });
      }
      return line;
    }));
    at("more").textContent = state.more ? `${state.more} more are not shown.` : "";
  }

  function draw() {
    at("error").hidden = !state.error;
    at("error").textContent = state.error || "";
    if (state.error) return;
    at("title").textContent = state.title;
    at("share").value = state.share;
    const words = Object.entries(state.counts).filter(([, count]) => count).map(([word, count]) => `${count} ${word}`);
    at("counts").textContent = `${(100 * state.share).toFixed(0)}% of the rounds; ${words.join(", ") || "no runs yet"}`;
    curves();
    network();
    suspects();
    rows();
  }

  function open() {
    if (source) source.close();
    source = new EventSource(`events?run=${encodeURIComponent(chosen)}`);
    const live = (kind, text) => { at("live").className = kind; at("live").textContent = text; };
    source.onopen = () => live("on", "live");
    source.onerror = () => live("off", "no connection; trying again");
    source.onmessage = (event) => { state = JSON.parse(event.data); draw(); window.byzmesh = { state }; };
  }

  at("metric").addEventListener("change", () => curves());
  window.addEventListener("resize", () => chart && chart.resize());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state && draw());
  open();
})();
