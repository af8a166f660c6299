// A page of a report in Chromium, as a user opens it: from a file, with no network at all.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.RAILBREAK_BROWSER_FOLDER; // where run.sh put the libraries, the pages and the pictures
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");

export const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const pathOf = (page) => join(folder, "pages", `${page}.html`);
export const pictures = join(folder, "pictures");
mkdirSync(pictures, { recursive: true });

let browser = null;

export async function startBrowser() {
  browser = await chromium.launch({ executablePath: process.env.RAILBREAK_CHROMIUM, args: ["--no-sandbox"] });
}

export async function stopBrowser() {
  await browser?.close();
}

/// Opens a page and gives it with everything that it complained about or asked the network for.
export async function open(name, { width = 1440, scripts = true, dark = false, motion = false } = {}) {
  const context = await browser.newContext({
    offline: true,
    viewport: { width, height: 900 },
    javaScriptEnabled: scripts,
    colorScheme: dark ? "dark" : "light",
    reducedMotion: motion ? "no-preference" : "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10000);
  const troubles = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) troubles.push(message.text()); });
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("dialog", (dialog) => { troubles.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) troubles.push(`asked for ${request.url()}`); });
  await page.goto(pathToFileURL(pathOf(name)).href);
  return { page, context, troubles };
}
