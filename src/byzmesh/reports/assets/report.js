"use strict";
// Sorting, hovering, themes; charts, network pictures and heatmaps by ECharts.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

  // ---- tables
  function sortBy(table, column, heading) {
    const down = heading.getAttribute("aria-sort") !== "descending";
    for (const other of table.querySelectorAll("thead th")) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.children[column];
      return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
    };
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      // cells without a number come last, whatever the direction
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      const difference = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return down ? -difference : difference;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(order));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.querySelectorAll("thead th")].forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sortBy(table, column, heading));
    });
  }

  // ---- hovering
  const tip = document.getElementById("tip");
  function showTip(cell) {
    tip.textContent = cell.dataset.tip;
    tip.hidden = false;
    const box = cell.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8));
    const below = box.bottom + 6 + tip.offsetHeight < window.innerHeight;
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = (below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + window.scrollY + "px";
  }
  const hideTip = () => { tip.hidden = true; };
  for (const cell of document.querySelectorAll("td[data-tip]")) {
    cell.addEventListener("mouseenter", () => showTip(cell));
    cell.addEventListener("focus", () => showTip(cell));
    cell.addEventListener("mouseleave", hideTip);
    cell.addEventListener("blur", hideTip);
  }

  // ---- charts
  const phone = () => window.innerWidth < 640;
  const axis = () => ({
    axisLabel: { color: colour("soft"), hideOverlap: true },
    axisLine: { lineStyle: { color: colour("line") } },
    splitLine: { lineStyle: { color: colour("line"), opacity: 0.6 } },
    nameTextStyle: { color: colour("soft") },
  });
  const box = () => ({
    backgroundColor: colour("ground"), borderColor: colour("line"), textStyle: { color: colour("ink"), fontSize: 12 },
    confine: true,
  });
  const short = (value) => (value === null || value === undefined ? "-"
    : value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5) ? String(+value.toPrecision(4))
    : value.toExponential(1).replace(".0e", "e").replace("e+", "e"));

  function lines(item, facet) {
    const curves = item.facets[facet];
    const styles = ["solid", "dashed", "dotted"];
    const palette = data.palette[root.dataset.theme];
    // Whole decades around the data: left alone, ECharts pads a logarithmic axis by many empty ones.
    const shown = item.log ? curves.flatMap((curve) => curve.points.map((point) => point[1]).filter((y) => y > 0)) : [];
    const decades = shown.length ? { min: 10 ** Math.floor(Math.log10(Math.min(...shown))),
      max: 10 ** Math.ceil(Math.log10(Math.max(...shown))) } : {};
    // Beyond as many curves as there are styles, the others are grey and have no entry in the legend: hover for a name.
    const named = palette.length * styles.length;
    const tint = (place) => (place < named ? palette[place % palette.length] : colour("line"));
    const band = (curve, place) => {
      const whole = (points) => points.filter((point) => point[1] !== null);
      const corners = [...whole(curve.high), ...whole(curve.low).reverse()];
      return { name: curve.name, type: "custom", color: tint(place), silent: true, clip: true, z: 1, animation: false,
        data: [corners[0]], tooltip: { show: false }, renderItem: (_, api) => ({ type: "polygon",
          shape: { points: corners.map((corner) => api.coord(corner)) }, style: { fill: tint(place), opacity: 0.16 } }) };
    };
    return {
      grid: { left: 12, right: 18, top: phone() ? 76 : 64, bottom: 30, containLabel: true },
      legend: { top: 4, type: curves.length > 14 ? "scroll" : "plain",
        data: curves.map((curve) => curve.name).filter((name) => item.names.indexOf(name) < named), textStyle: { color: colour("ink"), fontSize: 12 },
        inactiveColor: colour("line"), icon: "roundRect", itemWidth: 16, itemHeight: 6, itemGap: 9 },
      tooltip: { ...box(), trigger: curves.length > 14 ? "item" : "axis", valueFormatter: short, order: "valueDesc" },
      xAxis: { type: item.xlog ? "log" : "value", name: item.x, nameLocation: "middle", nameGap: 26, min: "dataMin", max: "dataMax", ...axis() },
      yAxis: { type: item.log ? "log" : "value", name: item.y, nameLocation: "end", scale: true, ...decades, ...axis(),
        nameTextStyle: { color: colour("soft"), align: "left" },
        axisLabel: { color: colour("soft"), formatter: (v) => short(v) } },
      dataZoom: [{ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl" }],
      // one colour per name, whatever the facet
      series: curves.map((curve) => [curve, item.names.indexOf(curve.name)]).flatMap(([curve, place]) => [{
        name: curve.name, type: "line", color: tint(place), data: curve.points, showSymbol: item.marks, symbolSize: 7,
        emphasis: { focus: "series" }, z: 2, animation: false,
        lineStyle: { width: place < named ? 2 : 1, type: place < named ? styles[Math.floor(place / palette.length)] : "solid" },
      }, ...(curve.low && curve.low.some((point) => point[1] !== null) ? [band(curve, place)] : [])]),
    };
  }

  function graph(item) {
    const liars = new Set(item.liars);
    const size = Math.max(8, Math.min(26, 260 / Math.sqrt(item.places.length) / 3));
    return {
      tooltip: { ...box(), formatter: (p) => p.dataType === "edge" ? `${p.data.source} - ${p.data.target}`
        : `worker ${p.name}, ${liars.has(+p.name) ? "lying" : "honest"}, ${p.data.degree} neighbours` },
      legend: { bottom: 0, data: ["honest", "lying"].slice(0, liars.size ? 2 : 1), textStyle: { color: colour("ink") } },
      series: [{
        type: "graph", layout: "none", animation: false, roam: false, top: 30, bottom: 50, left: 30, right: 30,
        preserveAspect: true,
        categories: [{ name: "honest", itemStyle: { color: colour("honest") } },
          { name: "lying", symbol: "rect", itemStyle: { color: colour("liar") } }],
        data: item.places.map(([x, y], node) => ({
          name: String(node), x: x * 400, y: y * 400, category: liars.has(node) ? 1 : 0, symbolSize: size,
          degree: item.links.filter((link) => link.includes(node)).length,
          label: { show: item.places.length <= 60, color: colour("ground"), fontSize: Math.max(8, size * 0.5) },
        })),
        links: item.links.map(([source, target]) => ({
          source: String(source), target: String(target),
          lineStyle: { color: liars.has(source) || liars.has(target) ? colour("liar") : colour("link"), opacity: 0.6 },
        })),
        emphasis: { focus: "adjacency" },
      }],
    };
  }

  function heat(item, facet) {
    const { senders, receivers, liars, values } = item.facets[facet];
    const points = [];
    values.forEach((row, y) => row.forEach((value, x) => { if (value !== null) points.push({ value: [x, y, value],
      label: { color: value > 0.25 && value < 0.75 ? colour("ink") : "#ffffff" } }); }));
    const names = (ids) => ids.map((id) => (liars.includes(id) ? `{liar|${id}}` : String(id)));
    const rich = { liar: { color: colour("liar"), fontWeight: "bold" } };
    const side = (ids, name, gap) => ({ type: "category", data: names(ids), name, nameLocation: "middle", nameGap: gap,
      nameTextStyle: { color: colour("soft") }, axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: colour("soft"), rich, interval: senders.length > 40 ? "auto" : 0 } });
    return {
      grid: { left: 40, right: 12, top: 10, bottom: 96 },
      tooltip: { ...box(), formatter: ({ value: [x, y, value] }) =>
        `worker ${receivers[y]} trusted ${senders[x]}${liars.includes(senders[x]) ? " (lying)" : ""}<br>` +
        `in ${(100 * value).toFixed(2)}% of the rounds` },
      xAxis: side(senders, "sender (liars in red)", 28),
      yAxis: { ...side(receivers, "receiver", 26), inverse: true },
      visualMap: { min: 0, max: 1, orient: "horizontal", left: "center", bottom: 4, itemHeight: 160, text: ["always", "never"],
        textStyle: { color: colour("ink") }, inRange: { color: [colour("low"), colour("middle"), colour("high")] } },
      series: [{ type: "heatmap", data: points, animation: false,
        itemStyle: { borderColor: colour("card"), borderWidth: 1 },
        label: { show: senders.length <= 14 && !phone(), fontSize: 10,
          formatter: ({ value: v }) => (v[2] === 1 || v[2] === 0 ? String(v[2]) : v[2].toFixed(2)) } }],
    };
  }

  const plots = new Map();
  function draw(name) {
    const item = data[name];
    const chosen = document.querySelector(`select[data-for="${name}"]`);
    const facet = chosen ? chosen.value : Object.keys(item.facets || { "": 0 })[0];
    if (!plots.has(name)) plots.set(name, echarts.init(document.getElementById(name), null, { renderer: "svg" }));
    const make = { chart: lines, network: graph, heatmap: heat }[item.kind];
    const plot = plots.get(name);
    const option = make(item, facet);
    // curves hidden in the legend stay hidden in the next facet and theme
    const before = item.kind === "chart" && plot.getOption();
    if (before) option.legend.selected = before.legend[0].selected;
    plot.setOption(option, true);
  }
  // Drawn when they come near the screen: a report may hold dozens.
  const near = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      if (entry.isIntersecting && !plots.has(entry.target.id)) draw(entry.target.id);
    }
  }, { rootMargin: "600px" });
  for (const plot of document.querySelectorAll(".plot")) near.observe(plot);
  for (const choice of document.querySelectorAll("select[data-for]")) {
    choice.addEventListener("change", () => draw(choice.dataset.for));
  }
  window.addEventListener("resize", () => { for (const plot of plots.values()) plot.resize(); });
  window.byzmesh = { plots };

  // ---- light and dark
  function theme(name) {
    root.dataset.theme = name;
    for (const plot of plots.keys()) draw(plot);
  }
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => theme(root.dataset.theme === "dark" ? "light" : "dark"));
})();
