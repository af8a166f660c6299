// Makes a page move that is complete without it: a choice of theme, tooltips for pointer and keyboard, legends that
// hide, a time axis that zooms, tables that sort. It draws no chart: it only changes what the page already has.
(function () {
  "use strict";
  const root = d3.select(document.documentElement).classed("js", true);
  const body = d3.select(document.body);

  // Theme: as the system, or the other one. Remembered where the browser remembers anything for this file.
  const memory = {
    get: () => { try { return localStorage.getItem("railbreak-theme"); } catch (none) { return null; } },
    set: (value) => { try { localStorage.setItem("railbreak-theme", value); } catch (none) { /* then not */ } },
  };
  const isDark = () => (root.attr("data-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const remembered = memory.get();
  if (remembered === "dark" || remembered === "light") root.attr("data-theme", remembered);
  const themeButton = d3.select(".topbar").append("button").attr("type", "button").attr("class", "tool").attr("id", "theme");
  const nameTheme = () => themeButton.text(isDark() ? "Light" : "Dark")
    .attr("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  nameTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  themeButton.on("click", () => {
    const next = isDark() ? "light" : "dark";
    root.attr("data-theme", next);
    memory.set(next);
    nameTheme();
  });

  // Tooltips. What a mark says stands in its <title>; where this script runs it is shown by one box for the whole page,
  // and read out when a mark is reached by keyboard.
  const tip = body.append("div").attr("class", "tip").attr("hidden", "").attr("aria-hidden", "true");
  const spoken = body.append("div").attr("class", "sr").attr("aria-live", "polite");
  const marks = (figure) => figure.selectAll(".picture [data-tip]").filter(function () { return !this.closest(".off"); });
  let lit = null;
  function hideTip() {
    tip.attr("hidden", "");
    if (lit) lit.classList.remove("lit");
    lit = null;
  }
  function showTip(mark) {
    hideTip();
    lit = mark;
    mark.classList.add("lit");
    tip.attr("hidden", null).text(mark.getAttribute("data-tip"));
    const at = mark.getBoundingClientRect();
    const box = tip.node().getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const middle = Math.min(Math.max(at.left + at.width / 2, 8), width - 8);
    const left = Math.min(Math.max(middle - box.width / 2, 8), width - box.width - 8);
    const above = at.top - box.height - 10;
    const top = above > 56 ? above : Math.min(at.bottom, innerHeight - box.height - 18) + 10;
    tip.style("left", `${left + scrollX}px`).style("top", `${top + scrollY}px`);
  }
  d3.selectAll(".picture svg title").each(function () {
    const mark = this.parentNode;
    if (mark.tagName === "svg") return; // its name for those who do not see it
    mark.setAttribute("data-tip", this.textContent);
    this.remove();
  });
  d3.selectAll(".picture [data-tip]").on("mouseenter", function () { showTip(this); }).on("mouseleave", hideTip);
  d3.select(window).on("scroll.tip", hideTip);

  // Numbers show their exact value in the same box.
  d3.selectAll("main [title]").each(function () {
    this.setAttribute("data-tip", this.getAttribute("title"));
    this.removeAttribute("title");
  }).on("mouseenter", function () { showTip(this); }).on("mouseleave", hideTip);

  d3.selectAll("figure[data-chart]").each(function () {
    const figure = d3.select(this);
    const box = figure.select(".scroll");
    let place = -1;

    // Legends: an entry that stands for a series hides and shows it.
    figure.selectAll(".legend li[data-s]").each(function () {
      const series = this.getAttribute("data-s");
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...this.childNodes);
      this.append(button);
      d3.select(button).on("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        figure.selectAll(".picture [data-s]").filter(function () { return this.getAttribute("data-s") === series; })
          .classed("off", !shown);
        hideTip();
        place = -1;
      });
    });

    const zoom = zoomOf(figure);
    if (!marks(figure).empty()) {
      box.attr("aria-label", `${box.attr("aria-label")}. Arrow keys go through the marks${zoom ? "; plus, minus and 0 zoom" : ""}.`);
    }
    box.on("keydown", () => {
      const event = d3.event;
      const all = marks(figure).nodes();
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step && all.length > 0) {
        place = place < 0 ? (step > 0 ? 0 : all.length - 1) : (place + step + all.length) % all.length;
        const area = box.node();
        const at = all[place].getBoundingClientRect();
        const around = area.getBoundingClientRect();
        if (at.left < around.left || at.right > around.right) area.scrollLeft += at.left - around.left - around.width / 2;
        showTip(all[place]);
        spoken.text(all[place].getAttribute("data-tip"));
      } else if (event.key === "Escape") {
        hideTip();
      } else if (zoom && (event.key === "+" || event.key === "=")) {
        zoom.by(1.6);
      } else if (zoom && event.key === "-") {
        zoom.by(1 / 1.6);
      } else if (zoom && event.key === "0") {
        zoom.reset();
      } else {
        return;
      }
      event.preventDefault();
    }).on("blur", () => { hideTip(); place = -1; });
  });

  // Zoom along a linear axis: every shape remembers where it was drawn, and moves with the axis.
  function zoomOf(figure) {
    const svg = figure.select("svg[data-zoom]");
    if (svg.empty()) return null;
    const number = (name) => Number(svg.attr(name));
    const [low, high, from, to] = ["data-low", "data-high", "data-from", "data-to"].map(number);
    const toX = (value) => from + (value - low) / (high - low) * (to - from);
    const toValue = (x) => low + (x - from) / (to - from) * (high - low);
    const home = (element, name) => Number(element.getAttribute(name));
    svg.selectAll(".moving *").each(function () {
      const shape = this.tagName;
      const moved = shape === "path" && /translate\(([-\d.]+),([-\d.]+)\)/.exec(this.getAttribute("transform") || "");
      this.home = shape === "rect" ? [home(this, "x"), home(this, "width")]
        : shape === "line" ? [home(this, "x1"), home(this, "x2")]
        : shape === "text" ? [home(this, "x"), 0]
        : moved ? [Number(moved[1]), moved[2]] : null;
    });
    const line = svg.select(".x .tick line");
    const text = svg.select(".x .tick text");
    const [y1, y2, y] = [line.attr("y1"), line.attr("y2"), text.attr("y")];
    function draw(t) {
      svg.selectAll(".moving *").each(function () {
        const at = this.home;
        if (!at) return;
        const x = t.applyX(at[0]);
        if (this.tagName === "rect") {
          this.setAttribute("x", x);
          this.setAttribute("width", at[1] * t.k);
        } else if (this.tagName === "line") {
          this.setAttribute("x1", x);
          this.setAttribute("x2", t.applyX(at[1]));
        } else if (this.tagName === "text") {
          this.setAttribute("x", x);
        } else {
          this.setAttribute("transform", `translate(${x},${at[1]})`);
        }
      });
      const shown = [toValue(t.invertX(from)), toValue(t.invertX(to))];
      const values = d3.ticks(shown[0], shown[1], 8);
      const step = values.length > 1 ? values[1] - values[0] : 1;
      const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
      const ticks = svg.select(".x").selectAll(".tick").data(values);
      ticks.exit().remove();
      const fresh = ticks.enter().append("g").attr("class", "tick");
      fresh.append("line").attr("y1", y1).attr("y2", y2);
      fresh.append("text").attr("y", y);
      fresh.merge(ticks).attr("transform", (value) => `translate(${t.applyX(toX(value))},0)`)
        .select("text").text((value) => value.toFixed(decimals));
      hideTip();
    }
    const zoom = d3.zoom().scaleExtent([1, 200]).extent([[from, 0], [to, 1]]).translateExtent([[from, 0], [to, 1]])
      // The wheel scrolls the page; with a modifier it zooms.
      .filter(() => d3.event.type !== "wheel" || d3.event.ctrlKey || d3.event.shiftKey || d3.event.metaKey)
      .on("zoom", () => {
        draw(d3.event.transform);
        svg.classed("zoomed", d3.event.transform.k > 1);
      });
    svg.call(zoom).on("dblclick.zoom", null).style("touch-action", "pan-x pan-y");
    const actions = {
      by: (factor) => zoom.scaleBy(svg, factor),
      reset: () => zoom.transform(svg, d3.zoomIdentity),
    };
    const tools = figure.insert("div", ".scroll").attr("class", "tools");
    const tool = (label, name, act) => tools.append("button").attr("type", "button").attr("class", "tool")
      .attr("aria-label", name).text(label).on("click", act);
    tool("+", "Zoom in", () => actions.by(1.6));
    tool("\u2212", "Zoom out", () => actions.by(1 / 1.6));
    tool("Reset", "Reset: show the whole time", actions.reset);
    tools.append("span").attr("class", "hint").text("Drag to move, Ctrl and wheel to zoom");
    return actions;
  }

  // Tables of more than one row sort by the head that is pressed.
  d3.selectAll("table.data").each(function () {
    const table = d3.select(this);
    const rows = table.selectAll("tbody tr");
    if (rows.size() < 2) return;
    table.selectAll("thead th").each(function (unused, column) {
      const head = d3.select(this);
      const label = head.text();
      head.text(null).append("button").attr("type", "button").attr("class", "sort").text(label).on("click", () => {
        const up = head.attr("aria-sort") !== "ascending";
        table.selectAll("thead th").attr("aria-sort", null);
        head.attr("aria-sort", up ? "ascending" : "descending");
        const keys = new Map(rows.nodes().map((row) => {
          const cell = row.children[column];
          const key = cell.getAttribute("data-key");
          return [row, key === null ? cell.textContent : Number(key)];
        }));
        const compare = (a, b) => {
          const [left, right] = [keys.get(a), keys.get(b)];
          if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1; // what has no number comes last
          const order = typeof left === "number" ? left - right : left.localeCompare(right, "en", { numeric: true });
          return up ? order : -order;
        };
        const parent = table.select("tbody").node();
        rows.nodes().sort(compare).forEach((row) => parent.appendChild(row));
      });
    });
  });

  // Commands and files can be copied.
  d3.selectAll(".command").each(function () {
    const text = this.querySelector("code").textContent;
    const button = d3.select(this).append("button").attr("type", "button").attr("class", "tool").text("Copy");
    button.on("click", () => {
      const done = () => { button.text("Copied"); setTimeout(() => button.text("Copy"), 1500); };
      const select = () => getSelection().selectAllChildren(this.querySelector("code"));
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select);
      else select();
    });
  });

  // On paper everything is open.
  const opened = [];
  d3.select(window).on("beforeprint", () => {
    d3.selectAll("details:not([open])").each(function () { this.open = true; opened.push(this); });
  }).on("afterprint", () => { opened.splice(0).forEach((one) => { one.open = false; }); });
})();
