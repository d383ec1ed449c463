// Keeps the overview up to date: it replaces the parts that have changed, and filters the images.
import { follow } from './live.js';

const parts = new Map();
for (const part of document.querySelectorAll('[data-part]')) parts.set(part.dataset.part, part);

const filter = document.querySelector('#filter');
const { version } = document.body.dataset;

/** Milliseconds after which a page with many changes answers its reader again. */
const SLICE = 30;

/** New HTML of the parts that have changed, those in sight first. */
const pending = new Map();

/** Takes the changes of an event. */
function take(changed) {
  for (const [name, html] of pending) if (!(name in changed)) changed[name] = html;
  pending.clear();
  const known = Object.keys(changed).filter((name) => parts.has(name));
  const seen = new Set(known.filter((name) => isInSight(parts.get(name))));
  for (const name of seen) pending.set(name, changed[name]);
  for (const name of known) pending.set(name, changed[name]); // in sight: keeps its place
  return seen;
}

function isInSight(part) {
  const { top, bottom } = part.getBoundingClientRect();
  return bottom >= 0 && top <= innerHeight;
}

/** Replaces parts that have changed, for as long as a slice, and the rest afterwards. */
function replaceParts() {
  const end = performance.now() + SLICE;
  for (const [name, html] of pending) {
    pending.delete(name);
    replacePart(name, html);
    if (performance.now() > end) break;
  }
  applyFilter();
  if (pending.size > 0) setTimeout(replaceParts);
}

/** Replaces a part of the page by its new HTML, which the server has escaped. */
function replacePart(name, html) {
  const before = parts.get(name);
  const template = document.createElement('template');
  template.innerHTML = html;
  const after = template.content.firstElementChild;
  if (before.open !== undefined) keepOpen(before, after);
  else keepUnfolded(before, after);
  const focused = before.contains(document.activeElement)
    ? pathTo(before, document.activeElement)
    : undefined;
  before.replaceWith(after);
  if (focused !== undefined) elementAt(after, focused)?.focus({ preventScroll: true });
  parts.set(name, after);
}

/** Leaves an image as it was, folded or unfolded; what it shows unfolded is loaded again. */
function keepOpen(before, after) {
  const [shown, link] = [before.lastElementChild, after.lastElementChild];
  if (before.open && shown.dataset.source === undefined) link.replaceChildren(...shown.childNodes);
  after.open = before.open;
}

/** Leaves the rest of a list as it was, folded or unfolded. */
function keepUnfolded(before, after) {
  if (before.querySelector('details[open]') === null) return;
  for (const rest of after.querySelectorAll('details')) rest.open = true;
}

/** Shows the builds and uploads of an image that is unfolded. */
async function load(place) {
  const response = await fetch(place.dataset.source);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  place.replaceChildren(...page.querySelector('.details').childNodes);
  delete place.dataset.source;
}

// The event does not bubble. It also follows the replacement of an unfolded image.
document.addEventListener(
  'toggle',
  ({ target }) => {
    const place = target.open ? target.querySelector('[data-source]') : null;
    if (place !== null) load(place).catch(() => {});
  },
  true,
);

/** Positions of an element and its ancestors among their siblings. */
function pathTo(root, element) {
  const path = [];
  for (let node = element; node !== root; node = node.parentElement) {
    path.unshift([...node.parentElement.children].indexOf(node));
  }
  return path;
}

function elementAt(root, path) {
  return path.reduce((node, index) => node?.children[index], root);
}

function applyFilter() {
  const words = filter?.value.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  let shown = 0;
  for (const image of document.querySelectorAll('.image')) {
    const text = image.dataset.text;
    image.hidden = !words.every((word) => text.includes(word));
    if (!image.hidden) shown += 1;
  }
  const count = document.querySelector('#shown');
  if (count !== null) count.textContent = words.length > 0 ? `${shown} shown` : '';
}

/** `3 d 4 h`, as the server writes it. */
function ageOf(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units = [
    [Math.floor(seconds / 86400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return '0 s';
  const shown = units.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}

function updateAges() {
  const now = Date.now();
  for (const time of document.querySelectorAll('time[data-age]')) {
    const age = now - Date.parse(time.dateTime);
    const text = ageOf(Math.abs(age));
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Measures the time until something is shown; `npm run bench:web` reads it. */
function measure(name, start, isShown) {
  // The timer runs after the frame that shows it.
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (isShown()) performance.measure(name, { start });
      else measure(name, start, isShown);
    }),
  );
}

if (filter !== null) {
  filter.closest('[hidden]').hidden = false;
  filter.addEventListener('input', applyFilter);
}
if (version !== undefined) {
  follow(
    (last) => `/events?since=${encodeURIComponent(last || version)}`,
    {
      parts: (changed) => {
        const start = performance.now();
        const isIdle = pending.size === 0;
        const seen = take(changed);
        if (isIdle) replaceParts();
        measure('update', start, () => ![...seen].some((name) => pending.has(name)));
        measure('whole-update', start, () => pending.size === 0);
      },
      // Something came or went: the page has another structure.
      reload: () => location.reload(),
    },
    (time) => `live, ${time}`,
  );
}
setInterval(updateAges, 10_000);
