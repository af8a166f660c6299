// What a run's report does in a browser: it fetches nothing, complains of nothing, answers pointer and keyboard, fits the
// screen, and says the same without scripts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { axeSource, open, pictures, startBrowser, stopBrowser } from "./support.mjs";

before(startBrowser);
after(stopBrowser);

// The pages, and the screens and themes that each is looked at in.
const looks = {
  run: [[1440, false], [1440, true], [390, false], [390, true]],
  good: [[390, false]],
  bad: [[1440, true]],
  unfinished: [[1440, false]],
  hostile: [[390, true]],
  suite: [[1440, false], [390, true]],
};
const pages = Object.keys(looks);

// All numbers that a reader can see, cell by cell.
const cells = (page) => page.$$eval("main table td, main table th", (all) => all.map((cell) => cell.textContent.trim()));

for (const name of pages) {
  test(`${name}: opens from a file with networking off and complains of nothing`, async () => {
    const { page, context, troubles } = await open(name);
    await page.waitForLoadState("load");
    assert.equal(await page.locator("h1").count(), 1);
    assert.deepEqual(troubles, []);
    await context.close();
  });

  test(`${name}: the numbers are the same without scripts`, async () => {
    const lively = await open(name);
    const still = await open(name, { scripts: false });
    const numbers = await cells(still.page);
    assert.deepEqual(await cells(lively.page), numbers);
    assert.ok(numbers.length > 10 || name === "unfinished", `only ${numbers.length} cells`);
    assert.equal(await still.page.locator("button").count(), 0, "a button that does nothing");
    await lively.context.close();
    await still.context.close();
  });

  for (const [width, dark] of looks[name]) {
    test(`${name}: fits a screen of ${width} pixels and axe finds no fault, ${dark ? "dark" : "light"}`, async () => {
      const { page, context } = await open(name, { width, dark });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `the page is ${wide} pixels wide`);
      await page.screenshot({ path: join(pictures, `${name}-${width}-${dark ? "dark" : "light"}.png`), fullPage: true });
      await page.$$eval("details", (all) => all.forEach((each) => { each.open = true; }));
      const found = await page.evaluate(`${axeSource}; axe.run(document, { resultTypes: ["violations"] })`);
      const faults = found.violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.map((n) => n.target).slice(0, 3).join(" | ")}`);
      assert.deepEqual(faults, []);
      await context.close();
    });
  }

  test(`${name}: prints`, async () => {
    const { page, context, troubles } = await open(name);
    const pdf = await page.pdf({ path: join(pictures, `${name}.pdf`), format: "A4" });
    assert.ok(pdf.length > 10000, `only ${pdf.length} bytes`);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".tool:visible").count(), 0, "a control on paper");
    assert.deepEqual(troubles, []);
    await context.close();
  });
}

test("every chart has marks of a size, inside its picture", async () => {
  const { page, context } = await open("run");
  const charts = await page.$$eval("figure[data-chart]", (all) => all.map((figure) => {
    const svg = figure.querySelector(".picture svg");
    const frame = svg.getBoundingClientRect();
    const marks = [...figure.querySelectorAll(".picture [data-tip]")].map((mark) => mark.getBoundingClientRect());
    const inside = (r) => r.width + r.height > 0 && r.left >= frame.left - 1 && r.right <= frame.right + 1 &&
      r.top >= frame.top - 1 && r.bottom <= frame.bottom + 1;
    return { name: figure.getAttribute("data-chart"), marks: marks.length, outside: marks.filter((r) => !inside(r)).length };
  }));
  assert.ok(charts.length >= 4, `only ${charts.length} charts`);
  for (const chart of charts) {
    assert.ok(chart.marks > 0, `${chart.name} has no marks`);
    assert.equal(chart.outside, 0, `${chart.name} has marks that cannot be seen`);
  }
  await context.close();
});

test("a pointer over a mark shows what it stands for, and only that", async () => {
  const { page, context } = await open("run");
  const marks = page.locator("figure[data-chart] .picture [data-tip]");
  for (const index of [0, Math.floor(await marks.count() / 2)]) {
    const mark = marks.nth(index);
    await mark.scrollIntoViewIfNeeded();
    await mark.dispatchEvent("mouseenter");
    assert.equal(await page.locator(".tip").textContent(), await mark.getAttribute("data-tip"));
    await mark.dispatchEvent("mouseleave");
    assert.equal(await page.locator(".tip").isVisible(), false);
  }
  await context.close();
});

test("the keyboard reaches the marks of every chart and reads them out", async () => {
  const { page, context } = await open("run");
  for (const box of await page.locator("figure[data-chart] .scroll").all()) {
    await box.focus();
    await page.evaluate(() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))); // scrolled to
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".tip").isVisible());
    const first = await page.locator(".tip").textContent();
    assert.ok(first.length > 0);
    assert.equal(await page.locator("[aria-live]").textContent(), first);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".tip").isVisible(), false);
  }
  await context.close();
});

test("a legend's entry hides its series and shows it again", async () => {
  const { page, context } = await open("run");
  const figure = page.locator("figure[data-chart]", { has: page.locator(".legend button") }).first();
  const entry = figure.locator(".legend button").first();
  const series = await entry.evaluate((button) => button.closest("[data-s]").getAttribute("data-s"));
  const shapes = figure.locator(`.picture [data-s="${series}"]`);
  const visible = () => shapes.evaluateAll((all) => all.filter((each) => getComputedStyle(each).display !== "none" &&
    getComputedStyle(each).visibility !== "hidden").length);
  const before = await visible();
  assert.ok(before > 0);
  await entry.focus();
  await page.keyboard.press("Enter");
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  assert.equal(await visible(), 0);
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "true");
  assert.equal(await visible(), before);
  await context.close();
});

test("the time axis zooms in and comes back to where it was", async () => {
  const { page, context } = await open("run");
  const figure = page.locator("figure[data-chart]", { has: page.locator("svg[data-zoom]") }).first();
  const widths = () => figure.locator(".moving rect").evaluateAll((all) => all.map((each) => Number(each.getAttribute("width"))));
  const home = await widths();
  await figure.getByRole("button", { name: "Zoom in" }).click();
  const near = await widths();
  assert.ok(near.some((width, i) => width > home[i] * 1.2), "nothing grew");
  await figure.getByRole("button", { name: "Reset: show the whole time" }).click();
  const back = await widths();
  back.forEach((width, i) => assert.ok(Math.abs(width - home[i]) < 0.01, `${width} is not ${home[i]}`));
  await context.close();
});

test("a table sorts by the head that is pressed, by number and not by letter", async () => {
  const { page, context } = await open("run");
  const table = page.locator("table.data", { has: page.locator("thead button") }).first();
  const heads = table.locator("thead th");
  const names = await heads.allInnerTexts();
  const column = names.findIndex((name) => name.includes("median"));
  assert.ok(column >= 0, `no median among ${names}`);
  const values = () => table.locator("tbody tr").evaluateAll((rows, at) =>
    rows.map((row) => Number(row.children[at].textContent)).filter((value) => !Number.isNaN(value)), column);
  const sorted = (list, sign) => list.every((value, i) => i === 0 || sign * (value - list[i - 1]) >= 0);
  await heads.nth(column).locator("button").click();
  const once = await values();
  await heads.nth(column).locator("button").click();
  const twice = await values();
  assert.ok((sorted(once, 1) && sorted(twice, -1)) || (sorted(once, -1) && sorted(twice, 1)), `${once} / ${twice}`);
  assert.notDeepEqual(once, twice);
  await context.close();
});

test("the theme follows the system until a button says otherwise", async () => {
  const { page, context } = await open("run", { dark: true });
  const lightness = () => page.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return (r + g + b) / 3;
  });
  assert.ok(await lightness() < 60);
  await page.locator("#theme").click();
  assert.ok(await lightness() > 200);
  await context.close();
});

test("names that are markup, quotes or emoji are shown as text", async () => {
  for (const scripts of [true, false]) {
    const { page, context, troubles } = await open("hostile", { scripts });
    assert.ok((await page.locator("h1").innerText()).includes("<script>alert(1)</script>"));
    const text = await page.locator("main").evaluate((main) => main.textContent);
    for (const name of ["h\"0'", "🔥 host", "<img src=x onerror=alert(2)>"]) {
      assert.ok(text.includes(name), `${name} is not shown`);
    }
    assert.deepEqual(troubles, []);
    await context.close();
  }
});
